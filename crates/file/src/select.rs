//! SELECT statements that are built from optional conditions.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use crate::error::Abort;

/// A SELECT statement and its parameters.
///
/// It has only the conditions that are needed: one that may be empty would keep SQLite from seeking in an index. It has
/// no LIMIT, because SQLite would plan it again for each number; the code that reads the rows stops.
pub(crate) struct Select {
    sql: String,
    values: Vec<Value>,
}

/// A range of keys.
pub(crate) struct Bounds {
    pub(crate) first: String,
    /// The last key, if the range includes its end.
    pub(crate) last: Option<String>,
    /// The key behind the last, if the range excludes its end.
    pub(crate) end: Option<String>,
}

impl Select {
    /// Makes a statement from `SELECT … FROM …`.
    pub(crate) fn new(sql: &str) -> Select {
        Select { sql: sql.into(), values: Vec::new() }
    }

    /// Adds a condition such as `sort_key < ?`, if there is a value for it.
    pub(crate) fn and<V: Into<Value>>(self, condition: &str, value: Option<V>) -> Select {
        self.and_all(condition, value.map(|value| [value]))
    }

    /// Adds the bounds of a column.
    pub(crate) fn within(self, column: &str, bounds: Bounds) -> Select {
        self.and(&format!("{column} >= ?"), Some(bounds.first))
            .and(&format!("{column} <= ?"), bounds.last)
            .and(&format!("{column} < ?"), bounds.end)
    }

    /// Adds a condition with several values, if there are any.
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

    /// Sets the end of the statement.
    pub(crate) fn ending(mut self, end: &str) -> Select {
        self.sql.push(' ');
        self.sql += end;
        self
    }

    /// Runs the statement and returns at most `most` rows, as `read` decodes them.
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
