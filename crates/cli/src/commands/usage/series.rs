//! Usage as a series: one value for each window, also for those without usage.

use std::collections::BTreeMap;

use tollgate::catalog::{Window, WindowUsage};
use tollgate::{Span, Tick};

/// The default number of windows.
const WINDOWS_SHOWN: [(Window, u64); 3] = [(Window::Hour, 24), (Window::Day, 30), (Window::Month, 12)];

/// The maximum number of windows of a series, counted from the end.
const WINDOWS_MAX: usize = 10_000;

/// The starts of consecutive windows, and the usage of each limit in each.
pub(super) struct Series {
    /// Whether there would be more windows before the first.
    pub(super) is_cut: bool,
    pub(super) starts: Vec<Tick>,
    pub(super) limits: BTreeMap<String, Vec<i64>>,
}

impl Series {
    /// Sorts usage into windows. `from` and `until` are times in the first window and after the last.
    pub(super) fn of(
        windows: &BTreeMap<Tick, WindowUsage>,
        window: Window,
        from: Tick,
        until: Tick,
    ) -> Series {
        let starts = starts(window, from, until);
        let mut limits: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for (start, usage) in windows {
            let Ok(index) = starts.binary_search(start) else { continue };
            for (limit, amount) in &usage.amounts {
                let sums = limits.entry(limit.clone()).or_insert_with(|| vec![0; starts.len()]);
                sums[index] = sums[index].saturating_add(*amount);
            }
        }
        let is_cut = starts.first().is_some_and(|first| *first > window.start(from));
        Series { is_cut, starts, limits }
    }
}

/// Returns the default start of a plot that ends now.
pub(super) fn default_from(window: Window, now: Tick) -> Tick {
    let shown = WINDOWS_SHOWN.iter().find(|(other, _)| *other == window).map_or(1, |(_, shown)| *shown);
    (1..shown).fold(window.start(now), |start, _| window.start(start - Span::from_micros(1)))
}

/// Returns the start of the next window.
fn next(window: Window, start: Tick) -> Tick {
    let beyond = match window {
        Window::Hour => Span::from_secs(3_600),
        Window::Day => Span::from_secs(86_400),
        // No month is longer, and none is so short that the one after it is skipped.
        Window::Month => Span::from_secs(31 * 86_400),
    };
    window.start(start + beyond)
}

fn starts(window: Window, from: Tick, until: Tick) -> Vec<Tick> {
    let last = window.start(until - Span::from_micros(1));
    // Counted from the end, so that there is a bound however long ago `from` was.
    let mut starts = vec![last];
    while let Some(first) = starts.last().copied()
        && first > window.start(from)
        && starts.len() < WINDOWS_MAX
    {
        starts.push(window.start(first - Span::from_micros(1)));
    }
    starts.reverse();
    debug_assert!(starts.windows(2).all(|pair| next(window, pair[0]) == pair[1]));
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::store::usage::iso;

    /// 2026-03-01T00:30:00Z.
    const NOW: Tick = Tick::from_secs(1_772_325_000);

    #[test]
    fn windows_follow_each_other_without_a_gap() {
        let shown = |window| {
            let starts = starts(window, default_from(window, NOW), NOW);
            (starts.len(), iso(starts[0]), iso(starts[starts.len() - 1]))
        };
        let row = |count, first: &str, last: &str| (count, first.to_owned(), last.to_owned());
        assert_eq!(shown(Window::Hour), row(24, "2026-02-28T01:00:00Z", "2026-03-01T00:00:00Z"));
        assert_eq!(shown(Window::Day), row(30, "2026-01-31T00:00:00Z", "2026-03-01T00:00:00Z"));
        assert_eq!(shown(Window::Month), row(12, "2025-04-01T00:00:00Z", "2026-03-01T00:00:00Z"));
    }

    #[test]
    fn an_end_at_an_edge_starts_no_window() {
        let starts = starts(Window::Hour, NOW - Span::from_secs(7_200), Tick::from_secs(1_772_323_200));
        assert_eq!(
            starts.iter().map(|at| iso(*at)).collect::<Vec<_>>(),
            ["2026-02-28T22:00:00Z", "2026-02-28T23:00:00Z"]
        );
    }

    #[test]
    fn the_series_has_a_bound_and_says_so() {
        assert!(Series::of(&BTreeMap::new(), Window::Hour, Tick::ZERO, NOW).is_cut);
        assert!(!Series::of(&BTreeMap::new(), Window::Month, Tick::ZERO, NOW).is_cut);
        assert_eq!(starts(Window::Hour, Tick::ZERO, NOW).len(), WINDOWS_MAX);
        assert_eq!(starts(Window::Hour, NOW, NOW).len(), 1);
    }
}
