//! Pools of sets.

use std::time::Duration;

use tollgate::{AcquireError, LimitPool, LimitSet, Spread};
use tollgate_core::{Limit, Span, demand};

use super::fixture::{queued, spend};
use super::{OpenSetStore, SetFixture};

const SECOND: Duration = Duration::from_secs(1);

fn accounts<const N: usize>(fixture: &SetFixture, rpm: [u64; N]) -> LimitPool {
    let account = |(index, rpm): (usize, u64)| -> LimitSet {
        let builder = fixture.builder(&format!("account-{index}"), [Limit::per_minute("rpm", rpm)]);
        builder.config("account", index.to_string()).build().expect("it is valid")
    };
    LimitPool::new(rpm.into_iter().enumerate().map(account)).expect("there are sets")
}

fn chosen(pool: &LimitPool) -> Option<String> {
    let attempt = pool.try_acquire(demand! { rpm: 1 }).wait().expect("the demand is valid");
    attempt.admitted().map(|lease| lease.config()["account"].clone())
}

/// The other sets go on.
pub fn a_pool_moves_on_from_a_set_that_denies_or_cools(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let pool = accounts(&fixture, [1, 100, 100]);
    let chosen = |times: usize| (0..times).filter_map(|_| chosen(&pool)).collect::<Vec<_>>();
    assert_eq!(chosen(4), ["0", "1", "2", "1"]);
    pool[1].cool_down(10 * SECOND).wait().expect("the store answers");
    assert_eq!(chosen(4), ["2", "2", "2", "2"], "0 has nothing, 1 cools");
    fixture.advance_ms(10_000);
    assert!(chosen(3).contains(&"1".to_owned()));
    for set in pool.sets() {
        set.cool_down(5 * SECOND).wait().expect("the store answers");
    }
    let denied = pool.try_acquire(demand! { rpm: 1 }).wait().expect("it is valid").denied();
    assert_eq!(denied.expect("all of them cool").wait(), Some(5 * SECOND));
}

/// It is in no queue afterwards.
pub fn a_pool_waits_in_all_sets_and_takes_the_first_grant(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    for spread in [Spread::RoundRobin, Spread::Soonest] {
        let pool = accounts(&fixture, [1, 3, 2]).spread(spread);
        for (set, rpm) in pool.sets().iter().zip([1_u64, 3, 2]) {
            spend(set, demand! { rpm: rpm });
        }
        let waiting = || [0, 1, 2].map(|index| queued(&pool[index]));
        // They refill every 60, 20 and 30 s.
        let mut first = fixture.begin(pool.sets(), pool.acquire(demand! { rpm: 1 }));
        assert_eq!(waiting(), [1, 1, 1], "{spread:?}");
        let error = pool.acquire(demand! { rpm: 1 }).timeout(SECOND).wait().expect_err("that is too soon");
        let AcquireError::TimedOut { denial, .. } = error else { panic!("{error}") };
        assert!(denial.wait() >= Some(20 * SECOND), "the second is the soonest: {denial}");
        fixture.advance_ms(20_000);
        assert_eq!(first.answer().expect("its turn has come").config()["account"], "1");
        drop(first);
        assert_eq!(waiting(), [0, 0, 0]);
        assert_eq!(count_all(&pool), 0, "the others kept nothing for it");
        fixture.clock.advance(Span::from_secs(3_600));
    }
}

/// The set that looked best when the wait began may cool down.
pub fn a_pool_that_waits_is_granted_by_a_set_that_becomes_free(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let pool = accounts(&fixture, [1, 1]);
    pool.sets().iter().for_each(|set| spend(set, demand! { rpm: 1 }));
    let mut waiting = fixture.begin(pool.sets(), pool.acquire(demand! { rpm: 1 }));
    pool[0].cool_down(600 * SECOND).wait().expect("the store answers");
    fixture.advance_ms(60_000);
    assert_eq!(waiting.answer().expect("its turn has come").config()["account"], "1");
    drop(waiting);
    assert_eq!([0, 1].map(|index| queued(&pool[index])), [0, 0]);
}

/// Returns how many calls the pool admits now.
fn count_all(pool: &LimitPool) -> usize {
    let admitted = || pool.try_acquire(demand! { rpm: 1 }).wait().expect("it is valid").admitted();
    std::iter::from_fn(admitted).count()
}
