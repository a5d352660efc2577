//! Pools: which set is tried first, which next, and where to wait.

mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use support::{START, advance_ms, answer, hands, poll, spend};
use tollgate::{
    AcquireError, DemandError, Lease, Limit, LimitPool, LimitSet, ManualClock, PoolError, Span, Spread,
    demand,
};

fn account(hands: &ManualClock, index: usize, rpm: u64) -> LimitSet {
    let limits = [Limit::per_minute("rpm", rpm)];
    support::builder(hands, limits).config("account", index.to_string()).build().expect("it is valid")
}

fn accounts<const N: usize>(hands: &ManualClock, rpm: [u64; N]) -> LimitPool {
    let sets = rpm.iter().enumerate().map(|(index, rpm)| account(hands, index, *rpm));
    LimitPool::new(sets).expect("there is a set")
}

fn account_of(lease: &Lease<'_>) -> usize {
    lease.config()["account"].parse().expect("accounts are numbered")
}

fn chosen(pool: &LimitPool) -> Option<usize> {
    let attempt = pool.try_acquire(demand! { rpm: 1 }).wait().expect("the demand is valid");
    attempt.admitted().as_ref().map(account_of)
}

#[test]
fn round_robin_starts_at_the_workers_index_and_goes_on_by_one() {
    let pool = accounts(&hands(), [100, 100, 100]);
    for worker in 0..7 {
        let own = pool.for_worker(worker);
        let order: Vec<_> = (0..6).map(|_| chosen(&own).unwrap()).collect();
        let expected: Vec<_> = (0..6).map(|step| (worker + step) % 3).collect();
        assert_eq!(order, expected, "worker {worker}");
    }
    assert_eq!(chosen(&pool), Some(0), "each worker's turn is its own");
}

#[test]
fn workers_share_the_sets_and_not_the_turn() {
    let pool = accounts(&hands(), [1, 1]);
    let (one, two) = (pool.for_worker(0), pool.for_worker(0));
    assert_eq!((chosen(&one), chosen(&two)), (Some(0), Some(1)));
    assert_eq!((chosen(&one), chosen(&two)), (None, None));
    assert_eq!(chosen(&pool.for_worker(usize::MAX)), None, "an index at the end of the numbers is one, too");
}

#[test]
fn random_covers_all_sets() {
    let pool = accounts(&hands(), [10_000, 10_000, 10_000, 10_000]).spread(Spread::Random);
    let seen: BTreeSet<_> = (0..1_000).filter_map(|_| chosen(&pool)).collect();
    // That one of four is missed a thousand times has a chance of 4 x 0.75^1000.
    assert_eq!(seen.len(), 4);
    assert_eq!(pool.for_worker(3).len(), 4);
}

#[test]
fn soonest_takes_the_set_that_can_admit_soonest() {
    let hands = hands();
    let pool = accounts(&hands, [1, 3, 2]).spread(Spread::Soonest);
    for set in pool.sets() {
        while let Some(lease) = support::try_take(set, demand! { rpm: 1 }) {
            drop(lease);
        }
    }
    // They refill every 60, 20 and 30 s.
    let denial = pool.try_acquire(demand! { rpm: 1 }).wait().unwrap().denied().unwrap();
    assert_eq!(denial.wait(), Some(Duration::from_secs(20)));
    for (second, account) in [(20, 1), (30, 2), (40, 1)] {
        hands.set(START + Span::from_secs(second) - Span::from_micros(1));
        assert_eq!(chosen(&pool), None);
        hands.set(START + Span::from_secs(second));
        assert_eq!(chosen(&pool), Some(account));
    }
}

#[test]
fn a_try_moves_on_to_the_next_set_and_is_denied_with_the_shortest_wait_when_all_refuse() {
    let pool = accounts(&hands(), [1, 3, 2]);
    let order: Vec<_> = (0..6).map(|_| chosen(&pool).unwrap()).collect();
    assert_eq!(order, [0, 1, 2, 1, 1, 2], "the turn goes on, and who is full is passed over");
    for worker in 0..3 {
        let own = pool.for_worker(worker);
        let denial = own.try_acquire(demand! { rpm: 1 }).wait().unwrap().denied().unwrap();
        assert_eq!(denial.wait(), Some(Duration::from_secs(20)));
    }
}

#[test]
fn a_cooling_set_is_passed_over_until_its_cooldown_ends() {
    let hands = hands();
    let pool = accounts(&hands, [100, 100]);
    pool[0].cool_down(Duration::from_secs(10)).wait().unwrap();
    for _ in 0..5 {
        assert_eq!(chosen(&pool), Some(1));
    }
    for spread in [Spread::Random, Spread::Soonest] {
        assert_eq!(chosen(&pool.for_worker(0).spread(spread)), Some(1), "{spread:?}");
    }
    pool[1].cool_down(Duration::from_secs(5)).wait().unwrap();
    let denial = pool.try_acquire(demand! { rpm: 1 }).wait().unwrap().denied().unwrap();
    assert_eq!(denial.wait(), Some(Duration::from_secs(5)));
    let mut waiting = pool.acquire(demand! { rpm: 1 }).into_future();
    assert!(poll(&mut waiting).is_pending());
    advance_ms(&hands, 5_000);
    assert_eq!(account_of(&answer(&mut waiting).unwrap()), 1);
    advance_ms(&hands, 5_000);
    assert_eq!(chosen(&pool.for_worker(0)), Some(0));
}

#[test]
fn to_acquire_waits_in_all_sets_and_takes_the_first_grant_whatever_the_spread() {
    for spread in [Spread::RoundRobin, Spread::Random, Spread::Soonest] {
        let hands = hands();
        let pool = accounts(&hands, [1, 3, 2]).spread(spread);
        while chosen(&pool).is_some() {}
        let waiters = || [0, 1, 2].map(|index| pool[index].peek().wait().unwrap().waiting);
        let mut waiting = pool.acquire(demand! { rpm: 1 }).into_future();
        assert!(poll(&mut waiting).is_pending());
        let mut next = pool.acquire(demand! { rpm: 1 }).into_future();
        assert!(poll(&mut next).is_pending());
        assert_eq!(waiters(), [2, 2, 2], "{spread:?}");
        hands.set(START + Span::from_secs(20));
        assert_eq!(account_of(&answer(&mut waiting).unwrap()), 1);
        drop(waiting);
        assert!(poll(&mut next).is_pending());
        assert_eq!(waiters(), [1, 1, 1], "{spread:?}");
        hands.set(START + Span::from_secs(30));
        assert_eq!(account_of(&answer(&mut next).unwrap()), 2);
        drop(next);
        assert_eq!(waiters(), [0, 0, 0], "{spread:?}");
    }
}

#[test]
fn a_wait_in_a_pool_is_granted_by_a_set_that_becomes_free_while_another_cools() {
    let hands = hands();
    let pool = accounts(&hands, [1, 1]);
    while chosen(&pool).is_some() {}
    let mut waiting = pool.acquire(demand! { rpm: 1 }).into_future();
    assert!(poll(&mut waiting).is_pending());
    pool[0].cool_down(Duration::from_secs(600)).wait().unwrap();
    hands.set(START + Span::from_secs(60));
    assert_eq!(account_of(&answer(&mut waiting).unwrap()), 1);
}

#[test]
fn a_wait_in_a_pool_that_is_dropped_leaves_no_trace() {
    let hands = hands();
    let pool = accounts(&hands, [1, 1]);
    while chosen(&pool).is_some() {}
    for polls in 0..3 {
        let mut waiting = pool.acquire(demand! { rpm: 1 }).into_future();
        (0..polls).for_each(|_| assert!(poll(&mut waiting).is_pending()));
        drop(waiting);
        assert_eq!([0, 1].map(|index| pool[index].peek().wait().unwrap().waiting), [0, 0]);
    }
    advance_ms(&hands, 60_000);
    assert_eq!([chosen(&pool), chosen(&pool), chosen(&pool)].iter().flatten().count(), 2);
}

#[test]
fn what_can_never_fit_one_set_may_fit_another_and_is_refused_only_if_it_fits_none() {
    let hands = hands();
    let pool = accounts(&hands, [1, 5]);
    let lease = pool.try_acquire(demand! { rpm: 5 }).wait().unwrap().admitted().unwrap();
    assert_eq!(account_of(&lease), 1);
    // Full, where it fits at all: that is a denial, and no error.
    let denial = pool.try_acquire(demand! { rpm: 5 }).wait().unwrap().denied().unwrap();
    assert_eq!(denial.wait(), Some(Duration::from_secs(60)));
    let mut waiting = pool.acquire(demand! { rpm: 5 }).into_future();
    assert!(poll(&mut waiting).is_pending());
    assert_eq!([0, 1].map(|index| pool[index].peek().wait().unwrap().waiting), [0, 1]);
    advance_ms(&hands, 60_000);
    assert_eq!(account_of(&answer(&mut waiting).unwrap()), 1);

    for error in [
        pool.try_acquire(demand! { rpm: 6 }).wait().unwrap_err(),
        pool.acquire(demand! { rpm: 6 }).wait().unwrap_err(),
    ] {
        assert!(matches!(error, AcquireError::Demand(DemandError::Impossible { .. })), "{error}");
    }
}

#[test]
fn a_pool_has_its_sets_by_index_and_at_least_one() {
    let hands = hands();
    let pool = accounts(&hands, [3, 7]);
    assert_eq!((pool.len(), pool.sets().len()), (2, 2));
    assert_eq!(pool[1].config()["account"], "1");
    spend(&pool[1], demand! { rpm: 7 });
    assert_eq!(
        pool.for_worker(0)[1].peek().wait().unwrap().limit("rpm").unwrap().available(),
        0,
        "the sets are shared"
    );
    assert_eq!(LimitPool::new([]).unwrap_err(), PoolError::Empty);
    assert_eq!(PoolError::Empty.to_string(), "the pool has no limit set; give it at least one");
}

#[test]
fn a_rule_of_the_users_own_is_kept_by_the_pools_of_workers_and_the_others_are_tried_after_it() {
    let dearest = |sets: &[LimitSet]| {
        let capacity = |set: &LimitSet| set.limit("rpm").map_or(0, |limit| limit.capacity());
        let places = sets.iter().enumerate();
        places.max_by_key(|(_, set)| capacity(set)).map_or(0, |(place, _)| place)
    };
    let pool = accounts(&hands(), [1, 1, 2]).spread_by(dearest).for_worker(4);
    assert_eq!((0..5).map(|_| chosen(&pool)).collect::<Vec<_>>(), [Some(2), Some(2), Some(0), Some(1), None]);
    assert_eq!(pool.index(), 4);
    let left: Vec<i64> = pool.peek().wait().unwrap().iter().map(|set| set.limits[0].available()).collect();
    assert_eq!(left, [0, 0, 0]);
    let beyond = accounts(&hands(), [9, 9, 9]).spread_by(|_: &[LimitSet]| 7);
    assert_eq!(chosen(&beyond), Some(1), "places past the end count from the start again");
    assert_eq!(chosen(&beyond.spread(Spread::RoundRobin)), Some(0));
}
