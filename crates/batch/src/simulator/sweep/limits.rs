//! Families of providers with limits.

use tollgate::{Span, Tick};

use super::{Best, Case, Family, ItemSizes};
use crate::simulator::{Disclosure, RetryAfter, SimLimit, SimProvider};
use tollgate_store::SplitMix64;

const SECOND: u64 = 1_000_000;

fn silent(retry_after: RetryAfter) -> Disclosure {
    Disclosure { retry_after, ..Disclosure::default() }
}

/// Returns buckets of a second and more, whose replies disclose nothing, or only how long to wait.
pub fn clean() -> Family {
    let bursts = |rate: u64| vec![rate.max(10), rate * 5, rate * 60];
    Family::new("clean", buckets(&[1, 3, 10, 30, 100], &[100, 1_000, 10_000], bursts))
}

/// Returns buckets of one call.
pub fn burst_of_one() -> Family {
    let mut cases = buckets(&[1, 3, 10, 30, 100, 500, 2_000], &[20, 100, 1_000, 7_000], |_| vec![1]);
    // One call in two seconds is half the rate of one.
    let slow = buckets(&[1], &[20, 1_000, 7_000], |_| vec![1]);
    cases.extend(slow.into_iter().map(|case| {
        let Best::Takes(best) = case.best else { return case };
        let provider = case.provider.changes_at(Tick::ZERO, 500);
        Case { provider, best: Best::Takes(Span::from_micros(best.as_micros() * 2)), ..case }
    }));
    Family::new("burst-1", cases)
}

/// Returns buckets of two to nine calls: fewer than start at first.
pub fn small_bursts() -> Family {
    Family::new("burst-2-to-9", buckets(&[1, 5, 30], &[200, 1_000, 5_000], |_| vec![2, 4, 6, 9]))
}

fn buckets(rates: &[u64], latencies: &[u64], bursts: impl Fn(u64) -> Vec<u64>) -> Vec<Case> {
    let mut cases = Vec::new();
    for retry_after in [RetryAfter::None, RetryAfter::Exact, RetryAfter::Seconds] {
        for &rate in rates {
            for &latency in latencies {
                for burst in bursts(rate) {
                    for refusal in [latency, latency.min(50)] {
                        for share in [2, 5] {
                            let limit = SimLimit::Bucket { rate, burst };
                            let workers = (rate * latency * share / 1_000).max(10);
                            let most = if rate > 100 { rate * 60 } else { rate * 100 * latency / 1_000 };
                            let items = most.max(2_000).max((rate * 200).min(100_000)) + burst;
                            let by_rate = (items - burst) * SECOND / rate + latency * 1_000;
                            let by_workers = items * latency * 1_000 / workers;
                            cases.push(Case {
                                provider: SimProvider::of_calls(limit, Span::from_millis(latency))
                                    .discloses(silent(retry_after))
                                    .refuses_within(Span::from_millis(refusal)),
                                sizes: ItemSizes::Calls(items),
                                workers,
                                seed: 1,
                                best: Best::Takes(Span::from_micros(by_rate.max(by_workers))),
                            });
                        }
                    }
                }
            }
        }
    }
    cases
}

/// Returns fixed or sliding windows of this many seconds, with latencies of which a few are very
/// long.
pub fn windows(seconds: u64, sliding: bool) -> Family {
    let mut cases = Vec::new();
    for rate in [3, 37, 200] {
        for headers in [false, true] {
            for retry_after in [RetryAfter::None, RetryAfter::Seconds] {
                for seed in 0..4 {
                    let (amount, span) = (rate * seconds, Span::from_secs(seconds));
                    let limit = if sliding {
                        SimLimit::Sliding { amount, span }
                    } else {
                        SimLimit::Window { amount, span }
                    };
                    let (items, workers) = ((rate * 900).clamp(2_000, 30_000), (rate * 8).max(16));
                    // A reply takes 1.65 times half a second on average.
                    let by_windows = (items.div_ceil(amount) - 1) * seconds * SECOND;
                    let by_workers = items * SECOND * 825 / 1_000 / workers;
                    cases.push(Case {
                        provider: SimProvider::of_calls(limit, Span::from_millis(500))
                            .heavy(seed * 31 + 7)
                            .discloses(Disclosure { headers, retry_after, minutes: false }),
                        sizes: ItemSizes::Calls(items),
                        workers,
                        seed: seed + 1,
                        best: Best::Takes(Span::from_micros(by_windows.max(by_workers) + SECOND)),
                    });
                }
            }
        }
    }
    Family::new(format!("{}-window-{seconds}s", if sliding { "sliding" } else { "fixed" }), cases)
}

/// Returns limits that change to this many thousandths at about the hundredth second, and back
/// after `lasts` seconds, if given.
pub fn changes(name: &str, of_thousand: u64, lasts: Option<u64>) -> Family {
    // The phase of the pace at the time of the change matters, so there are several times.
    let cases = [100, 109, 117, 126].into_iter().flat_map(|at| changes_at(at, of_thousand, lasts));
    Family::new(format!("limit-{name}"), cases.collect())
}

fn changes_at(second: u64, of_thousand: u64, lasts: Option<u64>) -> Vec<Case> {
    let mut cases = Vec::new();
    let back = lasts.map(|lasts| (second + lasts, 1_000));
    let steps: Vec<(u64, u64)> = [Some((second, of_thousand)), back].into_iter().flatten().collect();
    for rate in [3, 10, 50] {
        for latency in [200, 1_000] {
            for headers in [false, true] {
                for burst in [1, rate, rate * 10] {
                    let limit = SimLimit::Bucket { rate, burst };
                    let mut provider = SimProvider::of_calls(limit, Span::from_millis(latency))
                        .discloses(Disclosure { headers, ..Disclosure::default() });
                    for (at, of_thousand) in &steps {
                        provider = provider.changes_at(Tick::from_secs(*at), *of_thousand);
                    }
                    let workers = rate * latency / 1_000 * 30 + 20;
                    let items = rate * 400;
                    let last = with_changes(items, rate, workers * 1_000 / latency, &steps);
                    cases.push(Case {
                        provider,
                        sizes: ItemSizes::Calls(items + burst),
                        workers,
                        seed: burst,
                        best: Best::Takes((last + Span::from_millis(latency)).since(Tick::ZERO)),
                    });
                }
            }
        }
    }
    cases
}

/// Returns when the last of these calls starts at a rate that changes and is never above `most`.
fn with_changes(items: u64, rate: u64, most: u64, steps: &[(u64, u64)]) -> Tick {
    // In thousandths of a call, as changes are.
    let (mut at, mut left, mut pace) = (0, items * 1_000, rate * 1_000);
    for (second, of_thousand) in steps {
        let pass = (second * SECOND - at) / 1_000 * pace.min(most * 1_000) / 1_000;
        if pass >= left {
            break;
        }
        (at, left, pace) = (second * SECOND, left - pass, rate * of_thousand);
    }
    Tick::from_micros(at + left * SECOND / pace.min(most * 1_000))
}

/// Returns providers with a limit on calls and one on tokens, with a few calls that are very large.
pub fn calls_and_tokens() -> Family {
    const ITEMS: u64 = 3_000;
    let mut cases = Vec::new();
    for seed in 0..20 {
        for share in [12, 20, 30] {
            let mut random = SplitMix64::new(777 + seed);
            // Sizes double with half the probability, up to 64 times.
            let size = |draw: u64| 100 * (1 << (draw % 64).trailing_ones()) + draw / 64 % 100;
            let sizes: Vec<u64> = (0..ITEMS).map(|_| size(random.next_u64())).collect();
            let total: u64 = sizes.iter().sum();
            let (rate, tokens) = (20, total / ITEMS * share);
            let burst = tokens * 5;
            let calls = SimLimit::Bucket { rate, burst: rate };
            let by_tokens = total.saturating_sub(burst) * SECOND / tokens;
            cases.push(Case {
                provider: SimProvider::of_calls(calls, Span::from_millis(800))
                    .and_tokens(SimLimit::Bucket { rate: tokens, burst }),
                sizes: ItemSizes::Tokens(sizes),
                workers: 60,
                seed: seed + 1,
                best: Best::Takes(Span::from_micros((ITEMS * SECOND / rate).max(by_tokens))),
            });
        }
    }
    Family::new("calls-and-tokens", cases)
}

/// Returns providers that serve a limited number of calls at a time.
pub fn at_once() -> Family {
    let mut cases = Vec::new();
    for most in [4, 16, 64] {
        for latency in [100, 1_000] {
            for is_heavy in [false, true] {
                for seed in 0..5 {
                    let provider = SimProvider::unlimited(Span::from_millis(latency));
                    let provider = if is_heavy { provider.heavy(seed) } else { provider };
                    let average = latency * if is_heavy { 1_650 } else { 1_000 };
                    cases.push(Case {
                        provider: provider
                            .at_once(usize::try_from(most).unwrap_or(usize::MAX))
                            .refuses_within(Span::from_millis(30)),
                        sizes: ItemSizes::Calls(3_000),
                        workers: most * 4,
                        seed,
                        best: Best::Takes(Span::from_micros(3_000 * average / most)),
                    });
                }
            }
        }
    }
    Family::new("at-once", cases)
}
