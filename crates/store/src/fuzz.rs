//! Fuzzing of the codecs that several stores share.

use crate::{decode_outcome, encode_outcome};

#[cfg(test)]
#[path = "../../../fuzz/driver.rs"]
mod driver;

/// Decodes the outcome of a call. An accepted outcome is encoded as the same bytes.
///
/// # Panics
///
/// If that is not so.
pub fn outcome(data: &[u8]) {
    let Some(outcome) = decode_outcome(data) else { return };
    assert_eq!(encode_outcome(&outcome), data);
}

/// Parses a record. An accepted record is equal to that of its own text.
///
/// # Panics
///
/// If that is not so.
#[cfg(feature = "text")]
pub fn record(data: &[u8]) {
    use crate::records::{ItemKey, item_from, item_text};
    let parse = |text: &str| item_from(ItemKey::new("partition", "sort"), text);
    let Some(item) = parse(&String::from_utf8_lossy(data)) else { return };
    assert_eq!(parse(&item_text(&item)), Some(item));
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_bytes_are_an_outcome_or_none() {
        super::driver::run(
            super::outcome,
            &[b"\x01\x10\x20\x30\x40\x50\x60\x70\x00\x01\x00\x00\x00\x02\x03\x04\x05"],
        );
    }

    #[test]
    #[cfg(feature = "text")]
    fn any_text_is_a_record_or_none() {
        super::driver::run(super::record, &[
            br#"{"fields":{"a":1,"b":"text","c":["x","y"],"d":{"e":null,"f":true}},"indexed":[[1,"p","s"]],"expires":17}"#,
        ]);
    }
}
