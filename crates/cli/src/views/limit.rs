use serde::Serialize;
use tollgate::{Algorithm, Kind, Limit, Resets, UNBOUNDED};

use crate::limit_text;
use crate::output::{TableCell, TextTable};

/// A limit.
#[derive(Clone, Serialize)]
pub(crate) struct LimitView {
    pub(crate) name: String,
    /// The limit as it is written after `-l`.
    pub(crate) text: String,
    kind: &'static str,
    /// `null` if it is unbounded, as is the capacity.
    amount: Option<u64>,
    capacity: Option<u64>,
    period_us: Option<u64>,
    calendar: Option<String>,
    algorithm: Option<&'static str>,
    resolution_us: Option<u64>,
    unit: Option<UnitView>,
    soft: Option<u64>,
    shadow: bool,
    #[serde(skip)]
    limit: Limit,
}

#[derive(Clone, Serialize)]
struct UnitView {
    symbol: String,
    decimals: u8,
}

impl From<&Limit> for LimitView {
    fn from(limit: &Limit) -> LimitView {
        let bounded = |amount: u64| (amount != UNBOUNDED).then_some(amount);
        let (kind, algorithm) = match limit.kind() {
            Kind::Rate(algorithm) => ("rate", Some(algorithm)),
            Kind::Calls(algorithm) => ("calls", Some(algorithm)),
            Kind::Resource => ("resource", None),
            Kind::Quota => ("quota", None),
            _ => ("other", None),
        };
        let calendar = match limit.resets() {
            Some(Resets::Calendar(calendar)) => Some(calendar.text().to_owned()),
            _ => None,
        };
        let unit =
            limit.unit().map(|unit| UnitView { symbol: unit.symbol().into(), decimals: unit.decimals() });
        LimitView {
            name: limit.name().to_string(),
            text: limit_text::print(limit),
            kind,
            amount: bounded(limit.amount()),
            capacity: bounded(limit.capacity()),
            period_us: limit.period().map(|period| period.as_micros()),
            calendar,
            algorithm: algorithm.map(algorithm_name),
            resolution_us: limit.resolution().map(|step| step.as_micros()),
            unit,
            soft: limit.soft_level(),
            shadow: limit.is_shadow(),
            limit: limit.clone(),
        }
    }
}

fn algorithm_name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::TokenBucket => "token_bucket",
        Algorithm::LeakyBucket => "leaky_bucket",
        Algorithm::Gcra => "gcra",
        Algorithm::FixedWindow => "fixed_window",
        Algorithm::SlidingWindow => "sliding_window",
        _ => "other",
    }
}

/// Returns the views of limits.
pub(crate) fn limit_views<'a>(limits: impl IntoIterator<Item = &'a Limit>) -> Vec<LimitView> {
    limits.into_iter().map(LimitView::from).collect()
}

/// Formats limits as they are written after `-l`, on one line.
pub(crate) fn limit_texts(limits: &[LimitView]) -> String {
    limits.iter().map(|limit| limit.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// Returns a table of limits.
pub(crate) fn limit_table(limits: &[LimitView]) -> TextTable {
    let mut table = TextTable::new(["LIMIT", "AMOUNT", "PER", "BURST", "NOTES"])
        .right(1)
        .right(3)
        .hide_empty(3)
        .hide_empty(4)
        .wrap(4);
    for limit in limits {
        table.row(limit_cells(limit));
    }
    table
}

/// Returns an empty table of limits with an additional first column.
pub(crate) fn remark_table(first: &str) -> TextTable {
    TextTable::new([first, "LIMIT", "AMOUNT", "PER", "BURST", "NOTES"])
        .right(2)
        .right(4)
        .hide_empty(4)
        .hide_empty(5)
        .wrap(5)
}

/// Returns the cells of a limit: name, amount, period, burst and notes.
pub(crate) fn limit_cells(view: &LimitView) -> [TableCell; 5] {
    let limit = &view.limit;
    let amount = |amount: u64| limit_text::shown(limit, amount);
    let burst = if limit.capacity() == limit.amount() { String::new() } else { amount(limit.capacity()) };
    [
        TableCell::name(&view.name),
        amount(limit.amount()).into(),
        per(limit).into(),
        burst.into(),
        TableCell::from(notes(view)),
    ]
}

fn per(limit: &Limit) -> String {
    match limit.resets() {
        Some(Resets::Calendar(calendar)) => calendar.text().into(),
        Some(Resets::AfterFirstUse(span)) => {
            format!("{} session", crate::duration_text::print(span.to_duration()))
        }
        _ => limit_text::per(limit).replace('-', " "),
    }
}

fn notes(view: &LimitView) -> String {
    let LimitView { kind, algorithm, soft, shadow, limit, .. } = view;
    let algorithm = algorithm.filter(|name| *name != "token_bucket").map(|name| name.replace('_', " "));
    let soft = soft.map(|level| format!("soft at {}", limit_text::shown(limit, level)));
    let calls = (*kind == "calls").then(|| "every call takes 1".to_owned());
    let shadow = shadow.then(|| "shadow".to_owned());
    [algorithm, calls, soft, shadow].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
