//! Options of the mock provider as text: `100ms..2s`, `30s:rps=5`, `503@10s..20s`, `reset/7`.

use std::ops::RangeInclusive;
use std::time::Duration;

use tollgate_mock_provider::{LimitChange, Outage, OutageKind};

use crate::duration_text;

/// Parses a latency: a duration, or the shortest and the longest.
pub(crate) fn latency(text: &str) -> Result<RangeInclusive<Duration>, String> {
    let (low, high) = match text.split_once("..") {
        Some((low, high)) => (duration_text::parse(low)?, duration_text::parse(high)?),
        None => (duration_text::parse(text)?, duration_text::parse(text)?),
    };
    if low > high {
        return Err(format!("{text:?} ends before it begins; the shorter time comes first"));
    }
    Ok(low..=high)
}

/// Parses a change of limits at a time.
pub(crate) fn change(text: &str) -> Result<LimitChange, String> {
    const VALID: &str = "a time and limits, such as 30s:rps=5,burst=10 or 1m:tpm=1000,concurrency=4";
    let bad = || format!("{text:?} is not a change; valid is {VALID}");
    let (after, limits) = text.split_once(':').ok_or_else(bad)?;
    let mut change = LimitChange::after(duration_text::parse(after)?);
    for limit in limits.split(',') {
        let (name, count) = limit.split_once('=').ok_or_else(bad)?;
        let count =
            count.parse().map_err(|_| format!("{count:?} is not a whole number; valid is {VALID}"))?;
        change = match name {
            "rps" => change.requests_per_second(count),
            "burst" => change.burst(count),
            "tpm" => change.tokens_per_minute(count),
            "concurrency" => change.concurrency(count),
            _ => {
                return Err(format!(
                    "{name:?} is not a limit here; valid are rps, burst, tpm and concurrency"
                ));
            }
        };
    }
    Ok(change)
}

/// Parses an outage.
pub(crate) fn outage(text: &str) -> Result<Outage, String> {
    const VALID: &str = "KIND@FROM..TO or KIND/N, such as 503@10s..20s or reset/7";
    let bad = || format!("{text:?} is not an outage; valid is {VALID}");
    if let Some((kind, n)) = text.split_once('/') {
        let n = n.parse().ok().filter(|&n: &u64| n > 0).ok_or_else(bad)?;
        return Ok(Outage::every(n, trouble(kind)?));
    }
    let (kind, time) = text.split_once('@').ok_or_else(bad)?;
    let (from, to) = time.split_once("..").ok_or_else(bad)?;
    let (from, to) = (duration_text::parse(from)?, duration_text::parse(to)?);
    if from >= to {
        return Err(format!("{text:?} ends before it begins; valid is {VALID}"));
    }
    Ok(Outage::between(from, to, trouble(kind)?))
}

fn trouble(kind: &str) -> Result<OutageKind, String> {
    match kind {
        "hang" => Ok(OutageKind::Hang),
        "reset" => Ok(OutageKind::Reset),
        "midway" => Ok(OutageKind::Midway),
        _ => {
            let status = kind.parse().ok().filter(|status| OutageKind::is_status(*status));
            let bad = || {
                format!(
                    "{kind:?} is not a kind of outage; valid are hang, reset, midway, 429 and a status from 500 to 599"
                )
            };
            status.map(OutageKind::Status).ok_or_else(bad)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn valid_texts_are_parsed() {
        assert_eq!(latency("1s"), Ok(SECOND..=SECOND));
        assert_eq!(latency("0s..1s"), Ok(Duration::ZERO..=SECOND));
        assert_eq!(
            change("1s:rps=5,tpm=7"),
            Ok(LimitChange::after(SECOND).requests_per_second(5).tokens_per_minute(7))
        );
        assert_eq!(outage("503@1s..2s"), Ok(Outage::between(SECOND, 2 * SECOND, OutageKind::Status(503))));
        assert_eq!(outage("reset/7"), Ok(Outage::every(7, OutageKind::Reset)));
        assert_eq!(outage("429/10"), Ok(Outage::every(10, OutageKind::Status(429))));
        assert_eq!(outage("hang/1"), Ok(Outage::every(1, OutageKind::Hang)));
    }

    #[test]
    fn an_error_says_what_would_be_valid() {
        let wrong = [
            latency("2s..1s").unwrap_err(),
            latency("fast").unwrap_err(),
            change("30s").unwrap_err(),
            change("30s:rps").unwrap_err(),
            change("30s:rps=x").unwrap_err(),
            change("30s:rpm=1").unwrap_err(),
            outage("503").unwrap_err(),
            outage("200/3").unwrap_err(),
            outage("hang/0").unwrap_err(),
            outage("hang@2s..1s").unwrap_err(),
            outage("503@1s").unwrap_err(),
        ];
        for message in wrong {
            assert!(message.contains("valid") || message.contains("first"), "{message}");
        }
    }
}
