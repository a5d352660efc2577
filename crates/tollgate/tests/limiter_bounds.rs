//! What a limiter keeps must not stand in the way of what it is for.

use std::sync::Arc;

use tollgate::store::Memory;
use tollgate::{Level, Limit, Limiter, Limits, ManualClock, Span, Tick, demand};

#[test]
fn idle_buckets_that_are_remembered_make_room_for_new_ones() {
    let hands = ManualClock::at(Tick::from_secs(1_000_000));
    let memory = Memory::builder().clock(hands.clock()).keys_max(64).build();
    let limiter = Limiter::open(Arc::new(memory), "default").wait().unwrap();
    let limits = Limits::new([Limit::per_second("rps", 10)]).unwrap();
    limiter.catalog().set_limits(Level::System, &limits).wait().unwrap();
    for number in 0..1_000 {
        let entity = format!("entity-{number}");
        let lease = limiter.acquire(&entity, "search", demand! { rps: 1 }).wait().unwrap();
        lease.commit().wait().unwrap();
        hands.advance(Span::from_secs(1));
    }
}

#[test]
fn those_who_wait_for_one_entity_are_no_concern_of_another() {
    let limiter = Limiter::in_memory().unwrap();
    let limits = Limits::new([Limit::per_hour("rph", 10), Limit::resource("slots", 1)]).unwrap();
    limiter.catalog().set_limits(Level::System, &limits).wait().unwrap();
    let held = limiter.acquire("busy", "search", demand! { rph: 1 }).wait().unwrap();
    std::thread::scope(|scope| {
        let waiter =
            scope.spawn(|| drop(limiter.acquire("busy", "search", demand! { rph: 1 }).wait().unwrap()));
        while limiter.waiting() == 0 {
            std::thread::yield_now();
        }
        for _ in 0..5 {
            let lease = limiter.acquire("idle", "search", demand! { rph: 1 }).wait().unwrap();
            lease.commit().wait().unwrap();
        }
        let lease = limiter.acquire("busy", "search", demand! { rph: 1, slots: 0 }).wait().unwrap();
        lease.commit().wait().unwrap();
        let attempt = limiter.try_acquire("busy", "search", demand! { rph: 1 }).wait().unwrap();
        assert!(!attempt.is_admitted(), "another waits");
        drop(held);
        waiter.join().unwrap();
    });
}
