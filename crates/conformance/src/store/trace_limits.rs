//! The limits of random traces.

use std::time::Duration;

use tollgate_core::{Costs, Demand, Limit, LimitBuilder, Limits};
use tollgate_store::SplitMix64;

/// A limit that is always in use, so that no store may forget the bucket.
const ANCHOR: &str = "anchor";

/// The versions of each set of limits. Version 0 is none, and never stale.
const VERSIONS: [u64; 4] = [0, 1, 2, 3];

/// Returns every algorithm, alone and with others, shadow and soft limits, each in several versions.
///
/// In half of the traces the clock steps back. A store cannot compare the clock with a bucket that it has forgotten, so there
/// every bucket is anchored.
pub(super) fn variants(anchored: bool) -> Vec<Limits> {
    let anchor = anchored.then(|| Limit::quota(ANCHOR, 1_000_000, seconds(3_600 * 24 * 365)));
    let build = |limits: Vec<LimitBuilder>| {
        Limits::new(limits.into_iter().chain(anchor.clone())).expect("the limits of the suite are valid")
    };
    let mut sets: Vec<Limits> = sets().into_iter().map(build).collect();
    let cooling = |limits: &Limits| limits.with_cooldown();
    sets.extend([cooling(&sets[0]), cooling(&sets[3])]);
    sets.iter().flat_map(|limits| VERSIONS.map(|version| limits.clone().at_version(version))).collect()
}

fn sets() -> [Vec<LimitBuilder>; 7] {
    [
        vec![Limit::per_minute("rpm", 10), Limit::per_minute("tpm", 100)],
        vec![Limit::per_minute("rpm", 4), Limit::per_minute("tpm", 1_000).burst(50)],
        vec![Limit::fixed_window("rpm", 5, seconds(10)), Limit::sliding_window("tpm", 20, seconds(7))],
        vec![
            Limit::rate("rpm", 7, seconds(3)),
            Limit::resource("slots", 3),
            Limit::quota("spend", 30, seconds(60)),
        ],
        vec![
            Limit::sliding_window("tpm", 9, seconds(2)),
            Limit::resource("slots", 2),
            Limit::calls(6, seconds(5)),
        ],
        vec![Limit::per_day("rpm", 10).burst(3)],
        vec![Limit::per_minute("rpm", 6).shadow(), Limit::resource("slots", 4).soft(2)],
    ]
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Returns costs within the capacity of each limit.
pub(super) fn random_costs(random: &mut SplitMix64, limits: &Limits) -> Costs {
    let cooldown = u64::from(!random.one_in(4));
    let amount = |limit: &Limit| match limit.name() == ANCHOR {
        true => 1,
        false => random.below(limit.capacity().min(12) + 1),
    };
    costs(limits, amount).of_cooldown(limits, cooldown)
}

/// Returns a credit for each limit but the anchor.
pub(super) fn random_credit(random: &mut SplitMix64, limits: &Limits) -> Costs {
    let cooldown = random.below(2);
    let amount = |limit: &Limit| if limit.name() == ANCHOR { 0 } else { random.below(12) };
    costs(limits, amount).of_cooldown(limits, cooldown)
}

/// Returns costs of the anchor alone.
pub(super) fn anchor_costs(limits: &Limits) -> Costs {
    costs(limits, |limit| u64::from(limit.name() == ANCHOR)).of_cooldown(limits, 0)
}

/// Returns the usage of a lease: from nothing to ten times what it took.
pub(super) fn random_usage(random: &mut SplitMix64, limits: &Limits, costs: &Costs) -> Vec<u64> {
    let used = |(limit, cost): (&Limit, &u64)| match limit.name() == ANCHOR {
        true => *cost,
        false if limit.is_cooldown() && random.one_in(2) => 1 + random.below(5_000_000),
        false => random.below(cost * 10 + 1),
    };
    limits.iter().zip(costs.amounts()).map(used).collect()
}

fn costs(limits: &Limits, mut amount: impl FnMut(&Limit) -> u64) -> Costs {
    let demand = limits.iter().filter(|limit| !limit.is_cooldown()).fold(Demand::new(), |demand, limit| {
        let amount = amount(limit).min(limit.capacity());
        demand.with(limit.name().as_str(), amount)
    });
    limits.costs(&demand).expect("amounts up to the capacity are possible")
}
