//! The result of a row, and whether it passes its bar.

use std::fmt;

/// The bound of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Threshold {
    /// Ours costs at most this many times what the peer's costs.
    CostAtMost(f64),
    /// Ours costs at least this many times less than the peer's.
    GainAtLeast(f64),
    /// Our own value is at most this, regardless of the peer.
    ValueAtMost(f64),
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CostAtMost(limit) => write!(f, "<= {limit:?}"),
            Self::GainAtLeast(limit) => write!(f, ">= {limit}"),
            Self::ValueAtMost(limit) => write!(f, "<= {limit}"),
        }
    }
}

/// One line of the table. Both values are in `unit`.
#[derive(Debug, Default)]
pub(crate) struct BenchResult {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) ours: Option<f64>,
    pub(crate) peer: Option<(&'static str, f64)>,
    pub(crate) bar: Option<Threshold>,
    pub(crate) detail: String,
    pub(crate) failed: bool,
}

impl BenchResult {
    pub(crate) fn failed(name: &str, error: &anyhow::Error) -> Self {
        Self { name: name.to_owned(), detail: format!("failed: {error:#}"), failed: true, ..Self::default() }
    }

    /// Returns our value compared with the peer's, in the direction of the bar.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let (ours, (_, peer)) = (self.ours?, self.peer?);
        Some(if matches!(self.bar, Some(Threshold::GainAtLeast(_))) { peer / ours } else { ours / peer })
    }

    /// Returns the value of the row: the ratio if there is a peer and no bar for the plain value.
    pub(crate) fn value(&self) -> Option<f64> {
        if self.is_ratio() { self.ratio() } else { self.ours }
    }

    /// Returns the unit of that value.
    pub(crate) fn value_unit(&self) -> &'static str {
        if self.is_ratio() { "x" } else { self.unit }
    }

    fn is_ratio(&self) -> bool {
        self.peer.is_some() && !matches!(self.bar, Some(Threshold::ValueAtMost(_)))
    }

    /// Returns whether the bar holds; `None` without a bar or a value.
    pub(crate) fn holds(&self) -> Option<bool> {
        let value = self.value()?;
        Some(match self.bar? {
            Threshold::CostAtMost(limit) | Threshold::ValueAtMost(limit) => value <= limit,
            Threshold::GainAtLeast(limit) => value >= limit,
        })
    }

    /// Returns whether the row passes `--check`: a bar without a value does not.
    pub(crate) fn passes(&self) -> bool {
        !self.failed && (self.bar.is_none() || self.holds() == Some(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(ours: Option<f64>, bar: Threshold) -> BenchResult {
        BenchResult {
            unit: "ns",
            ours,
            peer: Some(("governor", 20.0)),
            bar: Some(bar),
            ..BenchResult::default()
        }
    }

    #[test]
    fn a_cost_is_ours_over_the_peers() {
        let row = finding(Some(30.0), Threshold::CostAtMost(2.0));
        assert_eq!((row.value(), row.value_unit(), row.holds()), (Some(1.5), "x", Some(true)));
        assert_eq!(finding(Some(41.0), Threshold::CostAtMost(2.0)).holds(), Some(false));
    }

    #[test]
    fn a_gain_is_the_peers_over_ours() {
        let row = finding(Some(2.0), Threshold::GainAtLeast(8.0));
        assert_eq!((row.value(), row.value_unit(), row.holds()), (Some(10.0), "x", Some(true)));
        assert_eq!(finding(Some(3.0), Threshold::GainAtLeast(8.0)).holds(), Some(false));
    }

    #[test]
    fn a_bar_on_the_value_ignores_the_peer() {
        let row = finding(Some(64.0), Threshold::ValueAtMost(64.0));
        assert_eq!((row.value(), row.value_unit(), row.holds()), (Some(64.0), "ns", Some(true)));
    }

    #[test]
    fn what_was_not_measured_does_not_hold_and_does_not_pass() {
        let row = finding(None, Threshold::CostAtMost(2.0));
        assert_eq!((row.value(), row.holds(), row.passes()), (None, None, false));
        assert!(!BenchResult::failed("core/x", &anyhow::anyhow!("no")).passes());
        assert!(BenchResult::default().passes());
    }
}
