//! The pace against many providers: rates, latencies, bursts, workers and headers, simulated with
//! the state machine of the scope and a clock that jumps.
//!
//! The bounds hold for batches that are long compared with a round trip (at least a hundred of
//! them, and 2,000 items), since no batch learns a limit in less than a few round trips.

use tollgate::{Span, Tick};
use tollgate_batch::simulator::{Disclosure, RetryAfter, SimLimit, SimProvider, simulate, sweep};

struct Case {
    rate: u64,
    burst: u64,
    latency_ms: u64,
    workers: usize,
    refusal_ms: u64,
    disclosure: Disclosure,
    /// How much longer a reply takes at most, at random.
    spread_ms: u64,
    /// What another client has left of the burst, at most.
    left: u64,
}

impl Case {
    fn items(&self) -> u64 {
        (self.rate * 100 * self.latency_ms / 1_000).max(2_000).max(self.rate * 200) + self.burst
    }

    /// Returns the makespan of a batch that knows the limits, in microseconds.
    fn ideal(&self) -> u64 {
        let latency = self.latency_ms * 1_000;
        let at_once = self.burst.min(self.left);
        let by_rate = (self.items() - at_once) * 1_000_000 / self.rate + latency + self.spread_ms * 1_000;
        by_rate.max(self.items() * (latency + self.spread_ms * 500) / self.workers as u64)
    }

    /// Simulates the case. Returns the makespan and the refused calls, both in thousandths.
    fn run(&self) -> (u64, u64) {
        let limit = SimLimit::Bucket { rate: self.rate, burst: self.burst };
        let mut provider = SimProvider::of_calls(limit, Span::from_millis(self.latency_ms))
            .discloses(self.disclosure)
            .left(self.left)
            .slower_by(Span::from_millis(self.spread_ms))
            .refuses_within(Span::from_millis(self.refusal_ms));
        let simulated = simulate(&mut provider, &vec![0; self.items() as usize], self.workers, 1);
        (simulated.makespan.as_micros() * 1_000 / self.ideal(), simulated.rejected * 1_000 / simulated.calls)
    }
}

fn cases(disclosure: Disclosure, bursts: impl Fn(u64) -> Vec<u64>) -> Vec<Case> {
    let mut cases = Vec::new();
    for rate in [1, 3, 10, 30, 100] {
        for latency_ms in [100, 1_000, 10_000] {
            for burst in bursts(rate) {
                for refusal_ms in [latency_ms, latency_ms.min(50)] {
                    for share in [2, 5] {
                        let workers = (rate * latency_ms * share / 1_000).max(10) as usize;
                        let (spread_ms, left) = (0, u64::MAX);
                        cases.push(Case {
                            rate,
                            burst,
                            latency_ms,
                            workers,
                            refusal_ms,
                            disclosure,
                            spread_ms,
                            left,
                        });
                    }
                }
            }
        }
    }
    cases
}

/// Checks the bounds of all cases, and of their mean.
fn check(cases: &[Case], makespan: u64, rejected: u64) {
    let mut sum = 0;
    for case in cases {
        let (took, refused) = case.run();
        sum += took;
        let Case { rate, burst, latency_ms, workers, refusal_ms, disclosure, spread_ms, left } = case;
        let what = format!(
            "rate {rate} burst {burst} latency {latency_ms}+{spread_ms} refusal {refusal_ms} workers {workers} \
             left {left} {disclosure:?}: took {took} of 1000, refused {refused} of 1000"
        );
        assert!(took <= makespan, "{what}");
        assert!(refused <= rejected, "{what}");
    }
    let mean = sum / cases.len() as u64;
    assert!(mean <= 1_025, "{} cases took {mean} of 1000 on average", cases.len());
}

fn seconds_of(rate: u64) -> Vec<u64> {
    vec![rate.max(10), rate * 5, rate * 60]
}

#[test]
fn a_provider_that_discloses_nothing() {
    check(&cases(Disclosure::default(), seconds_of), 1_080, 50);
}

#[test]
fn a_provider_that_advises_the_exact_wait() {
    let disclosure = Disclosure { retry_after: RetryAfter::Exact, ..Disclosure::default() };
    check(&cases(disclosure, seconds_of), 1_080, 50);
}

#[test]
fn a_provider_that_advises_the_wait_in_whole_seconds() {
    let disclosure = Disclosure { retry_after: RetryAfter::Seconds, ..Disclosure::default() };
    check(&cases(disclosure, seconds_of), 1_180, 50);
}

#[test]
fn a_provider_that_advertises_its_limits() {
    let disclosure = Disclosure { headers: true, retry_after: RetryAfter::Exact, minutes: false };
    check(&cases(disclosure, |rate| vec![rate * 60]), 1_020, 10);
    // What is advertised of a small bucket is outdated when it arrives.
    check(&cases(disclosure, |rate| vec![rate.max(10), rate * 5]), 1_080, 50);
}

/// A batch that was killed and is resumed at once finds the provider like this.
#[test]
fn a_provider_that_was_emptied_just_before_and_whose_latency_varies() {
    let silent = Disclosure::default();
    let talking = Disclosure { headers: true, retry_after: RetryAfter::Exact, minutes: false };
    for (disclosure, left) in [(silent, 0), (silent, 3), (talking, 0), (talking, 3)] {
        let mut cases = cases(disclosure, |rate| vec![rate.max(10), rate * 60]);
        for case in &mut cases {
            (case.left, case.spread_ms, case.workers) = (left, case.latency_ms * 9, case.workers * 6);
        }
        check(&cases, 1_080, 50);
    }
}

#[test]
fn windows_of_a_minute_and_slices_of_ten_seconds() {
    for rate in [1, 10, 100] {
        for (span, minutes, headers) in [(60, false, true), (10, true, true), (60, false, false)] {
            let limit = SimLimit::Window { amount: rate * span, span: Span::from_secs(span) };
            let disclosure = Disclosure { headers, retry_after: RetryAfter::Seconds, minutes };
            let mut provider = SimProvider::of_calls(limit, Span::from_secs(1)).discloses(disclosure);
            let items = rate * 600;
            let simulated = simulate(&mut provider, &vec![0; items as usize], rate as usize * 2 + 10, 1);
            // The last window may be used at once or evenly, so one more window is allowed.
            let most = Tick::from_secs(600 * 108 / 100 + span);
            assert!(simulated.makespan <= most, "{rate} {span} {headers}: {:?}", simulated.makespan);
            // A twentieth, and the calls in flight when the first window is used up.
            let refused = simulated.calls / 20 + rate * 2 + 10;
            assert!(simulated.rejected <= refused, "{rate} {span} {headers}: {}", simulated.rejected);
        }
    }
}

#[test]
fn a_limit_that_is_found_is_remembered() {
    let mut provider = SimProvider::of_calls(SimLimit::Bucket { rate: 10, burst: 10 }, Span::from_secs(1));
    let simulated = simulate(&mut provider, &vec![0; 2_000], 50, 1);
    let found = simulated.scope.pace().calls().expect("it was met").millionths();
    assert!((9_800_000..=10_200_000).contains(&found), "{found}");
}

#[test]
fn an_hour_in_which_everything_is_refused_is_recovered_from() {
    for rate in [1, 10, 100] {
        let limit = SimLimit::Bucket { rate, burst: rate.max(10) };
        let (from, to) = (Tick::from_secs(50), Tick::from_secs(3_650));
        let mut provider = SimProvider::of_calls(limit, Span::from_secs(1)).outage(from, to);
        let items = rate * 1_000;
        let simulated = simulate(&mut provider, &vec![0; items as usize], rate as usize * 2 + 10, 1);
        let late = simulated.makespan.since(Tick::from_secs(4_600));
        assert!(late <= Span::from_secs(600), "{rate}: {late:?} late");
        assert!(simulated.rejected <= items / 20 + 200, "{rate}: {} refused", simulated.rejected);
    }
}

/// Checks a sample of `cargo xtask bench --only sweep/`: half of the cases of each family are
/// within these thousandths of the best time.
#[test]
fn each_family_of_providers_is_within_its_bound_of_the_best_time() {
    let families = [
        (sweep::burst_of_one(), 1_150),
        (sweep::noise(10, false, false), 1_150),
        (sweep::noise(10, true, false), 1_150),
        (sweep::noise(50, false, false), 1_300),
        (sweep::noise(50, true, false), 1_300),
        (sweep::noise(300, false, false), 2_500),
        (sweep::noise(300, true, false), 2_500),
        (sweep::false_headers(), 1_100),
        (sweep::advice_of_a_minute(), 2_000),
        (sweep::windows(1, false), 1_200),
        (sweep::windows(60, false), 1_200),
        (sweep::windows(1, true), 1_200),
        (sweep::windows(60, true), 1_200),
        (sweep::changes("halves", 500, None), 1_200),
        (sweep::changes("doubles", 2_000, None), 1_200),
        (sweep::changes("rises-tenfold", 10_000, None), 1_200),
        (sweep::calls_and_tokens(), 1_200),
        (sweep::stress(), 1_500),
    ];
    for (family, most) in families {
        let summary = family.run((family.cases() / 16).max(1));
        assert!(summary.took.p50 <= most, "{}: {summary:?}", family.name);
    }
    // Nine of ten cases, and not only half of them.
    let advised = sweep::advice_of_a_minute().run(1);
    assert!(advised.took.p90 <= 2_000, "{advised:?}");
    for (family, most) in [(sweep::windows(60, false), 160), (sweep::windows(60, true), 150)] {
        let summary = family.run(1);
        assert!(summary.refused.worst <= most, "{}: {summary:?}", family.name);
    }
}

/// A bucket of fewer calls than start at first refuses the last of them, which must not be mistaken
/// for noise.
#[test]
fn a_bucket_of_a_few_calls_is_met_with_few_refusals() {
    let summary = sweep::small_bursts().run(7);
    assert!(summary.took.p50 <= 1_050 && summary.took.p90 <= 1_200, "{summary:?}");
    assert!(summary.refused.p50 <= 40 && summary.refused.worst <= 80, "{summary:?}");
}

/// The earlier pace is restored as soon as the outage is over, whatever calls were in flight when
/// it began.
#[test]
fn a_minute_in_which_everything_is_refused_costs_hardly_more_than_a_minute() {
    for refusal in [2, 5, 200] {
        for at in (0..280).step_by(35) {
            for (latency, workers) in [(200, 50), (1_000, 50), (200, 8), (1_000, 200)] {
                let (from, to) = (Tick::from_millis(10_000 + at), Tick::from_millis(70_000 + at));
                let mut provider = SimProvider::unlimited(Span::from_millis(latency))
                    .outage(from, to)
                    .refuses_within(Span::from_millis(refusal));
                let simulated = simulate(&mut provider, &[0; 5_000], workers, 1);
                let ideal = 60_000 + 5_000 * latency / workers as u64;
                let most = Tick::from_millis(ideal * 13 / 10);
                let what = format!("refusal {refusal} at {at} latency {latency} workers {workers}");
                assert!(simulated.makespan <= most, "{what}: {:?} of {ideal} ms", simulated.makespan);
                assert!(simulated.rejected <= 250, "{what}: {}", simulated.rejected);
            }
        }
    }
}
