//! Fuzzing of the codecs of limits and buckets.

use crate::{Bucket, Limits};

#[cfg(test)]
#[path = "../../../fuzz/driver.rs"]
mod driver;

/// Parses any text as limits. Accepted limits are equal to those of their own text.
///
/// # Panics
///
/// If that is not so.
pub fn limits(data: &[u8]) {
    let Ok(limits) = Limits::from_text(&String::from_utf8_lossy(data), &|_| None) else { return };
    assert_eq!(Limits::from_text(&limits.to_text(), &|_| None).as_ref().ok(), Some(&limits));
}

/// Decodes a bucket: the text of its limits, a zero byte, its bytes. An accepted bucket is encoded as the same bytes, and can be
/// looked at.
///
/// # Panics
///
/// If that is not so.
pub fn bucket(data: &[u8]) {
    let Some(at) = data.iter().position(|byte| *byte == 0) else { return };
    let (text, bytes) = (String::from_utf8_lossy(&data[..at]), &data[at + 1..]);
    let Ok(limits) = Limits::from_text(&text, &|_| None) else { return };
    let Ok(bucket) = Bucket::from_bytes(&limits, bytes) else { return };
    assert_eq!(bucket.to_bytes(), bytes);
    let _ = bucket.peek(&limits, bucket.stamp());
    let _ = bucket.views(&limits);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limit, Take, Tick, demand};

    /// Returns limits of two kinds, and a bucket of them from which something was taken.
    fn used() -> (Limits, Bucket) {
        let limits = Limits::new([Limit::per_minute("rpm", 10), Limit::per_minute("tpm", 10_000)]).unwrap();
        let now = Tick::from_secs(1_800_000_000);
        let mut bucket = Bucket::fresh(&limits, now);
        let costs = limits.costs(&demand! { rpm: 1, tpm: 700 }).unwrap();
        bucket.take(&limits, now, &Take { costs: &costs, holder: None }).unwrap();
        (limits, bucket)
    }

    #[test]
    fn any_text_is_limits_or_an_error() {
        driver::run(limits, &[used().0.to_text().as_bytes()]);
    }

    #[test]
    fn any_bytes_are_a_bucket_or_an_error() {
        let (limits, used) = used();
        let of = |bucket: &Bucket| [limits.to_text().as_bytes(), b"\0", &bucket.to_bytes()].concat();
        driver::run(bucket, &[&of(&used), &of(&Bucket::fresh(&limits, Tick::from_secs(1)))]);
    }
}
