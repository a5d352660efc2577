//! The units of limits, by name, to parse and to format amounts.

use std::collections::BTreeMap;

use anyhow::Result;
use tollgate::catalog::CatalogError;
use tollgate::{Catalog, Level, Limit, Unit};

use crate::demand_text::{Amount, Exact};
use crate::exit::UsageError;
use crate::output::grouped;

/// The maximum number of buckets that are read to learn the units of usage.
const BUCKETS_SEEN_MAX: usize = 100;

/// The units of limits, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Units(BTreeMap<String, Option<Unit>>);

impl Units {
    /// Reads the units of the limits that a call acquires: those of the entity and of its parents.
    ///
    /// # Errors
    ///
    /// As the catalog; [`UsageError`] if a limit has another unit for a parent, so that no amount is right for both.
    pub(crate) fn of_call(catalog: &Catalog, entity: &str, resource: &str) -> Result<Units> {
        let chain = catalog.chain(entity, resource).wait()?;
        let limits = chain.links.iter().flat_map(|link| link.limits.iter());
        Ok(Units::agreed(limits, &format!("{entity} and its parents on {resource}"))?)
    }

    /// Reads the units of the limits of one entity for a resource, even if it is disabled; none, if there are no limits.
    ///
    /// # Errors
    ///
    /// As the catalog.
    pub(crate) fn of_bucket(catalog: &Catalog, entity: &str, resource: &str) -> Result<Units, CatalogError> {
        let levels = [
            Level::EntityResource(entity, resource),
            Level::Entity(entity),
            Level::Resource(resource),
            Level::System,
        ];
        for level in levels {
            let limits = catalog.limits(level).wait()?.map(|stored| stored.limits);
            // The first level that has limits applies; levels are not merged.
            if let Some(limits) = limits.filter(|limits| !limits.is_empty()) {
                let unit = |limit: &Limit| (limit.name().to_string(), limit.unit().cloned());
                return Ok(Units(limits.iter().map(unit).collect()));
            }
        }
        Ok(Units::default())
    }

    /// Collects the units of these limits, which belong to `whose`.
    ///
    /// # Errors
    ///
    /// [`UsageError`] if one name has several units.
    pub(crate) fn agreed<'a>(
        limits: impl IntoIterator<Item = &'a Limit>,
        whose: &str,
    ) -> Result<Units, UsageError> {
        let mut units = Units::default();
        for limit in limits {
            if let Some(other) = units.0.get(limit.name().as_str())
                && decimals(other.as_ref()) != decimals(limit.unit())
            {
                let name = limit.name();
                let one = named(other.as_ref());
                let two = named(limit.unit());
                let why = format!("{name} counts in {one} and in {two} for {whose}");
                return Err(UsageError(format!("{why}; give it one unit everywhere")));
            }
            units.0.insert(limit.name().to_string(), limit.unit().cloned());
        }
        Ok(units)
    }

    /// Reads the current units of the limits of these entities and resources. A name with several units is shown without
    /// one: usage is summed regardless of units.
    pub(crate) fn of_used<'a>(
        catalog: &Catalog,
        buckets: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Units {
        let buckets: std::collections::BTreeSet<(&str, &str)> = buckets.into_iter().collect();
        let mut units = Units::default();
        for (entity, resource) in buckets.into_iter().take(BUCKETS_SEEN_MAX) {
            // An error is ignored: an amount without its unit is still right.
            let of_bucket = Units::of_bucket(catalog, entity, resource).unwrap_or_default();
            for (limit, unit) in of_bucket.0 {
                let known = units.0.entry(limit).or_insert_with(|| unit.clone());
                if decimals(known.as_ref()) != decimals(unit.as_ref()) {
                    *known = None;
                }
            }
        }
        units
    }

    /// Converts amounts to the units of the limits. A whole number of an unknown limit is left for the limiter to
    /// refuse.
    ///
    /// # Errors
    ///
    /// [`UsageError`] for decimals that the limit does not have.
    pub(crate) fn exact(&self, amounts: &[Amount]) -> Result<Vec<Exact>, UsageError> {
        let exact = |Amount { limit, amount }: &Amount| {
            let counted = amount.in_unit(self.unit(limit)).map_err(|why| {
                if self.0.contains_key(limit) {
                    UsageError(format!("{limit}: {why}; nothing was done"))
                } else {
                    UsageError(format!("{limit} is not a limit here; known limits: {}", self.known()))
                }
            })?;
            Ok(Exact { limit: limit.clone(), amount: counted })
        };
        amounts.iter().map(exact).collect()
    }

    /// Formats an amount with its unit.
    pub(crate) fn show(&self, limit: &str, amount: i64) -> String {
        let sign = if amount < 0 { "-" } else { "" };
        match self.unit(limit) {
            Some(unit) => format!("{sign}{}", shown(unit, amount.unsigned_abs())),
            None => grouped(amount),
        }
    }

    /// Formats an amount that is never below zero, with its unit.
    pub(crate) fn show_taken(&self, limit: &str, amount: u64) -> String {
        self.unit(limit).map_or_else(|| grouped(amount), |unit| shown(unit, amount))
    }

    fn known(&self) -> String {
        if self.0.is_empty() {
            return "none".into();
        }
        self.0.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    /// Returns the unit of a limit, if it has one.
    pub(crate) fn unit(&self, limit: &str) -> Option<&Unit> {
        self.0.get(limit)?.as_ref()
    }
}

fn shown(unit: &Unit, amount: u64) -> String {
    let shown = unit.show(amount);
    let number = shown.strip_suffix(unit.symbol()).unwrap_or(&shown).trim_end();
    format!("{} {}", grouped(number), unit.symbol())
}

fn decimals(unit: Option<&Unit>) -> u8 {
    unit.map_or(0, Unit::decimals)
}

fn named(unit: Option<&Unit>) -> String {
    unit.map_or("whole numbers".into(), |unit| format!("{}:{}", unit.symbol(), unit.decimals()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_with_their_unit() {
        let spend = crate::limit_text::parse("spend:5/day,unit=USD:6").unwrap();
        let units = Units::agreed([&spend], "me").unwrap();
        assert_eq!(units.show("spend", 1_234_500_000), "1,234.5 USD");
        assert_eq!(units.show("spend", -1), "-0.000001 USD");
        assert_eq!(units.show_taken("spend", 0), "0 USD");
        assert_eq!(units.show("rpm", -1_000), "-1,000");
    }

    #[test]
    fn one_name_with_two_units_is_refused() {
        let limit = |text| crate::limit_text::parse(text).unwrap();
        let usd = limit("sp:5,unit=USD:6");
        let cents = limit("sp:5,unit=USD:2");
        let none = limit("sp:5");
        assert!(Units::agreed([&usd, &usd], "me").is_ok());
        let why = Units::agreed([&usd, &cents], "me").unwrap_err().to_string();
        assert_eq!(why, "sp counts in USD:6 and in USD:2 for me; give it one unit everywhere");
        assert!(Units::agreed([&none, &usd], "me").is_err());
    }
}
