//! Limits in the file: each text is stored once, under an id that is never used again.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension};
use tollgate_core::Limits;

use crate::error::{Abort, TxnError, unreadable};

/// How many limits a connection caches. Beyond that the cache is cleared.
const KNOWN_MAX: usize = 4_096;

/// Caches the limits in the file for a connection, so that those in use are neither written nor read again.
#[derive(Default)]
pub(crate) struct FileLimitsCache {
    by_id: HashMap<i64, Limits>,
    /// By their address in memory, which stays theirs while they are cached here.
    by_place: HashMap<usize, (Limits, i64)>,
}

/// Returns the text of limits. Their version is stored separately, so that a new version of the same limits has the
/// same text.
fn text_of(limits: &Limits) -> String {
    if limits.version() == 0 { limits.to_text() } else { limits.clone().at_version(0).to_text() }
}

fn place_of(limits: &Limits) -> usize {
    limits.as_ptr() as usize
}

impl FileLimitsCache {
    /// Returns the id of these limits, and stores them if they have none.
    pub(crate) fn id_of(&mut self, connection: &Connection, limits: &Limits) -> Result<i64, TxnError> {
        if let Some((_, id)) = self.by_place.get(&place_of(limits)) {
            return Ok(*id);
        }
        let text = text_of(limits);
        let mut find = connection.prepare_cached("SELECT id FROM limits WHERE text = ?1")?;
        let id = match find.query_row([&text], |row| row.get(0)).optional()? {
            Some(id) => id,
            None => connection.prepare_cached("INSERT INTO limits (text) VALUES (?1)")?.insert([&text])?,
        };
        self.learn(id, limits);
        Ok(id)
    }

    /// Returns the limits with this id. `expected` are the limits that they probably are: if so, they need not be
    /// parsed, and may have a calendar that only the caller knows.
    pub(crate) fn get(
        &mut self,
        connection: &Connection,
        id: i64,
        expected: Option<&Limits>,
    ) -> Result<Limits, Abort> {
        if let Some(limits) = self.by_id.get(&id) {
            let Some(expected) = expected.filter(|expected| !limits.same(expected) && limits == *expected)
            else {
                return Ok(limits.clone());
            };
            // From now on a comparison of addresses shows that they are the same.
            self.learn(id, expected);
            return Ok(expected.clone());
        }
        let mut find = connection.prepare_cached("SELECT text FROM limits WHERE id = ?1")?;
        let text: Option<String> = find.query_row([id], |row| row.get(0)).optional()?;
        let text = text.ok_or_else(|| unreadable("limits", format!("there are none with number {id}")))?;
        let limits = match expected.filter(|limits| text_of(limits) == text) {
            Some(limits) => limits.clone(),
            None => Limits::from_text(&text, &|text| tollgate_calendar::parse(text).ok())
                .map_err(|why| unreadable("limits", why))?,
        };
        self.learn(id, &limits);
        Ok(limits)
    }

    /// Clears the cache: what was cached in a transaction that was rolled back is not in the file.
    pub(crate) fn clear(&mut self) {
        self.by_id.clear();
        self.by_place.clear();
    }

    fn learn(&mut self, id: i64, limits: &Limits) {
        if self.by_place.len() >= KNOWN_MAX {
            self.clear();
        }
        self.by_id.insert(id, limits.clone());
        self.by_place.insert(place_of(limits), (limits.clone(), id));
    }
}
