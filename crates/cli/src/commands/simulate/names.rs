//! Interned names, so that millions of calls do not each own theirs.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use tollgate::{Limits, Unit};

use super::log::LoggedAmounts;
use crate::exit::UsageError;
use crate::units::Units;

/// Interned names, each with its number.
#[derive(Default)]
pub(super) struct NameTable {
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32, RandomState>,
}

/// The known limits with their units, few enough for a linear search.
pub(super) struct LimitNames {
    names: Vec<String>,
    units: Units,
    /// Whether every level that has limits has all of them.
    are_everywhere: bool,
}

/// Amounts by the numbers of limits.
pub(super) type NumberedAmounts = Vec<(u32, u64)>;

impl NameTable {
    /// Returns the number of a name.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        // More names than that do not fit into memory.
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = name.into();
        self.names.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        number
    }

    /// Returns the name of a number.
    pub(super) fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", |name| name)
    }

    /// Returns the name of a number as a shared string.
    pub(super) fn shared(&self, number: u32) -> Arc<str> {
        self.names.get(number as usize).cloned().unwrap_or_default()
    }
}

impl LimitNames {
    /// Collects the names of the limits of these levels.
    ///
    /// # Errors
    ///
    /// [`UsageError`] if one name has several units, so that an amount in the log is ambiguous.
    pub(super) fn new<'a>(
        levels: impl Iterator<Item = &'a Limits> + Clone,
    ) -> Result<LimitNames, UsageError> {
        let limits = levels.clone().flat_map(|limits| limits.iter());
        let units = Units::agreed(limits.clone(), "these limits")?;
        let mut names: Vec<String> = limits.map(|limit| limit.name().to_string()).collect();
        names.sort();
        names.dedup();
        let are_everywhere = levels.clone().all(|limits| limits.is_empty() || limits.len() == names.len());
        Ok(LimitNames { names, units, are_everywhere })
    }

    /// Returns whether every level that has limits has all of them.
    pub(super) fn are_everywhere(&self) -> bool {
        self.are_everywhere
    }

    /// Returns the units of the limits.
    pub(super) fn units(&self) -> &Units {
        &self.units
    }

    /// Returns the number of a limit.
    pub(super) fn number(&self, limit: &str) -> Option<u32> {
        self.names.iter().position(|name| name == limit).and_then(|number| u32::try_from(number).ok())
    }

    /// Returns the unit of a limit, if it has one; `None` if there is no such limit.
    pub(super) fn unit(&self, limit: &str) -> Option<Option<&Unit>> {
        self.number(limit).map(|_| self.units.unit(limit))
    }

    /// Converts names to numbers. Unknown limits are skipped.
    pub(super) fn numbered(&self, LoggedAmounts(amounts): &LoggedAmounts<'_>) -> NumberedAmounts {
        let known = amounts.iter().filter_map(|(name, amount)| Some((self.number(name)?, amount.counted())));
        known.collect()
    }

    /// Converts numbers to names.
    pub(super) fn named<'a>(&'a self, amounts: &'a [(u32, u64)]) -> impl Iterator<Item = (&'a str, u64)> {
        amounts
            .iter()
            .filter_map(|(number, amount)| Some((self.names.get(*number as usize)?.as_str(), *amount)))
    }
}
