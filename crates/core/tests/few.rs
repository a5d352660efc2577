//! What is worked out side by side for few limits is what the general way says, and nothing else.

mod oracle;

use std::time::Duration;

use oracle::seed::{Dice, for_seeds};
use tollgate_core::{
    AMOUNT_MAX, Bucket, CostSink, Demand, Limit, LimitBuilder, Limits, SmallCosts, Span, Take, Tick, Usage,
};

const NAMES: [&str; 4] = ["one", "two", "three", "four"];

fn limit(dice: &mut Dice, name: &str) -> LimitBuilder {
    let amount = [1, 7, 100, 999_983, 1 << 33, AMOUNT_MAX][dice.from(0, 5) as usize];
    let period = [1, 3, 1_000_000, 60_000_000, 86_400_000_000][dice.from(0, 4) as usize];
    match dice.from(0, 3) {
        0 => Limit::resource(name, amount.min(50)),
        _ => Limit::rate(name, amount, Duration::from_micros(period)),
    }
}

/// A cost about the capacity, or none, or far beyond it.
fn cost(dice: &mut Dice, capacity: u64) -> u64 {
    match dice.from(0, 9) {
        0 => 0,
        1 => (capacity + 1).min(AMOUNT_MAX),
        2 => AMOUNT_MAX,
        3 => capacity,
        _ => dice.from(0, capacity.min(1 << 40) / 3),
    }
}

fn agree(dice: &mut Dice) -> Result<(), String> {
    let count = dice.from(1, 4) as usize;
    let limits =
        Limits::new(NAMES[..count].iter().map(|name| limit(dice, name))).map_err(|why| why.to_string())?;
    let mut now = Tick::ZERO;
    let mut quick = Bucket::fresh(&limits, now);
    let mut general = quick.clone();
    for step in 0..60 {
        let amounts: Vec<u64> = limits.iter().map(|limit| cost(dice, limit.capacity())).collect();
        let demand: Demand = NAMES.into_iter().zip(amounts).collect();
        let costs = limits.resolve(&demand, |_| Ok(())).map_err(|why| why.to_string())?;
        let few = costs.few().ok_or("they are few")?;
        let (was, taken) = (quick.clone(), quick.take_plain(&limits, now, &few));
        // What is not plain any more, because its debt is too large, is left alone.
        if was.credits().is_some() || taken.is_some() {
            let expected = general.take(&limits, now, &Take { costs: &costs, holder: None }).ok();
            if (&quick, taken) != (&general, expected) {
                return Err(format!(
                    "step {step} at {now:?}: {limits:?} took {costs:?} of {was:?}: {quick:?}"
                ));
            }
        }
        if let (Some(at), Some(packed)) = (taken, few.pack()) {
            let used: [u64; 4] = std::array::from_fn(|index| {
                let reserved = packed.amounts()[index];
                if dice.from(0, 9) == 0 { reserved + dice.from(0, 2) } else { dice.from(0, reserved) }
            });
            let used: [u64; 4] = std::array::from_fn(|index| if index < count { used[index] } else { 0 });
            let was = quick.clone();
            let settled = quick.settle_packed(&limits, &packed, &used);
            let usage = Usage { at, reserved: &costs, used: &used[..count], holder: None };
            general.settle(&limits, general.stamp(), &usage);
            if !settled {
                if quick != was {
                    return Err(format!("step {step}: {limits:?} was changed by what was not settled"));
                }
                quick.settle(&limits, quick.stamp(), &usage);
            }
            let is_over = limits
                .iter()
                .enumerate()
                .any(|(index, limit)| !limit.is_resource() && used[index] > packed.amounts()[index]);
            if settled == is_over || quick != general {
                return Err(format!(
                    "step {step}: {limits:?} settled {used:?} of {costs:?}: {was:?} {quick:?} {general:?}"
                ));
            }
        }
        now =
            now + Span::from_micros([0, 1, 17, 1_000_000, 86_400_000_000, 1 << 50][dice.from(0, 5) as usize]);
    }
    Ok(())
}

#[test]
fn few_limits_are_taken_and_settled_as_any() {
    for_seeds(3_000, agree);
}

#[test]
fn few_costs_are_the_costs() {
    let limits = Limits::new([Limit::calls(5, Duration::from_secs(1)), Limit::per_minute("tpm", 10)]);
    let limits = limits.unwrap();
    let costs = limits.costs(&tollgate_core::demand! { tpm: 3 }).unwrap();
    let mut few = SmallCosts::default();
    limits.resolve_into(&mut few, &tollgate_core::demand! { tpm: 3 }, |_| Ok(())).unwrap();
    assert_eq!(costs.few(), Some(few));
    assert_eq!(few.to_costs(limits.len()), costs);
    assert_eq!(few.pack(), costs.pack());
    assert!(few.takes(0) && few.takes(1) && !few.takes(2));
}
