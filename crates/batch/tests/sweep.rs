//! The pace against many providers: rates, latencies, bursts, workers and manners, with nothing but the machine of the
//! scope and a clock that jumps.
//!
//! What holds is said for batches that are long compared with a round trip (a hundred of them, and 2,000 items at
//! least), since no batch learns a limit in less than a few round trips.

use tollgate::{Span, Tick};
use tollgate_batch::simulator::{Manners, RetryAfter, SimLimit, SimProvider, play, sweep};

struct Case {
    rate: u64,
    burst: u64,
    latency_ms: u64,
    workers: usize,
    refusal_ms: u64,
    manners: Manners,
    /// How much longer an answer takes at most, by chance.
    spread_ms: u64,
    /// What another client left just before, at most.
    left: u64,
}

impl Case {
    fn items(&self) -> u64 {
        (self.rate * 100 * self.latency_ms / 1_000).max(2_000).max(self.rate * 200) + self.burst
    }

    /// The makespan of a batch that knows everything, in microseconds.
    fn ideal(&self) -> u64 {
        let latency = self.latency_ms * 1_000;
        let at_once = self.burst.min(self.left);
        let by_rate = (self.items() - at_once) * 1_000_000 / self.rate + latency + self.spread_ms * 1_000;
        by_rate.max(self.items() * (latency + self.spread_ms * 500) / self.workers as u64)
    }

    /// How it went: the makespan, and the calls that were refused, both of a thousand.
    fn play(&self) -> (u64, u64) {
        let limit = SimLimit::Bucket { rate: self.rate, burst: self.burst };
        let mut provider = SimProvider::of_calls(limit, Span::from_millis(self.latency_ms))
            .manners(self.manners)
            .left(self.left)
            .slower_by(Span::from_millis(self.spread_ms))
            .refuses_within(Span::from_millis(self.refusal_ms));
        let played = play(&mut provider, &vec![0; self.items() as usize], self.workers, 1);
        (played.makespan.as_micros() * 1_000 / self.ideal(), played.rejected * 1_000 / played.calls)
    }
}

fn cases(manners: Manners, bursts: impl Fn(u64) -> Vec<u64>) -> Vec<Case> {
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
                            manners,
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

/// Checks all cases, and their mean.
fn check(cases: &[Case], makespan: u64, rejected: u64) {
    let mut sum = 0;
    for case in cases {
        let (took, refused) = case.play();
        sum += took;
        let Case { rate, burst, latency_ms, workers, refusal_ms, manners, spread_ms, left } = case;
        let what = format!(
            "rate {rate} burst {burst} latency {latency_ms}+{spread_ms} refusal {refusal_ms} workers {workers} \
             left {left} {manners:?}: took {took} of 1000, refused {refused} of 1000"
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
fn a_provider_that_says_nothing_but_no() {
    check(&cases(Manners::default(), seconds_of), 1_080, 50);
}

#[test]
fn a_provider_that_says_how_long_to_wait() {
    let manners = Manners { retry_after: RetryAfter::Exact, ..Manners::default() };
    check(&cases(manners, seconds_of), 1_080, 50);
}

#[test]
fn a_provider_that_says_how_long_to_wait_in_whole_seconds() {
    let manners = Manners { retry_after: RetryAfter::Seconds, ..Manners::default() };
    check(&cases(manners, seconds_of), 1_180, 50);
}

#[test]
fn a_provider_that_says_how_its_limits_stand() {
    let manners = Manners { headers: true, retry_after: RetryAfter::Exact, minutes: false };
    check(&cases(manners, |rate| vec![rate * 60]), 1_020, 10);
    // What is said of a small bucket is over before it arrives.
    check(&cases(manners, |rate| vec![rate.max(10), rate * 5]), 1_080, 50);
}

/// As a batch finds it that was killed and is resumed at once.
#[test]
fn a_provider_that_was_emptied_just_before_and_whose_latency_varies() {
    let silent = Manners::default();
    let talking = Manners { headers: true, retry_after: RetryAfter::Exact, minutes: false };
    for (manners, left) in [(silent, 0), (silent, 3), (talking, 0), (talking, 3)] {
        let mut cases = cases(manners, |rate| vec![rate.max(10), rate * 60]);
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
            let manners = Manners { headers, retry_after: RetryAfter::Seconds, minutes };
            let mut provider = SimProvider::of_calls(limit, Span::from_secs(1)).manners(manners);
            let items = rate * 600;
            let played = play(&mut provider, &vec![0; items as usize], rate as usize * 2 + 10, 1);
            // The last window may be used at once or evenly, so one more than there must be is no loss.
            let most = Tick::from_secs(600 * 108 / 100 + span);
            assert!(played.makespan <= most, "{rate} {span} {headers}: {:?}", played.makespan);
            // A twentieth, and what is under way when the first window is used up.
            let refused = played.calls / 20 + rate * 2 + 10;
            assert!(played.rejected <= refused, "{rate} {span} {headers}: {}", played.rejected);
        }
    }
}

#[test]
fn a_limit_that_is_found_is_remembered() {
    let mut provider = SimProvider::of_calls(SimLimit::Bucket { rate: 10, burst: 10 }, Span::from_secs(1));
    let played = play(&mut provider, &vec![0; 2_000], 50, 1);
    let found = played.scope.pace().calls().expect("it was met").millionths();
    assert!((9_800_000..=10_200_000).contains(&found), "{found}");
}

#[test]
fn an_hour_in_which_everything_is_refused_is_recovered_from() {
    for rate in [1, 10, 100] {
        let limit = SimLimit::Bucket { rate, burst: rate.max(10) };
        let (from, to) = (Tick::from_secs(50), Tick::from_secs(3_650));
        let mut provider = SimProvider::of_calls(limit, Span::from_secs(1)).away(from, to);
        let items = rate * 1_000;
        let played = play(&mut provider, &vec![0; items as usize], rate as usize * 2 + 10, 1);
        let late = played.makespan.since(Tick::from_secs(4_600));
        assert!(late <= Span::from_secs(600), "{rate}: {late:?} late");
        assert!(played.rejected <= items / 20 + 200, "{rate}: {} refused", played.rejected);
    }
}

/// A part of what `cargo xtask bench --only sweep/` plays: half of the cases of each family at least are within this of the best,
/// of a thousand.
#[test]
fn each_family_of_providers_is_met_about_as_well_as_can_be() {
    let families = [
        (sweep::burst_of_one(), 1_150),
        (sweep::noise(10, false, false), 1_150),
        (sweep::noise(10, true, false), 1_150),
        (sweep::noise(50, false, false), 1_300),
        (sweep::noise(50, true, false), 1_300),
        (sweep::noise(300, false, false), 2_500),
        (sweep::noise(300, true, false), 2_500),
        (sweep::headers_that_lie(), 1_100),
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
        let summary = family.play((family.cases() / 16).max(1));
        assert!(summary.took.p50 <= most, "{}: {summary:?}", family.name);
    }
    // Nine of ten, and not only half of them.
    let advised = sweep::advice_of_a_minute().play(1);
    assert!(advised.took.p90 <= 2_000, "{advised:?}");
    for (family, most) in [(sweep::windows(60, false), 160), (sweep::windows(60, true), 150)] {
        let summary = family.play(1);
        assert!(summary.refused.worst <= most, "{}: {summary:?}", family.name);
    }
}

/// A bucket of fewer calls than start at first refuses the last of them, which is not taken for noise.
#[test]
fn a_bucket_of_a_few_calls_is_met_with_few_refusals() {
    let summary = sweep::small_bursts().play(7);
    assert!(summary.took.p50 <= 1_050 && summary.took.p90 <= 1_200, "{summary:?}");
    assert!(summary.refused.p50 <= 40 && summary.refused.worst <= 80, "{summary:?}");
}

/// Whatever the calls under way were doing when it began, the pace is what it was before as soon as it is over.
#[test]
fn a_minute_in_which_everything_is_refused_costs_hardly_more_than_a_minute() {
    for refusal in [2, 5, 200] {
        for at in (0..280).step_by(35) {
            for (latency, workers) in [(200, 50), (1_000, 50), (200, 8), (1_000, 200)] {
                let (from, to) = (Tick::from_millis(10_000 + at), Tick::from_millis(70_000 + at));
                let mut provider = SimProvider::free(Span::from_millis(latency))
                    .away(from, to)
                    .refuses_within(Span::from_millis(refusal));
                let played = play(&mut provider, &[0; 5_000], workers, 1);
                let ideal = 60_000 + 5_000 * latency / workers as u64;
                let most = Tick::from_millis(ideal * 13 / 10);
                let what = format!("refusal {refusal} at {at} latency {latency} workers {workers}");
                assert!(played.makespan <= most, "{what}: {:?} of {ideal} ms", played.makespan);
                assert!(played.rejected <= 250, "{what}: {}", played.rejected);
            }
        }
    }
}
