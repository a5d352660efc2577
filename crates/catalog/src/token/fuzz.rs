//! Fuzzing of tokens.

use super::is_sealed_by;
use super::seal::seal;
use super::secret::Secrets;
use crate::base64url;

#[cfg(test)]
#[path = "../../../../fuzz/driver.rs"]
mod driver;

const PAYLOAD: &str = "the holder, the buckets and what was taken";

/// Returns secrets that are known.
fn secrets() -> Secrets {
    let item = tollgate_store::records::Item::new(crate::keys::secret("ns"));
    let item =
        item.with("current", base64url::encode(&[1; 32])).with("previous", base64url::encode(&[7; 32]));
    Secrets::of(&item.with("version", 2)).expect("they have the length of secrets")
}

/// Verifies any token. Only the one that was sealed is accepted, and in no other namespace.
///
/// # Panics
///
/// If that is not so.
pub fn token(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let sealed = seal("ns", &secrets(), PAYLOAD);
    assert_eq!(is_sealed_by(&text, "ns", &secrets()), text == sealed, "{text}");
    assert!(!is_sealed_by(&text, "other", &secrets()), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_token_but_the_sealed_one_is_accepted() {
        driver::run(token, &[seal("ns", &secrets(), PAYLOAD).as_bytes(), b"tgl1.e30.AAAAAAAAAAAAAAAAAAAAAA"]);
    }
}
