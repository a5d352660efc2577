//! Names as numbers: a call of a million should not carry its own.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use tollgate::{Limit, Unit};

use super::log::Amounts;
use crate::exit::Usage;
use crate::units::Units;

/// Names that were seen, each with its number.
#[derive(Default)]
pub(super) struct Names {
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32, RandomState>,
}

/// The limits there are, with their units. Few enough to look at them all.
pub(super) struct LimitNames(Vec<String>, Units);

/// Amounts by the numbers of limits.
pub(super) type Numbered = Vec<(u32, u64)>;

impl Names {
    /// The number of a name.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        // A log of more names than that does not fit any memory.
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = name.into();
        self.names.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        number
    }

    /// The name of a number that was given out.
    pub(super) fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", |name| name)
    }

    /// The same for somebody who outlives this.
    pub(super) fn shared(&self, number: u32) -> Arc<str> {
        self.names.get(number as usize).cloned().unwrap_or_default()
    }
}

impl LimitNames {
    /// The names of these, each of them once.
    ///
    /// # Errors
    ///
    /// [`Usage`] if one name has several units: what a log says of it could be either.
    pub(super) fn new<'a>(limits: impl Iterator<Item = &'a Limit> + Clone) -> Result<LimitNames, Usage> {
        let units = Units::agreed(limits.clone(), "these limits")?;
        let mut names: Vec<String> = limits.map(|limit| limit.name().to_string()).collect();
        names.sort();
        names.dedup();
        Ok(LimitNames(names, units))
    }

    /// The unit of a limit, if it has one; `None` if there is no such limit.
    pub(super) fn unit(&self, limit: &str) -> Option<Option<&Unit>> {
        self.0.iter().any(|name| name == limit).then(|| self.1.unit(limit))
    }

    /// The amounts of limits that are there. Others are left out.
    pub(super) fn numbered(&self, Amounts(amounts): &Amounts<'_>) -> Numbered {
        let number = |name: &str| self.0.iter().position(|known| known == name);
        let known =
            amounts.iter().filter_map(|(name, amount)| Some((number(name)? as u32, amount.counted())));
        known.collect()
    }

    /// The same with their names.
    pub(super) fn named<'a>(&'a self, amounts: &'a [(u32, u64)]) -> impl Iterator<Item = (&'a str, u64)> {
        amounts.iter().filter_map(|(number, amount)| Some((self.0.get(*number as usize)?.as_str(), *amount)))
    }
}
