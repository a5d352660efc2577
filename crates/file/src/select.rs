//! Statements that are put together from what is wanted.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use crate::error::Abort;

/// A statement that selects, and the values it has.
///
/// Only what is wanted is said: a condition that may be empty would keep SQLite from looking at a part of the index
/// only. How many rows are wanted is not said at all, because it would make SQLite plan anew for each number; the
/// code that reads them stops.
pub(crate) struct Select {
    sql: String,
    values: Vec<Value>,
}

/// From where to where.
pub(crate) struct Bounds {
    pub(crate) first: String,
    /// The last one that is wanted, if that is how it ends.
    pub(crate) last: Option<String>,
    /// What comes behind the last one, if that is how it ends.
    pub(crate) end: Option<String>,
}

impl Select {
    /// `SELECT …` up to what it selects from.
    pub(crate) fn new(sql: &str) -> Select {
        Select { sql: sql.into(), values: Vec::new() }
    }

    /// With another condition, such as `sort_key < ?`, if there is a value for it.
    pub(crate) fn and<V: Into<Value>>(self, condition: &str, value: Option<V>) -> Select {
        self.and_all(condition, value.map(|value| [value]))
    }

    /// With a column that lies in between.
    pub(crate) fn within(self, column: &str, bounds: Bounds) -> Select {
        self.and(&format!("{column} >= ?"), Some(bounds.first))
            .and(&format!("{column} <= ?"), bounds.last)
            .and(&format!("{column} < ?"), bounds.end)
    }

    /// With another condition of several values, if there are any.
    pub(crate) fn and_all<V: Into<Value>, const N: usize>(
        mut self,
        condition: &str,
        values: Option<[V; N]>,
    ) -> Select {
        if let Some(values) = values {
            self.sql += if self.values.is_empty() { " WHERE " } else { " AND " };
            self.sql += condition;
            self.values.extend(values.map(Into::into));
        }
        self
    }

    /// With what stands at its end.
    pub(crate) fn ending(mut self, end: &str) -> Select {
        self.sql.push(' ');
        self.sql += end;
        self
    }

    /// The first rows, at most `most`, as `read` reads them.
    pub(crate) fn first<T>(
        self,
        connection: &Connection,
        most: usize,
        mut read: impl FnMut(&Row<'_>) -> Result<T, Abort>,
    ) -> Result<Vec<T>, Abort> {
        let mut statement = connection.prepare_cached(&self.sql)?;
        let mut rows = statement.query(params_from_iter(self.values))?;
        let mut found = Vec::new();
        while found.len() < most
            && let Some(row) = rows.next()?
        {
            found.push(read(row)?);
        }
        Ok(found)
    }
}
