//! Fuzzing of buckets on a server, and of addresses.

use crate::RedisUrl;
use crate::codec::RedisRow;

#[cfg(test)]
#[path = "../../../fuzz/driver.rs"]
mod driver;

/// Decodes a bucket. An accepted bucket is equal to that of its own bytes.
///
/// # Panics
///
/// If that is not so.
pub fn bucket(data: &[u8]) {
    let Ok(row) = RedisRow::from_bytes(data, None) else { return };
    let again = RedisRow::from_bytes(&row.to_bytes(), None).expect("what is written can be read");
    assert_eq!((again.kept, again.usage), (row.kept, row.usage));
}

/// Parses an address.
pub fn address(data: &[u8]) {
    let _ = String::from_utf8_lossy(data).parse::<RedisUrl>();
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::{Limit, Limits};

    #[test]
    fn any_bytes_are_a_bucket_or_an_error() {
        let limits = Limits::new([Limit::per_minute("rpm", 10), Limit::per_minute("tpm", 10_000)]).unwrap();
        let whole = RedisRow::fresh(&limits).to_bytes();
        let one = RedisRow::fresh(&Limits::new([Limit::per_minute("rpm", 10)]).unwrap()).to_bytes();
        driver::run(bucket, &[&whole, &one]);
    }

    #[test]
    fn any_text_is_an_address_or_an_error() {
        driver::run(
            address,
            &[
                b"redis+sentinel://me:secret@10.0.0.1:26379,[::1]/main?prefix=a&timeout=2s",
                b"rediss://host:6380/1?ca=roots.pem&prefetch=5",
                b"valkey+cluster://a,b:7000",
            ],
        );
    }
}
