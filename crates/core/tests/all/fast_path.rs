//! The fast path for at most four limits agrees with the general path.

use std::time::Duration;

use crate::oracle::seed::{TestRng, for_seeds};
use tollgate_core::{
    AMOUNT_MAX, Bucket, CostSink, Demand, Limit, LimitBuilder, Limits, SmallCosts, Span, Take, Tick, Usage,
};

const NAMES: [&str; 4] = ["one", "two", "three", "four"];

fn limit(rng: &mut TestRng, name: &str) -> LimitBuilder {
    let amount = [1, 7, 100, 999_983, 1 << 33, AMOUNT_MAX][rng.from(0, 5) as usize];
    let period = [1, 3, 1_000_000, 60_000_000, 86_400_000_000][rng.from(0, 4) as usize];
    match rng.from(0, 3) {
        0 => Limit::resource(name, amount.min(50)),
        _ => Limit::rate(name, amount, Duration::from_micros(period)),
    }
}

/// Returns a cost near the capacity, zero, or far above the capacity.
fn cost(rng: &mut TestRng, capacity: u64) -> u64 {
    match rng.from(0, 9) {
        0 => 0,
        1 => (capacity + 1).min(AMOUNT_MAX),
        2 => AMOUNT_MAX,
        3 => capacity,
        _ => rng.from(0, capacity.min(1 << 40) / 3),
    }
}

fn agree(rng: &mut TestRng) -> Result<(), String> {
    let count = rng.from(1, 4) as usize;
    let limits =
        Limits::new(NAMES[..count].iter().map(|name| limit(rng, name))).map_err(|why| why.to_string())?;
    let mut now = Tick::ZERO;
    let mut fast = Bucket::fresh(&limits, now);
    let mut general = fast.clone();
    for step in 0..60 {
        let amounts: Vec<u64> = limits.iter().map(|limit| cost(rng, limit.capacity())).collect();
        let demand: Demand = NAMES.into_iter().zip(amounts).collect();
        let costs = limits.resolve(&demand, |_| Ok(())).map_err(|why| why.to_string())?;
        let small = costs.small().ok_or("the costs are small")?;
        let (was, taken) = (fast.clone(), fast.take_plain(&limits, now, &small));
        // A bucket whose debt is too large to be plain is not compared.
        if was.credits().is_some() || taken.is_some() {
            let expected = general.take(&limits, now, &Take { costs: &costs, holder: None }).ok();
            if (&fast, taken) != (&general, expected) {
                return Err(format!(
                    "step {step} at {now:?}: {limits:?} took {costs:?} of {was:?}: {fast:?}"
                ));
            }
        }
        if let (Some(at), Some(packed)) = (taken, small.pack()) {
            let used: [u64; 4] = std::array::from_fn(|index| {
                let reserved = packed.amounts()[index];
                if rng.from(0, 9) == 0 { reserved + rng.from(0, 2) } else { rng.from(0, reserved) }
            });
            let used: [u64; 4] = std::array::from_fn(|index| if index < count { used[index] } else { 0 });
            let was = fast.clone();
            let settled = fast.settle_packed(&limits, &packed, &used);
            let usage = Usage { at, reserved: &costs, used: &used[..count], holder: None };
            general.settle(&limits, general.stamp(), &usage);
            if !settled {
                if fast != was {
                    return Err(format!("step {step}: {limits:?} was changed by a refused settlement"));
                }
                fast.settle(&limits, fast.stamp(), &usage);
            }
            let is_over = limits
                .iter()
                .enumerate()
                .any(|(index, limit)| !limit.is_resource() && used[index] > packed.amounts()[index]);
            if settled == is_over || fast != general {
                return Err(format!(
                    "step {step}: {limits:?} settled {used:?} of {costs:?}: {was:?} {fast:?} {general:?}"
                ));
            }
        }
        now =
            now + Span::from_micros([0, 1, 17, 1_000_000, 86_400_000_000, 1 << 50][rng.from(0, 5) as usize]);
    }
    Ok(())
}

#[test]
fn the_fast_path_takes_and_settles_like_the_general_one() {
    for_seeds(3_000, agree);
}

#[test]
fn small_costs_equal_the_costs() {
    let limits = Limits::new([Limit::calls(5, Duration::from_secs(1)), Limit::per_minute("tpm", 10)]);
    let limits = limits.unwrap();
    let costs = limits.costs(&tollgate_core::demand! { tpm: 3 }).unwrap();
    let mut small = SmallCosts::default();
    limits.resolve_into(&mut small, &tollgate_core::demand! { tpm: 3 }, |_| Ok(())).unwrap();
    assert_eq!(costs.small(), Some(small));
    assert_eq!(small.to_costs(limits.len()), costs);
    assert_eq!(small.pack(), costs.pack());
    assert!(small.takes(0) && small.takes(1) && !small.takes(2));
}
