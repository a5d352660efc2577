//! Throughput of a batch: how fast requests finish, and when the last one will.

use std::collections::VecDeque;
use std::time::Duration;

/// The rate is that of this time span.
const RATE_SPAN: Duration = Duration::from_secs(10);

/// The time to completion is estimated from this time span, so that a cooldown of a few seconds does not hide it.
const ETA_SPAN: Duration = Duration::from_secs(60);

/// The minimum time between two samples, which bounds their number.
const SAMPLE_MIN: Duration = Duration::from_millis(200);

/// Samples of the number of finished requests in the last minute.
pub(crate) struct Throughput {
    samples: VecDeque<(Duration, u64)>,
}

impl Throughput {
    /// Creates an empty record.
    pub(crate) fn new() -> Throughput {
        Throughput { samples: VecDeque::from([(Duration::ZERO, 0)]) }
    }

    /// Adds a sample: `finished` requests after `elapsed`.
    pub(crate) fn record(&mut self, elapsed: Duration, finished: u64) {
        if self.samples.back().is_some_and(|(at, _)| elapsed < *at + SAMPLE_MIN) {
            return;
        }
        self.samples.push_back((elapsed, finished));
        // The sample before the span stays, because the first one of the span is compared with it.
        while self.samples.get(1).is_some_and(|(at, _)| *at + ETA_SPAN <= elapsed) {
            self.samples.pop_front();
        }
    }

    /// Returns the requests per second of the last ten seconds.
    pub(crate) fn per_second(&self) -> f64 {
        self.rate_over(RATE_SPAN)
    }

    /// Returns how long `left` requests will take; `None` while nothing finishes.
    pub(crate) fn eta(&self, left: u64) -> Option<Duration> {
        let seconds = left as f64 / self.rate_over(ETA_SPAN);
        Duration::try_from_secs_f64(seconds).ok()
    }

    fn rate_over(&self, span: Duration) -> f64 {
        let Some(&(now, finished)) = self.samples.back() else { return 0.0 };
        let first = self.samples.iter().rev().find(|(at, _)| *at + span <= now).or(self.samples.front());
        let Some(&(from, before)) = first.filter(|(at, _)| *at < now) else { return 0.0 };
        finished.saturating_sub(before) as f64 / (now - from).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(samples: &[(u64, u64)]) -> Throughput {
        let mut throughput = Throughput::new();
        for (seconds, finished) in samples {
            throughput.record(Duration::from_secs(*seconds), *finished);
        }
        throughput
    }

    #[test]
    fn the_rate_is_that_of_the_last_ten_seconds_and_the_rest_goes_by_the_last_minute() {
        let steady = after(&[(1, 10), (2, 20), (30, 300)]);
        assert_eq!(steady.per_second(), 10.0);
        assert_eq!(steady.eta(50), Some(Duration::from_secs(5)));
        let cooling = after(&[(50, 500), (60, 500)]);
        assert_eq!(cooling.per_second(), 0.0);
        assert_eq!(cooling.eta(500), Some(Duration::from_secs(60)));
    }

    #[test]
    fn without_finished_requests_there_is_no_eta() {
        assert_eq!(Throughput::new().eta(10), None);
        assert_eq!(after(&[(5, 0)]).eta(10), None);
    }

    #[test]
    fn samples_are_bounded() {
        let mut throughput = Throughput::new();
        for ms in 0..1_000_000 {
            throughput.record(Duration::from_millis(ms), ms);
        }
        assert!(throughput.samples.len() < 310, "{}", throughput.samples.len());
    }
}
