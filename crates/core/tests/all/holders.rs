//! Holders of a resource: their share is released once, explicitly or by expiry, and never twice.

use crate::oracle::Settled;
use crate::oracle::subject::{Core, Subject, tick};
use tollgate_core::{Holder, Limit, Ready};

const FIVE: u64 = 5;

fn five() -> Core {
    Core::new(Limit::resource("x", FIVE).build().expect("it is valid"), 0)
}

fn holder(id: u128, expires: u64) -> Holder {
    Holder { id, expires: tick(expires) }
}

fn release(core: &mut Core, now: u64, id: Option<u128>, reserved: u64) {
    core.settle(now, &Settled { at: 0, reserved, used: 0, holder: id });
}

#[test]
fn an_expired_hold_is_released_at_its_tick_and_not_before() {
    let mut core = five();
    core.take(0, 3, Some(holder(1, 10)));
    core.take(0, 2, Some(holder(2, 20)));
    for (now, left) in [(0, 0), (9, 0), (10, 3), (19, 3), (20, 5)] {
        assert_eq!(core.peek(now).available, left, "at {now}");
    }
    assert_eq!(core.try_take(0, 3).unwrap_err().ready(), Ready::At(tick(10)));
    assert_eq!(core.try_take(0, 4).unwrap_err().ready(), Ready::At(tick(20)));
}

#[test]
fn a_wait_for_anonymous_use_is_unknown() {
    let mut core = five();
    core.take(0, 3, None);
    core.take(0, 2, Some(holder(1, 10)));
    assert_eq!(core.try_take(0, 2).unwrap_err().ready(), Ready::At(tick(10)));
    assert_eq!(core.try_take(0, 3).unwrap_err().ready(), Ready::Unknown);
}

#[test]
fn a_release_after_the_expiry_releases_nothing() {
    let mut core = five();
    core.take(0, 5, Some(holder(1, 10)));
    core.take(10, 5, Some(holder(2, 30)));
    release(&mut core, 11, Some(1), 5);
    assert_eq!(core.peek(11).available, 0);
}

#[test]
fn a_second_release_releases_nothing() {
    let mut core = five();
    core.take(0, 2, Some(holder(1, 10)));
    core.take(0, 3, Some(holder(2, 10)));
    release(&mut core, 1, Some(1), 2);
    release(&mut core, 1, Some(1), 2);
    assert_eq!(core.peek(1).available, 2);
}

#[test]
fn a_holder_releases_only_its_own_share() {
    let mut core = five();
    core.take(0, 2, None);
    core.take(0, 2, Some(holder(1, 10)));
    release(&mut core, 1, Some(7), 5);
    assert_eq!(core.peek(1).available, 1);
    release(&mut core, 1, Some(1), 5);
    assert_eq!(core.peek(1).available, 3);
    release(&mut core, 1, None, 2);
    assert_eq!(core.peek(1).available, 5);
}

#[test]
fn a_renewal_extends_a_holder_and_is_too_late_at_its_expiry() {
    let mut core = five();
    core.take(0, 5, Some(holder(1, 10)));
    let limits = core.limits.clone();
    assert!(core.bucket.renew(&limits, tick(9), holder(1, 20)));
    assert_eq!(core.peek(19).available, 0);
    assert!(!core.bucket.renew(&limits, tick(20), holder(1, 30)));
    assert_eq!(core.peek(20).available, 5);
    assert!(!core.bucket.renew(&limits, tick(20), holder(9, 30)));
}

#[test]
fn a_sweep_returns_how_many_holders_it_dropped() {
    let mut core = five();
    for id in 0..5 {
        core.take(0, 1, Some(holder(id, 10 + id as u64)));
    }
    assert_eq!(core.bucket.expire(&core.limits, tick(9)), 0);
    assert_eq!(core.bucket.expire(&core.limits, tick(12)), 3);
    assert_eq!(core.bucket.expire(&core.limits, tick(12)), 0);
    assert_eq!(core.peek(12).available, 3);
}

#[test]
fn dead_holders_are_released_at_once() {
    let mut core = five();
    for id in 1..=3 {
        core.take(0, 1, Some(holder(id, 10 * id as u64)));
    }
    core.take(0, 1, None);
    let limits = core.limits.clone();
    let mut asked = Vec::new();
    let dropped = core.bucket.retain_holders(&limits, tick(10), |id| {
        asked.push(id);
        id != 2
    });
    assert_eq!((dropped, asked), (1, vec![2, 3]), "an expired holder is not checked");
    assert_eq!(core.peek(10).available, 3);
    assert_eq!(core.bucket.retain_holders(&limits, tick(10), |_| true), 0);
    release(&mut core, 11, Some(2), 1);
    assert_eq!(core.peek(11).available, 3, "what was dropped is not given back again");
    assert_eq!(core.bucket.retain_holders(&limits, tick(11), |_| false), 1);
    assert_eq!(core.peek(11).available, 4, "anonymous use is kept");
}

#[test]
fn a_bucket_without_holders_drops_none() {
    let mut core = five();
    core.take(0, 2, None);
    assert_eq!(core.bucket.retain_holders(&core.limits, tick(0), |_| false), 0);
    assert_eq!(core.peek(0).available, 3);
}

#[test]
fn excess_use_of_a_resource_is_not_debt() {
    let mut core = five();
    core.take(0, 2, None);
    core.settle(0, &Settled { at: 0, reserved: 2, used: 50, holder: None });
    assert_eq!(core.peek(0).available, 5);
}
