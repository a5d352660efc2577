//! Limits in the file: each text once, by a number that never means another one.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension};
use tollgate_core::Limits;

use crate::error::{Abort, TxnError, unreadable};

/// How many limits a connection remembers. Beyond that it begins anew.
const KNOWN_MAX: usize = 4_096;

/// What a connection knows about the limits in the file, so that those in use are neither written out nor read again.
#[derive(Default)]
pub(crate) struct FileLimitsCache {
    by_id: HashMap<i64, Limits>,
    /// By where they are in memory, which stays theirs while they are kept here.
    by_place: HashMap<usize, (Limits, i64)>,
}

/// The text of limits. Their version is kept apart, so that a new one of the same limits is no new text.
fn text_of(limits: &Limits) -> String {
    if limits.version() == 0 { limits.to_text() } else { limits.clone().at_version(0).to_text() }
}

fn place_of(limits: &Limits) -> usize {
    limits.as_ptr() as usize
}

impl FileLimitsCache {
    /// The number of these limits, which they get if they have none.
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

    /// The limits with this number. `expected` are those they probably are: then they need not be read, and may have a
    /// calendar that only their owner knows.
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
            // From now on it is seen at a glance that they are the same.
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

    /// Forgets everything: what was learnt in a transaction that came to nothing is not so.
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
