//! Formatting of limits.

use tollgate::{Algorithm, Kind, Limit, Resets, UNBOUNDED};

use super::{ALGORITHMS, AT_ONCE, NO_BOUND, PERIODS};
use crate::duration_text;
use crate::output::grouped;

/// Formats a limit as it is written after `-l`.
pub(crate) fn print(limit: &Limit) -> String {
    let mut text = format!("{}:{}/{}", limit.name(), amount(limit, limit.amount()), per(limit));
    if limit.capacity() != limit.amount() {
        text.push(':');
        text.push_str(&amount(limit, limit.capacity()));
    }
    for option in options(limit) {
        text.push(',');
        text.push_str(&option);
    }
    text
}

/// Formats an amount of a limit with grouped digits and its unit.
pub(crate) fn shown(limit: &Limit, number: u64) -> String {
    let symbol = limit.unit().filter(|_| number != UNBOUNDED).map(|unit| format!(" {}", unit.symbol()));
    format!("{}{}", grouped(amount(limit, number)), symbol.unwrap_or_default())
}

/// Formats an amount of a limit in its unit, without the symbol.
pub(crate) fn amount(limit: &Limit, amount: u64) -> String {
    if amount == UNBOUNDED {
        return NO_BOUND.into();
    }
    match limit.unit() {
        Some(unit) => {
            let shown = unit.show(amount);
            shown.strip_suffix(unit.symbol()).unwrap_or(&shown).trim_end().into()
        }
        None => amount.to_string(),
    }
}

/// Formats the period of a limit: `minute`, `90s`, `at-once`, `session(3h)`.
pub(crate) fn per(limit: &Limit) -> String {
    match (limit.resets(), limit.period()) {
        (Some(Resets::Calendar(calendar)), _) => format!("cron({})", calendar.text()),
        (Some(Resets::AfterFirstUse(span)), _) => {
            format!("session({})", duration_text::print(span.to_duration()))
        }
        (_, Some(period)) => {
            let length = period.to_duration();
            let is_equal = |(_, seconds): &&(&str, u64)| length == std::time::Duration::from_secs(*seconds);
            let word = PERIODS.iter().find(is_equal).map(|(word, _)| (*word).to_owned());
            word.unwrap_or_else(|| duration_text::print(length))
        }
        (_, None) => AT_ONCE.into(),
    }
}

fn options(limit: &Limit) -> Vec<String> {
    let algorithm = match limit.kind() {
        Kind::Rate(algorithm) | Kind::Calls(algorithm) => Some(algorithm),
        _ => None,
    };
    let word = |algorithm: Algorithm| {
        ALGORITHMS.iter().find(|(_, known)| *known == algorithm).map(|(word, _)| *word)
    };
    let mut options: Vec<String> = algorithm.and_then(word).map(str::to_owned).into_iter().collect();
    if let Some(step) = limit.resolution() {
        options.push(format!("resolution={}", duration_text::print(step.to_duration())));
    }
    if let Kind::Calls(_) = limit.kind() {
        options.push("calls".into());
    }
    if let Some(level) = limit.soft_level() {
        options.push(format!("soft={}", amount(limit, level)));
    }
    if limit.is_shadow() {
        options.push("shadow".into());
    }
    if let Some(unit) = limit.unit() {
        options.push(format!("unit={}:{}", unit.symbol(), unit.decimals()));
    }
    options
}
