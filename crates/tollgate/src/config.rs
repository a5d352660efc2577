//! What a set says about itself, as values of any type.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Lease, LimitSet, LimitSetBuilder};

/// Why a value of a config could not be written or read.
///
/// ```
/// use tollgate::{ConfigError, Limit, LimitSet};
///
/// let builder = LimitSet::builder().limits([Limit::per_minute("rpm", 10)]).config("tier", "gold");
/// let set = builder.build()?;
/// assert!(matches!(set.config_value::<u64>("tier"), Err(ConfigError::Unreadable { .. })));
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The value has no form as JSON.
    #[error("the value of {key:?} cannot be written as JSON: {why}")]
    Unwritable {
        /// The key.
        key: String,
        /// Why not.
        why: String,
    },
    /// The value is of another type.
    #[error("the value of {key:?} is not what it is read as: {why}")]
    Unreadable {
        /// The key.
        key: String,
        /// Why not.
        why: String,
    },
}

impl LimitSetBuilder {
    /// As [`config`](LimitSetBuilder::config), for a value of any type, which is kept as JSON.
    ///
    /// ```
    /// use tollgate::{demand, Limit, LimitSet};
    ///
    /// let set = LimitSet::builder()
    ///     .limits([Limit::per_minute("rpm", 500)])
    ///     .config("region", "eu-central-1")
    ///     .config_value("models", &["small", "large"])?
    ///     .build()?;
    /// let lease = set.acquire(demand! { rpm: 1 }).wait()?;
    /// assert_eq!(lease.config_value::<Vec<String>>("models")?.unwrap(), ["small", "large"]);
    /// assert_eq!(lease.config_value::<String>("region")?.unwrap(), "eu-central-1");
    /// assert_eq!(lease.config_value::<u8>("tier")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConfigError::Unwritable`].
    pub fn config_value<T: Serialize + ?Sized>(
        self,
        key: impl Into<String>,
        value: &T,
    ) -> Result<LimitSetBuilder, ConfigError> {
        let key = key.into();
        match serde_json::to_string(value) {
            Ok(text) => Ok(self.config(key, text)),
            Err(why) => Err(ConfigError::Unwritable { key, why: why.to_string() }),
        }
    }
}

impl LimitSet {
    /// A value of the config: as it was given, as JSON, or the text itself.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Unreadable`] if it is there and is no `T`.
    pub fn config_value<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, ConfigError> {
        let Some(text) = self.config().get(key) else { return Ok(None) };
        let read = serde_json::from_str(text).or_else(|why| {
            // Not every text is JSON, and one that is may be meant as it stands.
            serde_json::from_value(Value::String(text.clone())).map_err(|_| why)
        });
        read.map(Some).map_err(|why| ConfigError::Unreadable { key: key.into(), why: why.to_string() })
    }
}

impl Lease<'_> {
    /// As [`LimitSet::config_value`].
    ///
    /// # Errors
    ///
    /// As [`LimitSet::config_value`].
    pub fn config_value<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, ConfigError> {
        self.set().config_value(key)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_value_is_read_as_it_was_given_and_nothing_else_is_taken_for_it() {
        let tiers = BTreeMap::from([("gold".to_owned(), vec![1_u8, 2])]);
        let builder = LimitSet::builder().config("port", "80").config("note", "a \"quoted\" word");
        let set =
            builder.config_value("tiers", &tiers).expect("it has a form as JSON").build().expect("valid");
        assert_eq!(set.config_value("tiers"), Ok(Some(tiers)));
        assert_eq!(set.config_value::<u16>("port"), Ok(Some(80)));
        assert_eq!(set.config_value::<String>("port"), Ok(Some("80".to_owned())));
        assert_eq!(set.config_value::<String>("note").map(|note| note.is_some()), Ok(true));
        assert!(
            matches!(set.config_value::<u8>("note"), Err(ConfigError::Unreadable { key, .. }) if key == "note")
        );
        assert_eq!(set.config_value::<u8>("none"), Ok(None));
        let by_pairs = BTreeMap::from([((1, 2), 3)]);
        let refused = LimitSet::builder().config_value("pairs", &by_pairs);
        assert!(matches!(refused, Err(ConfigError::Unwritable { key, .. }) if key == "pairs"));
    }
}
