//! Encoding of the limits of a bucket as attributes.
//!
//! Limits of the original, which are token buckets in the order of their names, are three numbers each, as it writes
//! them. All others are one text.

use std::time::Duration;

use tollgate_core::{Limit, Limits, MILLIS};

use super::BadItem;
use super::values::{number, read_text, read_unsigned, text};
use crate::service::Attributes;

/// The limit that the original counts writes with. It is hidden from callers.
pub(crate) const WCU: &str = "wcu";

const TEXT: &str = "lt";
const SUFFIXES: [&str; 3] = ["cp", "ra", "rp"];

pub(crate) fn write(limits: &Limits, attributes: &mut Attributes) {
    let mut plain = Attributes::new();
    for limit in limits.iter() {
        let (period, millis) =
            (limit.period().map_or(0, |period| period.as_micros() / 1_000), |amount: u64| {
                number(i128::from(amount) * MILLIS)
            });
        let values = [millis(limit.capacity()), millis(limit.amount()), number(period)];
        plain.extend(SUFFIXES.into_iter().zip(values).map(|(suffix, value)| (name(limit, suffix), value)));
    }
    if read_plain(&plain).is_ok_and(|read| read == *limits) {
        attributes.extend(plain);
    } else {
        attributes.insert(TEXT.into(), text(limits.clone().at_version(0).to_text()));
    }
}

/// Decodes limits, at version `version`.
pub(crate) fn read(attributes: &Attributes, version: u64) -> Result<Limits, BadItem> {
    let limits = match read_text(attributes.get(TEXT)) {
        Some(said) => Limits::from_text(said, &|text| tollgate_calendar::parse(text).ok())
            .map_err(|why| BadItem(why.to_string()))?,
        None => read_plain(attributes)?,
    };
    Ok(limits.at_version(version))
}

fn name(limit: &Limit, suffix: &str) -> String {
    format!("b_{}_{suffix}", limit.name())
}

fn read_plain(attributes: &Attributes) -> Result<Limits, BadItem> {
    let of_capacity = |name: &String| Some(name.strip_prefix("b_")?.strip_suffix("_cp")?.to_owned());
    let mut names: Vec<String> =
        attributes.keys().filter_map(of_capacity).filter(|name| name != WCU).collect();
    names.sort_unstable();
    let limit = |limit: &String| {
        let get = |suffix: &str| {
            let name = format!("b_{limit}_{suffix}");
            read_unsigned(attributes.get(&name)).ok_or_else(|| BadItem(format!("{name} is no number")))
        };
        let [capacity, amount, period] = SUFFIXES.map(get);
        let (capacity, amount) = (capacity?, amount?);
        // A quota of the original: when it resets is in the stored limits, which add it to the bucket.
        if amount == 0 {
            return Ok(None);
        }
        let (capacity, amount) = (capacity / 1_000, amount / 1_000);
        let limit = Limit::rate(limit.as_str(), amount, Duration::from_millis(period?));
        Ok(Some(if capacity == amount { limit } else { limit.burst(capacity) }))
    };
    let limits = names.iter().filter_map(|name| limit(name).transpose());
    let limits = limits.collect::<Result<Vec<_>, BadItem>>()?;
    Limits::new(limits).map_err(|why| BadItem(why.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(limits: &Limits) -> (Limits, bool) {
        let mut attributes = Attributes::new();
        write(limits, &mut attributes);
        (read(&attributes, 0).expect("it was written"), attributes.contains_key(TEXT))
    }

    #[test]
    fn token_buckets_are_numbers_and_all_others_a_text() {
        let of = |limits: Vec<tollgate_core::LimitBuilder>| Limits::new(limits).expect("they are valid");
        let plain = of(vec![Limit::per_minute("rpm", 10), Limit::per_second("tpm_2", 5).burst(50)]);
        assert_eq!(round_trip(&plain), (plain.clone(), false));
        for limits in [
            of(vec![Limit::per_minute("tpm", 10), Limit::per_minute("rpm", 5)]),
            of(vec![Limit::resource("slots", 3)]),
            of(vec![Limit::per_minute("rpm", 10).shadow()]),
            of(vec![Limit::rate("rpm", 10, Duration::from_micros(1_500))]),
            of(vec![Limit::per_minute("rpm", tollgate_core::UNBOUNDED)]),
            of(vec![Limit::calls(3, Duration::from_secs(1))]),
        ] {
            assert_eq!(round_trip(&limits), (limits.clone(), true));
        }
    }
}
