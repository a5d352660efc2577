//! Encodes times and usage; everything else in the file has a codec of its own.

use tollgate_core::{Limits, Tick};
use tollgate_store::usage::Sums;

/// Returns a tick as a column; ticks that are too late for a column become the latest one.
pub(crate) fn column(tick: Tick) -> i64 {
    i64::try_from(tick.as_micros()).unwrap_or(i64::MAX)
}

/// Encodes sums that are counted in the limits with this id: the id, the hour, the events, then an amount for each
/// limit.
pub(crate) fn usage_bytes(limits: i64, sums: &Sums) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 + 8 * sums.amounts().len());
    bytes.extend(limits.to_le_bytes());
    bytes.extend(sums.hour().to_le_bytes());
    bytes.extend(sums.events().to_le_bytes());
    sums.amounts().iter().for_each(|amount| bytes.extend(amount.to_le_bytes()));
    bytes
}

/// Returns the id of the limits that sums are counted in.
pub(crate) fn usage_limits(bytes: &[u8]) -> Option<i64> {
    bytes.first_chunk().map(|id| i64::from_le_bytes(*id))
}

/// Returns the sums, given the limits they are counted in.
pub(crate) fn usage_from(limits: Limits, bytes: &[u8]) -> Option<Sums> {
    let (hour, rest) = bytes.get(8..)?.split_first_chunk()?;
    let (events, rest) = rest.split_first_chunk()?;
    let (amounts, []) = rest.as_chunks() else { return None };
    let amounts: Vec<i64> = amounts.iter().map(|amount| i64::from_le_bytes(*amount)).collect();
    Sums::restored(limits, u32::from_le_bytes(*hour), u32::from_le_bytes(*events), &amounts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::{Limit, demand};
    use tollgate_store::usage::Caller;

    #[test]
    fn usage_is_read_as_it_was_written() {
        let limits = Limits::new([Limit::per_minute("rpm", 10), Limit::per_minute("tpm", 100)]).unwrap();
        let mut sums = Sums::new(&limits, Tick::from_secs(1_800_000_000), Caller::Child);
        sums.add_take(&limits.costs(&demand! { rpm: 1, tpm: 70 }).unwrap());
        let bytes = usage_bytes(-7, &sums);
        assert_eq!(usage_limits(&bytes), Some(-7));
        assert_eq!(usage_from(limits.clone(), &bytes), Some(sums));
        for len in 0..bytes.len() {
            assert_eq!(usage_from(limits.clone(), &bytes[..len]), None);
        }
    }
}
