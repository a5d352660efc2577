//! Time zones by name, and the instant at which a zone reaches a local time.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};

use crate::CalendarError;
use crate::error::ZoneHint;

/// A time zone of the bundled database.
pub(crate) struct Zone {
    rules: TimeZone,
    name: String,
}

/// The maximum length of a name for which a similar zone is searched. All zones have shorter names.
const NAME_MAX: usize = 64;

impl Zone {
    /// Finds the zone of this name, ignoring case.
    pub(crate) fn find(name: &str) -> Result<Zone, CalendarError> {
        // Uses the bundled database even on systems that have their own: all processes that share a
        // limit must see the same edges, and a pure function must not change when a file does.
        let database = TimeZoneDatabase::bundled();
        let rules = database.get(name).ok().filter(|rules| !rules.is_unknown());
        let known = rules.and_then(|rules| Some((rules.iana_name()?.to_owned(), rules)));
        match known {
            Some((name, rules)) => Ok(Zone { rules, name }),
            None => {
                let hint = ZoneHint(similar(&database, name));
                Err(CalendarError::UnknownZone { zone: name.to_owned(), hint })
            }
        }
    }

    /// Returns the name as the database spells it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the local time at an instant.
    pub(crate) fn local(&self, at: Timestamp) -> DateTime {
        self.rules.to_datetime(at)
    }

    /// Returns the first instant at which a local clock shows `local` or later.
    pub(crate) fn reached(&self, local: DateTime) -> Option<Timestamp> {
        let instant = self.rules.to_ambiguous_timestamp(local);
        let AmbiguousOffset::Gap { .. } = instant.offset() else {
            return instant.earlier().ok();
        };
        // The clock skips `local` between these two instants, which interpret it with the offset
        // after the jump and before it.
        let (before, after) = (instant.earlier().ok()?, instant.later().ok()?);
        let jump = |at: &Timestamp| self.local(*at) >= local;
        let jumps = self.rules.following(before).map(|transition| transition.timestamp());
        Some(jumps.take_while(|at| *at < after).find(jump).unwrap_or(after))
    }
}

/// Returns the zone of this city, or else the zone with the smallest edit distance.
fn similar(database: &TimeZoneDatabase, name: &str) -> Option<String> {
    if name.is_empty() || name.len() > NAME_MAX {
        return None;
    }
    let wanted = name.to_ascii_lowercase().replace(' ', "_");
    let distance = |zone: &str| {
        let zone = zone.to_ascii_lowercase();
        let city = zone.rsplit('/').next().unwrap_or(&zone);
        if city == wanted { 0 } else { changes(&zone, &wanted).min(changes(city, &wanted) + 1) }
    };
    let names = database.available().map(|zone| (distance(zone.as_str()), zone.as_str().to_owned()));
    // Ties are resolved by name, so that the result is deterministic.
    let (changes, zone) = names.min()?;
    (changes <= wanted.len() / 3).then_some(zone)
}

/// Returns the edit distance in bytes (Levenshtein).
fn changes(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.bytes().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}
