//! Families of providers that refuse calls at any pace, or send false headers.

use std::time::Duration;

use tollgate::Span;

use super::{Best, Case, Family, ItemSizes};
use crate::simulator::{FalseHeaders, SimLimit, SimNoise, SimProvider};
use tollgate_store::SplitMix64;

const ITEMS: u64 = 5_000;

fn pick(random: &mut SplitMix64, of: &[u64]) -> u64 {
    of[usize::try_from(random.next_u64() % of.len() as u64).unwrap_or(0)]
}

/// Returns providers that refuse this many of a thousand calls at random, as by an overloaded
/// provider or as by a limit; with `is_limited` there is a limit as well.
pub fn noise(of_thousand: u64, overloaded: bool, is_limited: bool) -> Family {
    let mut random = SplitMix64::new(of_thousand);
    let mut cases = Vec::new();
    for seed in 0..100 {
        let latency = pick(&mut random, &[20, 60, 200, 1_000, 5_000]);
        let workers = pick(&mut random, &[8, 32, 100]);
        let refusal = pick(&mut random, &[latency, 20]);
        let rate = pick(&mut random, &[10, 100, 500]);
        let burst = pick(&mut random, &[1, rate, rate * 60]);
        let latency = Span::from_millis(latency);
        let provider = if is_limited {
            SimProvider::of_calls(SimLimit::Bucket { rate, burst }, latency)
        } else {
            SimProvider::unlimited(latency)
        }
        .refuses_within(Span::from_millis(refusal));
        let noise = SimNoise { of_thousand, overloaded, advice: None };
        cases.push(Case::beside(provider.clone(), provider.noise(noise, seed), ITEMS, workers, seed));
    }
    let status = if overloaded { 529 } else { 429 };
    let beside = if is_limited { "-beside-a-limit" } else { "" };
    Family::new(format!("noise-{}%-{status}{beside}", of_thousand / 10), cases)
}

/// Returns providers whose headers have a limit of 0, or with nothing left, for ever.
pub fn false_headers() -> Family {
    let mut cases = Vec::new();
    for headers in [FalseHeaders::LimitZero, FalseHeaders::NothingLeft] {
        for (rate, latency, workers) in
            [(10, 1_000, 50), (100, 100, 50), (100, 1_000, 300), (0, 100, 50), (3, 200, 10)]
        {
            for of_thousand in [0, 10] {
                for seed in 0..3 {
                    let latency = Span::from_millis(latency);
                    let provider = match rate {
                        0 => SimProvider::unlimited(latency),
                        rate => SimProvider::of_calls(SimLimit::Bucket { rate, burst: rate }, latency),
                    };
                    let noise = SimNoise { of_thousand, overloaded: false, advice: None };
                    let provider = provider.noise(noise, seed);
                    cases.push(Case::beside(
                        provider.clone(),
                        provider.false_headers(headers),
                        2_000,
                        workers,
                        seed,
                    ));
                }
            }
        }
    }
    Family::new("headers-that-headers", cases)
}

/// Returns providers that refuse a twentieth of the calls with the advice to wait for a minute.
pub fn advice_of_a_minute() -> Family {
    let mut cases = Vec::new();
    for (latency, workers) in [(20, 8), (200, 32), (1_000, 100), (5_000, 100), (1_000, 8)] {
        for seed in 0..20 {
            let provider = SimProvider::unlimited(Span::from_millis(latency));
            let advice = Some(Duration::from_secs(60));
            let noise = SimNoise { of_thousand: 50, overloaded: false, advice };
            cases.push(Case::beside(provider.clone(), provider.noise(noise, seed), ITEMS, workers, seed));
        }
    }
    Family::new("advice-of-a-minute", cases)
}

/// Returns providers that refuse half of the calls, for a hundred items and twenty workers.
pub fn stress() -> Family {
    let cases = (0..100).map(|seed| {
        let noise = SimNoise { of_thousand: 500, overloaded: false, advice: None };
        Case {
            provider: SimProvider::unlimited(Span::from_secs(1)).noise(noise, seed),
            sizes: ItemSizes::Calls(100),
            workers: 20,
            seed,
            best: Best::AtOnce,
        }
    });
    Family::new("half-refused", cases.collect())
}
