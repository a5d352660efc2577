//! The codec of limits: the fields of their record.
//!
//! Each limit has fields named `l_{limit}_{suffix}`. The first three are those of zae-limiter,
//! which has only token buckets; a record that has no others is read as that. The others are
//! written only where they differ from the default.
//!
//! | suffix | meaning |
//! |---|---|
//! | `cp` | capacity: the burst of a rate, otherwise the amount |
//! | `ra` | amount in a period |
//! | `rp` | period in seconds, rounded up; 0 if the limit has no period |
//! | `kd` | kind: `calls`, `resource`, `quota`; else a rate |
//! | `al` | algorithm: `leaky_bucket`, `gcra`, `fixed_window`, `sliding_window`; else a token bucket |
//! | `pu` | period in microseconds, if it is not whole seconds |
//! | `rs` | resolution of a sliding window in microseconds, if it was chosen |
//! | `rt` | calendar of a quota, as text; a quota with none lasts its period after the first use |
//! | `un` | unit: decimals and symbol, such as `6:USD` |
//! | `so` | soft level |
//! | `sh` | true: counts and never refuses |
//! | `ub` | `burst`: the capacity is unbounded; `amount`: both are; the numbers are then the largest there are |

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate_core::{AMOUNT_MAX, Algorithm, Kind, Limit, LimitBuilder, Limits, Resets, UNBOUNDED, Unit};
use tollgate_store::records::{Fields, Item, Value};

use super::{OnUnavailable, StoredLimits};
use crate::{CatalogError, Result};

const ALGORITHMS: [(Algorithm, &str); 4] = [
    (Algorithm::LeakyBucket, "leaky_bucket"),
    (Algorithm::Gcra, "gcra"),
    (Algorithm::FixedWindow, "fixed_window"),
    (Algorithm::SlidingWindow, "sliding_window"),
];

/// The suffixes of the fields of a limit.
const SUFFIXES: [&str; 12] = ["cp", "ra", "rp", "kd", "al", "pu", "rs", "rt", "un", "so", "sh", "ub"];

/// Returns true if a field belongs to a limit, in the form that this program knows.
pub(crate) fn is_limit_field(field: &str) -> bool {
    let parts = field.strip_prefix("l_").and_then(|rest| rest.rsplit_once('_'));
    parts.is_some_and(|(_, suffix)| SUFFIXES.contains(&suffix))
}

/// Adds the fields of all limits.
pub(super) fn put_limits(fields: &mut Fields, limits: &Limits) {
    limits.iter().for_each(|limit| put_limit(fields, limit));
}

/// Decodes a record of limits.
pub(crate) fn read_config(item: &Item) -> Result<StoredLimits> {
    let bad = |why: String| CatalogError::bad_record(&item.key, why);
    let on_unavailable = match item.text("on_unavailable") {
        None => None,
        Some(name) => {
            let valid = "block, allow and local";
            let policy = OnUnavailable::from_name(name);
            Some(policy.ok_or_else(|| bad(format!("on_unavailable is {name:?}, valid are {valid}")))?)
        }
    };
    let config_version = item.int("config_version").and_then(|version| u64::try_from(version).ok());
    let limits = read_limits(&item.fields).map_err(bad)?;
    Ok(StoredLimits { limits, config_version: config_version.unwrap_or(0), on_unavailable })
}

fn put_limit(fields: &mut Fields, limit: &Limit) {
    let mut put = |suffix: &str, value: Value| {
        fields.insert(format!("l_{}_{suffix}", limit.name()), value);
    };
    let number = |amount: u64| Value::Int(i64::try_from(amount.min(AMOUNT_MAX)).unwrap_or(i64::MAX));
    put("cp", number(limit.capacity()));
    put("ra", number(limit.amount()));
    if limit.capacity() == UNBOUNDED {
        put("ub", if limit.amount() == UNBOUNDED { "amount" } else { "burst" }.into());
    }
    let micros = limit.period().map_or(0, |period| period.as_micros());
    put("rp", number(micros.div_ceil(1_000_000)));
    if !micros.is_multiple_of(1_000_000) {
        put("pu", number(micros));
    }
    let (kind, algorithm) = match limit.kind() {
        Kind::Calls(algorithm) => (Some("calls"), Some(algorithm)),
        Kind::Resource => (Some("resource"), None),
        Kind::Quota => (Some("quota"), None),
        Kind::Rate(algorithm) => (None, Some(algorithm)),
        // A kind that this program does not know cannot have been created by it either.
        _ => (None, None),
    };
    if let Some(kind) = kind {
        put("kd", kind.into());
    }
    if let Some((_, name)) = ALGORITHMS.iter().find(|(other, _)| Some(*other) == algorithm) {
        put("al", (*name).into());
    }
    if let Some(step) = limit.resolution() {
        put("rs", number(step.as_micros()));
    }
    if let Some(Resets::Calendar(calendar)) = limit.resets() {
        put("rt", calendar.text().into());
    }
    if let Some(unit) = limit.unit() {
        put("un", format!("{}:{}", unit.decimals(), unit.symbol()).into());
    }
    if let Some(level) = limit.soft_level() {
        put("so", number(level));
    }
    if limit.is_shadow() {
        put("sh", true.into());
    }
}

fn read_limits(fields: &Fields) -> std::result::Result<Limits, String> {
    let limits = by_limit(fields);
    let limits = limits.iter().map(|(name, parts)| parts.builder(name));
    Limits::new(limits.collect::<std::result::Result<Vec<_>, _>>()?).map_err(|why| why.to_string())
}

/// Returns the limits of a record that cannot be read, each with the reason and its fields.
pub(crate) fn unreadable_limits(fields: &Fields) -> Vec<(String, String, Vec<String>)> {
    let unreadable = |(name, parts): (&str, LimitFields<'_>)| {
        let limit = parts.builder(name).and_then(|builder| builder.build().map_err(|why| why.to_string()));
        let fields = || parts.0.keys().map(|suffix| format!("l_{name}_{suffix}")).collect();
        limit.err().map(|why| (name.to_owned(), why, fields()))
    };
    by_limit(fields).into_iter().filter_map(unreadable).collect()
}

fn by_limit(fields: &Fields) -> BTreeMap<&str, LimitFields<'_>> {
    let mut limits: BTreeMap<&str, LimitFields<'_>> = BTreeMap::new();
    for (field, value) in fields {
        // A suffix has no `_`, so the text before the last one is the name.
        let parts = field.strip_prefix("l_").and_then(|rest| rest.rsplit_once('_'));
        if let Some((limit, suffix)) = parts {
            limits.entry(limit).or_default().0.insert(suffix, value);
        }
    }
    limits
}

/// The fields of one limit, by their suffixes.
#[derive(Default)]
struct LimitFields<'a>(BTreeMap<&'a str, &'a Value>);

impl LimitFields<'_> {
    fn builder(&self, name: &str) -> std::result::Result<LimitBuilder, String> {
        let missing = |suffix: &str| format!("limit {name:?} has no number l_{name}_{suffix}");
        let number = |suffix: &str| self.number(suffix).ok_or_else(|| missing(suffix));
        let capacity = if self.0.contains_key("ub") { UNBOUNDED } else { number("cp")? };
        let amount = if self.text("ub") == Some("amount") { UNBOUNDED } else { number("ra")? };
        let period = match self.number("pu") {
            Some(micros) => Duration::from_micros(micros),
            None => Duration::from_secs(self.number("rp").unwrap_or(0)),
        };
        let mut builder = match self.text("kd") {
            None => self.measured(Limit::rate(name, amount, period)),
            Some("calls") => self.measured(Limit::calls(amount, period).named(name)),
            Some("resource") => Ok(Limit::resource(name, amount)),
            Some("quota") => self.resets(period).map(|resets| Limit::quota(name, amount, resets)),
            Some(other) => Err(format!("limit {name:?} is of kind {other:?}, which is not known here")),
        }?;
        if capacity != amount {
            builder = builder.burst(capacity);
        }
        if let Some(micros) = self.number("rs") {
            builder = builder.resolution(Duration::from_micros(micros));
        }
        if let Some(unit) = self.text("un") {
            builder =
                builder.unit(unit_of(unit).ok_or_else(|| format!("limit {name:?} has no unit {unit:?}"))?);
        }
        if let Some(level) = self.number("so") {
            builder = builder.soft(level);
        }
        Ok(if self.0.get("sh") == Some(&&Value::Bool(true)) { builder.shadow() } else { builder })
    }

    fn measured(&self, builder: LimitBuilder) -> std::result::Result<LimitBuilder, String> {
        let Some(name) = self.text("al") else { return Ok(builder) };
        let known = ALGORITHMS.iter().find(|(_, other)| *other == name);
        let (algorithm, _) = known.ok_or_else(|| format!("the algorithm {name:?} is not known here"))?;
        Ok(builder.algorithm(*algorithm))
    }

    fn resets(&self, period: Duration) -> std::result::Result<Resets, String> {
        let Some(text) = self.text("rt") else { return Ok(period.into()) };
        tollgate_calendar::parse(text).map(Resets::from).map_err(|why| why.to_string())
    }

    fn number(&self, suffix: &str) -> Option<u64> {
        match self.0.get(suffix)? {
            Value::Int(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    fn text(&self, suffix: &str) -> Option<&str> {
        match self.0.get(suffix)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

fn unit_of(text: &str) -> Option<Unit> {
    let (decimals, symbol) = text.split_once(':')?;
    Unit::new(symbol, decimals.parse().ok()?).ok()
}
