//! Limits files: the desired limits of each level.
//!
//! ```toml
//! set = "prod"
//!
//! [system]
//! limits = ["rpm:1000"]
//! on_unavailable = "allow"
//!
//! [resource."gpt-4"]
//! limits = ["rpm:500"]
//!
//! [entity."key-1"]
//! name = "the first key"
//! parent = "acme"
//! cascade = true
//! limits = ["rpm:100"]
//!
//! [entity."key-1".resource."gpt-4"]
//! limits = ["rpm:20"]
//! ```
//!
//! Limits are written as after `-l`. A [`LimitsFile`] is always valid; a printed file parses back to the same value.

mod error;
mod parse;
mod print;

use std::collections::BTreeMap;

use tollgate::catalog::StoredLimits;
use tollgate::{Limit, Limits, OnUnavailable};

pub(crate) use error::LimitsFileError;
#[cfg(all(test, feature = "batch"))]
pub(crate) use parse::parse;
pub(crate) use parse::read;
pub(crate) use print::print;

use crate::views::OwnedLevel;

/// The managed set of a file that names none.
pub(crate) const DEFAULT_SET: &str = "default";

/// The content of a limits file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LimitsFile {
    /// The managed set.
    pub(crate) set: String,
    /// The limits of each level.
    pub(crate) levels: BTreeMap<OwnedLevel, LevelConfig>,
    /// The parts of entities other than limits.
    pub(crate) entities: BTreeMap<String, EntityPart>,
}

/// The limits and the policy of a level.
#[derive(Clone, Debug)]
pub(crate) struct LevelConfig {
    /// Its limits.
    pub(crate) limits: Limits,
    /// The policy while the store is unavailable; only the system level has one.
    pub(crate) on_unavailable: Option<OnUnavailable>,
}

/// The parts of an entity that a file sets. `None` leaves a part unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntityPart {
    /// Its display name.
    pub(crate) name: Option<String>,
    /// Its parent.
    pub(crate) parent: Option<String>,
    /// Whether its calls are also charged to its parent.
    pub(crate) cascade: Option<bool>,
}

impl LimitsFile {
    /// Creates an empty file for a managed set.
    pub(crate) fn new(set: &str) -> LimitsFile {
        LimitsFile { set: set.into(), levels: BTreeMap::new(), entities: BTreeMap::new() }
    }
}

impl EntityPart {
    /// Returns whether no part is set.
    pub(crate) fn is_empty(&self) -> bool {
        *self == EntityPart::default()
    }
}

impl LevelConfig {
    /// Returns the limits by name.
    pub(crate) fn by_name(&self) -> BTreeMap<&str, &Limit> {
        self.limits.iter().map(|limit| (limit.name().as_str(), limit)).collect()
    }

    /// Returns whether there are neither limits nor a policy.
    pub(crate) fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.on_unavailable.is_none()
    }
}

/// Compares limits without their order.
impl PartialEq for LevelConfig {
    fn eq(&self, other: &LevelConfig) -> bool {
        self.on_unavailable == other.on_unavailable && self.by_name() == other.by_name()
    }
}

impl From<StoredLimits> for LevelConfig {
    fn from(stored: StoredLimits) -> LevelConfig {
        LevelConfig { limits: stored.limits, on_unavailable: stored.on_unavailable }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parsed(text: &str) -> Result<LimitsFile, String> {
        parse::parse(Path::new("limits.toml"), text).map_err(|why| why.to_string())
    }

    #[test]
    fn what_is_printed_reads_back() {
        let text = "set = \"prod\"\n\n[system]\nlimits = [\n    \"rpm:1000/minute\",\n    \"tpm:5/hour:9\",\n]\n\
                    on_unavailable = \"allow\"\n\n[resource.\"a/b\"]\nlimits = [\"rpm:5/minute,shadow\"]\n\n\
                    [entity.\"acme\"]\n\n[entity.\"user@1\"]\nname = \"say \\\"hi\\\"\"\nparent = \"acme\"\ncascade = true\n\
                    limits = [\"spend:25.5/cron(0 0 * * * Europe/Berlin),unit=USD:6\"]\n\n\
                    [entity.\"user@1\".resource.\"gpt-4\"]\nlimits = [\"rpm:7/minute\"]\n";
        let file = parsed(text).unwrap();
        assert_eq!(file.levels.len(), 4);
        assert!(file.entities["acme"].is_empty());
        let printed = print(&file);
        assert_eq!(parsed(&printed).unwrap(), file, "{printed}");
    }

    #[test]
    fn an_error_names_its_table_and_key_and_shows_an_example() {
        for (text, said) in [
            ("a = ", "limits.toml"),
            ("sett = \"x\"", "limits.toml: \"sett\" is not a key here; did you mean \"set\"?"),
            ("set = 5", "key set: 5 is not a string"),
            ("set = \"#\"", "such as prod"),
            ("[systems]", "did you mean \"system\"?"),
            ("[system]", "table [system]: neither limits nor on_unavailable is set"),
            ("[system]\nlimits = \"rpm:1\"", "table [system], key limits: \"rpm:1\" is not a list"),
            ("[system]\nlimits = [5]", "5 is not a string"),
            ("[system]\nlimits = [\"rpm\"]", "table [system], key limits: \"rpm\": there is no ':'"),
            ("[system]\nlimits = [\"rpm:1\", \"rpm:2\"]", "key limits: "),
            ("[system]\non_unavailable = \"pray\"", "valid are block, allow and local"),
            ("resource = 5", "key resource: 5 is not a table"),
            ("[resource.\"#\"]\nlimits = [\"rpm:1\"]", "such as gpt-4"),
            ("[resource.r]", "table [resource.\"r\"]: limits are missing"),
            ("[resource.r]\nlimit = []", "did you mean \"limits\"?"),
            ("[entity.e]\nlimits = []", "table [entity.\"e\"], key limits: the list is empty"),
            ("[entity.e]\ncascade = 1", "key cascade: 1 is neither true nor false"),
            ("[entity.e]\ncascade = true", "key cascade: there is no parent"),
            ("[entity.e]\nparent = \"e\"", "key parent: an entity cannot be its own parent"),
            (
                "[entity.e.resource.r]\nname = \"x\"",
                "table [entity.\"e\".resource.\"r\"]: \"name\" is not a key here",
            ),
        ] {
            let why = parsed(text).unwrap_err();
            assert!(why.contains(said) && why.contains("limits.toml"), "{text:?}: {why}");
        }
    }
}
