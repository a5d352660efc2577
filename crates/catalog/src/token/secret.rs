//! The secrets of a namespace, which seal its tokens, and their record.

use std::fmt;

use tollgate_store::records::{Item, ItemKey};

use crate::{CatalogError, Result, base64url, random};

/// How many random bytes a secret has.
const SECRET_BYTES: usize = 32;

/// A secret that seals tokens. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret([u8; SECRET_BYTES]);

/// The valid secrets: tokens are sealed with the current one and verified with both, so that tokens
/// which were sealed before a rotation stay valid until the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Secrets {
    pub(super) current: Secret,
    pub(super) previous: Option<Secret>,
    /// Counts from 1, and up with each rotation.
    pub(super) version: i64,
}

impl Secret {
    fn random() -> Result<Secret> {
        random::bytes().map(Secret)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn text(&self) -> String {
        base64url::encode(&self.0)
    }

    fn from_text(text: &str) -> Option<Secret> {
        base64url::decode(text)?.try_into().ok().map(Secret)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secrets {
    /// Returns the first secrets of a namespace.
    pub(crate) fn first() -> Result<Secrets> {
        Ok(Secrets { current: Secret::random()?, previous: None, version: 1 })
    }

    /// Returns the secrets after a rotation: the current one becomes the previous one, which is
    /// dropped.
    pub(super) fn rotated(&self) -> Result<Secrets> {
        let (current, previous) = (Secret::random()?, Some(self.current.clone()));
        Ok(Secrets { current, previous, version: self.version.saturating_add(1) })
    }

    /// Returns the record of the secrets.
    pub(crate) fn item(&self, key: ItemKey, made_at: String) -> Item {
        Item::new(key)
            .with("current", self.current.text())
            .with("previous", self.previous.as_ref().map(Secret::text))
            .with("version", self.version)
            .with("made_at", made_at)
    }

    /// Reads the secrets of a record. An error names the field and does not show its value.
    pub(crate) fn of(item: &Item) -> Result<Secrets> {
        let secret = |field: &str| item.text(field).map(Secret::from_text);
        let bad = |field: &str| CatalogError::bad_record(&item.key, format!("{field} is not a secret"));
        let previous = match secret("previous") {
            None => None,
            Some(previous) => Some(previous.ok_or_else(|| bad("previous"))?),
        };
        Ok(Secrets {
            current: secret("current").flatten().ok_or_else(|| bad("current"))?,
            previous,
            version: item.int("version").ok_or_else(|| bad("version"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ItemKey {
        crate::keys::secret("ns")
    }

    #[test]
    fn secrets_are_read_back_from_their_record() {
        let first = Secrets::first().unwrap();
        let second = first.rotated().unwrap();
        assert_eq!((second.previous.as_ref(), second.version), (Some(&first.current), 2));
        for secrets in [first, second] {
            assert_eq!(Secrets::of(&secrets.item(key(), "now".into())), Ok(secrets));
        }
    }

    #[test]
    fn the_error_of_a_damaged_record_names_the_field_and_does_not_show_it() {
        let item = Secrets::first().unwrap().rotated().unwrap().item(key(), "now".into());
        for (field, bad) in [("current", "c2hvcnQ"), ("previous", "no base64!"), ("current", "")] {
            let error = Secrets::of(&item.clone().with(field, bad)).unwrap_err().to_string();
            assert!(error.contains(&format!("{field} is not a secret")), "{error}");
            assert!(bad.is_empty() || !error.contains(bad), "{error}");
        }
        assert!(Secrets::of(&item.with("version", "2")).is_err());
    }

    #[test]
    fn debug_shows_no_secret() {
        let secrets = Secrets::first().unwrap().rotated().unwrap();
        let shown = format!("{secrets:?}");
        assert_eq!(shown.matches("Secret(..)").count(), 2, "{shown}");
        assert!(!shown.contains(&secrets.current.text()), "{shown}");
    }
}
