//! Fuzzing of usage in a file.

use tollgate_core::Limits;

use crate::codec::{usage_bytes, usage_from, usage_limits};

#[cfg(test)]
#[path = "../../../fuzz/driver.rs"]
mod driver;

/// Decodes usage: the text of its limits, a zero byte, its bytes. Accepted usage is encoded as the same bytes.
///
/// # Panics
///
/// If that is not so.
pub fn usage(data: &[u8]) {
    let Some(at) = data.iter().position(|byte| *byte == 0) else { return };
    let (text, bytes) = (String::from_utf8_lossy(&data[..at]), &data[at + 1..]);
    let Ok(limits) = Limits::from_text(&text, &|_| None) else { return };
    let (Some(id), Some(sums)) = (usage_limits(bytes), usage_from(limits, bytes)) else { return };
    assert_eq!(usage_bytes(id, &sums), bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::{Limit, Tick, demand};
    use tollgate_store::usage::{Caller, Sums};

    #[test]
    fn any_bytes_are_usage_or_none() {
        let limits = Limits::new([Limit::per_minute("rpm", 10), Limit::per_minute("tpm", 100)]).unwrap();
        let mut sums = Sums::new(&limits, Tick::from_secs(1_800_000_000), Caller::Child);
        sums.add_take(&limits.costs(&demand! { rpm: 1, tpm: 70 }).unwrap());
        driver::run(usage, &[&[limits.to_text().as_bytes(), b"\0", &usage_bytes(7, &sums)].concat()]);
    }
}
