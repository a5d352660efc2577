//! The schema version of the records, which decides whether this program may use them.

use std::fmt;
use std::sync::atomic::Ordering;

use tollgate_store::Reply;
use tollgate_store::records::{Item, Test, Write};

use super::Registry;
use crate::{CatalogError, Result, keys};

/// The schema of the records that this program reads and writes.
pub(super) const SCHEMA: Version = Version([1, 0, 0]);

/// The earliest version of this program that can use these records.
const CLIENT_MIN: &str = "0.1.0";

/// The field with that version. zae-limiter has one for its own versions, `client_min_version`,
/// which is left alone.
const CLIENT_MIN_FIELD: &str = "tollgate_min_version";

/// The version of this program.
const CLIENT: &str = env!("CARGO_PKG_VERSION");

/// The schema version of the records.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::Registry;
/// use tollgate_store::Memory;
///
/// let version = Registry::new(Arc::new(Memory::default())).version().wait()?;
/// assert_eq!(version.schema_version, "1.0.0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VersionRecord {
    /// The schema of the records.
    pub schema_version: String,
    /// The earliest version of this program that can use them.
    pub client_min_version: String,
    /// When the schema was last changed, such as `2026-11-15T14:00:00Z`.
    pub updated_at: String,
    /// The principal that changed it.
    pub updated_by: String,
}

/// A version in three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(pub(super) [u32; 3]);

impl Registry {
    /// Returns the schema version of the records. An unused store gets that of this program.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the version may be written or not.
    ///
    /// # Errors
    ///
    /// An unreadable record, or an error of the store. Another version is not an error here.
    pub fn version(&self) -> Reply<'_, Result<VersionRecord>> {
        Reply::later(async move {
            if let Some(stored) = self.read(keys::schema_version()).await? {
                return VersionRecord::of(&stored);
            }
            let first = self.version_item(SCHEMA);
            let written = self.write(&[Write::Put(first.clone(), vec![Test::Absent])]).await?;
            // If another process was faster, the version that it wrote holds.
            let stored = if written.is_ok() { None } else { self.read(keys::schema_version()).await? };
            VersionRecord::of(&stored.unwrap_or(first))
        })
    }

    /// Returns an error for records of another schema version than that of this program, until the
    /// check has passed once.
    pub(super) async fn check_version(&self) -> Result<()> {
        if self.0.version_checked.load(Ordering::Acquire) {
            return Ok(());
        }
        let record = self.version().await?;
        let (found, known) = (record.schema_version.clone(), SCHEMA.to_string());
        let schema = record.schema()?;
        if schema > SCHEMA {
            return Err(CatalogError::TooNew { found, known });
        }
        if schema < SCHEMA {
            return Err(CatalogError::TooOld { found, known });
        }
        let wanted = record.client_min_version;
        if Version::parse(&wanted) > Version::parse(CLIENT) {
            return Err(CatalogError::ClientTooOld { wanted, this: CLIENT.into() });
        }
        self.0.version_checked.store(true, Ordering::Release);
        Ok(())
    }

    pub(super) fn version_item(&self, schema: Version) -> Item {
        Item::new(keys::schema_version())
            .with("schema_version", schema.to_string())
            .with(CLIENT_MIN_FIELD, CLIENT_MIN)
            .with("updated_at", self.now_text())
            .with("updated_by", &*self.0.settings.principal)
    }
}

impl VersionRecord {
    fn of(item: &Item) -> Result<VersionRecord> {
        let text = |field: &str| item.text(field).unwrap_or_default().to_owned();
        let record = VersionRecord {
            schema_version: text("schema_version"),
            client_min_version: item.text(CLIENT_MIN_FIELD).unwrap_or(CLIENT_MIN).to_owned(),
            updated_at: text("updated_at"),
            updated_by: text("updated_by"),
        };
        record.schema().map(|_| record)
    }

    pub(super) fn schema(&self) -> Result<Version> {
        let why = || format!("schema_version is {:?}, valid is a version such as 1.0.0", self.schema_version);
        Version::parse(&self.schema_version)
            .ok_or_else(|| CatalogError::bad_record(&keys::schema_version(), why()))
    }
}

impl Version {
    /// Parses up to three numbers; missing ones are 0.
    pub(super) fn parse(text: &str) -> Option<Version> {
        let mut numbers = [0; 3];
        let mut parts = text.split('.');
        for number in &mut numbers {
            let Some(part) = parts.next() else { break };
            *number = part.parse().ok()?;
        }
        (!text.is_empty() && parts.next().is_none()).then_some(Version(numbers))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version([major, minor, patch]) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(Version::parse("0.10.0") > Version::parse("0.9"));
        assert!(Version::parse("1.0.0") > Version::parse("0.10.3"));
        assert_eq!(Version::parse("2"), Some(Version([2, 0, 0])));
        for bad in ["", "x", "1.0.0.0", "1.-1", "1..0"] {
            assert_eq!(Version::parse(bad), None, "{bad:?}");
        }
        assert!(Version::parse(CLIENT_MIN) <= Version::parse(CLIENT));
    }
}
