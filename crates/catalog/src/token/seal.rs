//! Seals: the encoding of a token, and its verification.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::secret::{Secret, Secrets};
use crate::base64url;

/// The prefix of a token of this format.
const FORM: &str = "tgl1.";

/// How many bytes of the HMAC a token carries.
const SEAL_BYTES: usize = 16;

/// The longest token, in bytes.
pub const TOKEN_BYTES_MAX: usize = 1 << 20;

/// A token in its parts. Its payload is not decoded yet.
pub(super) struct Sealed<'t> {
    /// The text that the seal signs: the token without the seal.
    signed: &'t str,
    payload: &'t str,
    seal: Vec<u8>,
}

/// Returns the token of a payload: `tgl1.`, the payload, `.` and the seal, both in base64url.
pub(super) fn seal(namespace: &str, secrets: &Secrets, payload: &str) -> String {
    let signed = format!("{FORM}{}", base64url::encode(payload.as_bytes()));
    let code = code(&secrets.current, namespace, &signed).finalize().into_bytes();
    format!("{signed}.{}", base64url::encode(&code[..SEAL_BYTES]))
}

/// Returns the HMAC of a text under a secret. The namespace is part of it, so that a secret that
/// was copied to another namespace seals nothing there.
fn code(secret: &Secret, namespace: &str, signed: &str) -> Hmac<Sha256> {
    let code = Hmac::<Sha256>::new_from_slice(secret.bytes()).expect("HMAC takes keys of any length");
    // No id of a namespace has a line break.
    code.chain_update(namespace).chain_update("\n").chain_update(signed)
}

impl<'t> Sealed<'t> {
    /// Splits a token, or returns why the text is not one.
    pub(super) fn parse(text: &'t str) -> Result<Sealed<'t>, &'static str> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err("it is too long");
        }
        let body = text.strip_prefix(FORM).ok_or("it does not begin with tgl1.")?;
        let (payload, seal) = body.split_once('.').ok_or("it was cut off")?;
        let seal = base64url::decode(seal).filter(|seal| seal.len() == SEAL_BYTES);
        let seal = seal.ok_or("its seal was cut off or changed")?;
        Ok(Sealed { signed: &text[..FORM.len() + payload.len()], payload, seal })
    }

    /// Returns true if one of the secrets of the namespace sealed it. It takes the same time
    /// wherever a seal differs.
    pub(super) fn is_of(&self, namespace: &str, secrets: &Secrets) -> bool {
        let is_of =
            |secret: &Secret| code(secret, namespace, self.signed).verify_truncated_left(&self.seal).is_ok();
        let (current, previous) = (is_of(&secrets.current), secrets.previous.as_ref().is_some_and(is_of));
        current | previous
    }

    /// Decodes the payload. The seal must have been verified.
    pub(super) fn payload(&self) -> Result<String, &'static str> {
        let bytes = base64url::decode(self.payload).ok_or("its payload is not base64url")?;
        String::from_utf8(bytes).map_err(|_| "its payload is not UTF-8")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the secrets 0, 1, 2, … 31 and, as the previous one, 32 bytes of 7.
    fn secrets() -> Secrets {
        let text = |bytes: [u8; 32]| base64url::encode(&bytes);
        let item = tollgate_store::records::Item::new(crate::keys::secret("ns"))
            .with("current", text(std::array::from_fn(|index| index as u8)))
            .with("previous", text([7; 32]))
            .with("version", 2);
        Secrets::of(&item).unwrap()
    }

    #[test]
    fn the_text_of_a_token_stays_the_same() {
        // Computed with another implementation of HMAC-SHA256.
        let token = "tgl1.cGF5bG9hZA.Z-f7Y5UfZdLNktt9ofqkkA";
        assert_eq!(seal("ns", &secrets(), "payload"), token);
        let sealed = Sealed::parse(token).unwrap();
        assert!(sealed.is_of("ns", &secrets()) && !sealed.is_of("nt", &secrets()));
        assert_eq!(sealed.payload().as_deref(), Ok("payload"));
    }

    #[test]
    fn the_previous_secret_verifies_and_does_not_seal() {
        let after = secrets().rotated().unwrap();
        let token = seal("ns", &secrets(), "payload");
        assert!(Sealed::parse(&token).unwrap().is_of("ns", &after));
        assert!(!Sealed::parse(&token).unwrap().is_of("ns", &after.rotated().unwrap()));
        assert_ne!(seal("ns", &after, "payload"), token);
    }

    #[test]
    fn texts_that_are_not_tokens_are_refused() {
        let token = seal("ns", &secrets(), "payload");
        let long = format!("tgl1.{}.x", "A".repeat(TOKEN_BYTES_MAX));
        for bad in ["", "tgl1", "tgl1.", "tgl2.YQ.YQ", "tgl1.YQ", "tgl1.YQ.", "tgl1.YQ.YQ", &long] {
            assert!(Sealed::parse(bad).is_err(), "{:.20}", bad);
        }
        // Text behind the seal.
        assert!(Sealed::parse(&format!("{token}.")).is_err() && Sealed::parse(&format!("{token}A")).is_err());
    }
}
