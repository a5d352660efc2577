//! A denied demand changes nothing: no limit of the set, no bucket of the chain.

use crate::oracle::seed::{TestRng, first_failure, for_seeds};
use crate::oracle::spec::any;
use crate::oracle::subject::tick;
use tollgate_core::{Bucket, Costs, Demand, Denial, Limits, Link, Take, Tick, take_all};

/// Limits with their bucket. Demands name every limit.
struct Set {
    limits: Limits,
    bucket: Bucket,
}

impl Set {
    fn any(rng: &mut TestRng, size: u64) -> Set {
        let limits = (0..size).map(|n| any::kind(rng).limit(&format!("l{n}")));
        let limits = Limits::new(limits.collect::<Vec<_>>()).expect("names are unique");
        Set { bucket: Bucket::fresh(&limits, Tick::ZERO), limits }
    }

    fn any_costs(&self, rng: &mut TestRng) -> Costs {
        let names = self.limits.iter().map(|limit| (limit.name().as_str(), limit.capacity()));
        let demand: Demand = names
            .map(|(name, most)| {
                let most = if rng.one_in(3) { most } else { 1 };
                (name, rng.from(0, most))
            })
            .collect();
        self.limits.costs(&demand).expect("no amount is above its capacity")
    }

    fn refuses(&self, now: Tick, costs: &Costs) -> bool {
        let left = self.bucket.peek(&self.limits, now);
        left.iter()
            .zip(costs.amounts())
            .any(|(status, cost)| *cost > 0 && i128::from(status.available()) < i128::from(*cost))
    }
}

type Taker = fn(&mut [Link<'_>], Tick) -> Result<(), Vec<Denial>>;

fn take_all_from(chain: &mut [Link<'_>], now: Tick) -> Result<(), Vec<Denial>> {
    take_all(chain, now, None, |_, _| {})
}

/// Takes from chains until they are exhausted, and checks that every bucket is unchanged whenever
/// one of them denies.
fn check(rng: &mut TestRng, links: u64, sizes: (u64, u64), taker: Taker) -> Result<u64, String> {
    let mut sets: Vec<Set> = (0..links)
        .map(|_| {
            let size = rng.from(sizes.0, sizes.1);
            Set::any(rng, size)
        })
        .collect();
    let (mut now, mut denied) = (0, 0);
    for _ in 0..12 {
        now += rng.from(0, 5);
        let costs: Vec<Costs> = sets.iter().map(|set| set.any_costs(rng)).collect();
        let before: Vec<Bucket> = sets.iter().map(|set| set.bucket.clone()).collect();
        let refused = sets.iter().zip(&costs).any(|(set, costs)| set.refuses(tick(now), costs));
        let links = sets.iter_mut().zip(&costs);
        let mut chain: Vec<Link<'_>> =
            links.map(|(set, costs)| Link { limits: &set.limits, bucket: &mut set.bucket, costs }).collect();
        let denials = taker(&mut chain, tick(now)).err();
        if denials.is_some() != refused {
            return Err(format!("denied {denials:?}, but the limits deny: {refused}"));
        }
        if let Some(denials) = denials {
            denied += 1;
            let same = sets.iter().map(|set| &set.bucket).eq(&before) && denials.len() == sets.len();
            same.then_some(()).ok_or("a denial changed a bucket")?;
        }
    }
    Ok(denied)
}

fn check_many(runs: u64, links: u64, sizes: (u64, u64)) {
    for_seeds(runs, |rng| check(rng, links, sizes, take_all_from).map(drop));
}

#[test]
fn a_denied_demand_changes_nothing_in_sets_of_one_to_eight_limits() {
    check_many(1_000, 1, (1, 8));
}

#[test]
fn a_denied_demand_changes_nothing_in_sets_that_live_on_the_heap() {
    check_many(200, 1, (9, 32));
}

#[test]
fn a_denied_demand_changes_nothing_in_chains_of_one_to_four_buckets() {
    for links in 1..=4 {
        check_many(300, links, (1, 8));
    }
}

#[test]
fn an_admitted_demand_takes_from_every_limit_of_every_bucket() {
    for_seeds(500, |rng| {
        let mut sets: Vec<Set> = (0..3).map(|_| Set::any(rng, 3)).collect();
        let ones = |set: &Set| {
            let demand = set.limits.iter().map(|limit| (limit.name().as_str(), 1u64));
            set.limits
                .costs(&demand.collect::<tollgate_core::Demand>())
                .expect("every capacity is at least 1")
        };
        let costs: Vec<Costs> = sets.iter().map(ones).collect();
        let links = sets.iter_mut().zip(&costs);
        let mut chain: Vec<Link<'_>> =
            links.map(|(set, costs)| Link { limits: &set.limits, bucket: &mut set.bucket, costs }).collect();
        let mut taken = Vec::new();
        take_all(&mut chain, tick(5), None, |index, at| taken.push((index, at))).map_err(|_| "denied")?;
        assert_eq!(taken, [(0, tick(5)), (1, tick(5)), (2, tick(5))]);
        for (limit, status) in
            sets.iter().flat_map(|set| set.limits.iter().zip(set.bucket.peek(&set.limits, tick(5))))
        {
            assert_eq!(status.available(), limit.capacity() as i64 - 1, "{limit}");
        }
        Ok(())
    });
}

#[test]
fn the_denial_of_a_set_names_the_slowest_limit_and_its_demand_fits_at_that_tick() {
    for_seeds(1_000, |rng| {
        let size = rng.from(2, 8);
        let mut set = Set::any(rng, size);
        let mut now = 0;
        for _ in 0..20 {
            now += rng.from(0, 3);
            let costs = set.any_costs(rng);
            let Err(denial) = set.bucket.take(&set.limits, tick(now), &Take::of(&costs)) else { continue };
            let slowest = denial.limited_by().ok_or("no limit denies")?;
            assert_eq!(slowest.ready(), denial.ready());
            if let tollgate_core::Ready::At(at) = denial.ready() {
                assert!(set.bucket.fits(&set.limits, at, &costs));
                assert!(!set.bucket.fits(&set.limits, at - tollgate_core::Span::from_micros(1), &costs));
            }
        }
        Ok(())
    });
}

#[test]
fn the_check_finds_a_chain_that_takes_before_it_has_checked_every_bucket() {
    fn greedy(chain: &mut [Link<'_>], now: Tick) -> Result<(), Vec<Denial>> {
        let mut denials = Vec::new();
        for link in chain {
            denials.extend(link.bucket.take(link.limits, now, &Take::of(link.costs)).err());
        }
        if denials.is_empty() { Ok(()) } else { Err(denials) }
    }
    assert!(first_failure(50, |rng| check(rng, 3, (1, 3), greedy).map(drop)).is_some());
}

#[test]
fn the_check_covers_denials() {
    let denied: u64 =
        (0..20).filter_map(|seed| check(&mut TestRng::new(seed), 1, (1, 8), take_all_from).ok()).sum();
    assert!(denied > 50, "only {denied}");
}
