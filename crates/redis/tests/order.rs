//! Waiters of several processes on one server are served in the order of their arrival.
//!
//! A store of its own has connections and wait queues of its own, so several of them are to the server what several
//! processes are.

#![allow(clippy::disallowed_methods, reason = "what others do in the background is waited for")]

mod common;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate::catalog::Level;
use tollgate::{Limit, Limiter, Limits, demand};
use tollgate_redis::RedisStore;
use tollgate_redis_local::{Server, ServerKind};
use tollgate_store::{Backend, Clock};

/// A process, as far as the server can tell.
struct Instance {
    store: RedisStore,
    limiter: Limiter,
}

/// Instances at one address whose clock is the server's.
fn instances(url: &str, count: usize, limits: Limits) -> Vec<Instance> {
    static PREFIX: AtomicU32 = AtomicU32::new(0);
    let prefix = format!("order-{}", PREFIX.fetch_add(1, Ordering::Relaxed));
    let instances: Vec<Instance> = (0..count).map(|_| instance(url, &prefix, None)).collect();
    instances[0].limiter.catalog().set_limits(Level::System, &limits).wait().expect("it answers");
    instances
}

fn instance(url: &str, prefix: &str, clock: Option<Clock>) -> Instance {
    let builder = RedisStore::builder(url).prefix(prefix).timeout(Duration::from_secs(30));
    let builder = match clock {
        Some(clock) => builder.clock(clock),
        None => builder,
    };
    let store = builder.build().wait().expect("the server is there");
    let limiter = Limiter::open(Arc::new(store.clone()), "default").wait().expect("it answers");
    Instance { store, limiter }
}

fn slots(count: u64) -> Limits {
    Limits::new([Limit::resource("slots", count)]).expect("it is valid")
}

impl Instance {
    /// Waits until so many callers of this instance wait, and none of them is asking the server.
    fn until_waiting(&self, count: usize) {
        let queues = self.store.wait_queues();
        while queues.waiting() != count || queues.is_busy() {
            std::thread::yield_now();
        }
    }
}

fn in_order_of_arrival(url: &str, count: usize, waiters: usize) {
    let instances = instances(url, count, slots(1));
    let holder = instances[0].limiter.acquire("me", "jobs", demand! { slots: 1 }).wait().expect("it is free");
    let served = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for number in 0..waiters {
            let (instance, served) = (&instances[number % count], &served);
            scope.spawn(move || {
                let taken = instance.limiter.acquire("me", "jobs", demand! { slots: 1 }).wait();
                let lease = taken.expect("it is served");
                served.lock().expect("no thread panicked").push(number);
                lease.commit().wait().expect("it answers");
            });
            instance.until_waiting(number / count + 1);
        }
        holder.commit().wait().expect("it answers");
    });
    assert_eq!(served.into_inner().expect("no thread panicked"), (0..waiters).collect::<Vec<_>>());
}

#[test]
fn waiters_of_several_processes_are_served_in_the_order_of_their_arrival() {
    for kind in ServerKind::ALL {
        in_order_of_arrival(&common::server(kind).url(), 8, 8);
    }
    in_order_of_arrival(&common::cluster().url(), 8, 8);
}

#[test]
fn several_waiters_of_each_process_are_served_in_the_order_of_their_arrival() {
    in_order_of_arrival(&Server::start(ServerKind::Redis).url(), 2, 24);
}

#[test]
fn a_large_demand_is_not_starved_by_small_ones_of_another_process() {
    /// More than are admitted before the large one has said what it waits for.
    const SMALL_MAX: usize = 2_000;
    let server = Server::start(ServerKind::Redis);
    let instances = instances(&server.url(), 2, slots(10));
    let [large, small] = &instances[..] else { panic!("there are two") };
    let take = || {
        let attempt = small.limiter.try_acquire("me", "jobs", demand! { slots: 1 }).wait();
        attempt.expect("it answers").admitted()
    };
    let mut held = Some(take().expect("it is free"));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let taken = large.limiter.acquire("me", "jobs", demand! { slots: 10 });
            taken.timeout(Duration::from_secs(60)).wait().map(drop)
        });
        large.until_waiting(1);
        let mut admitted = 0;
        while !waiter.is_finished() && admitted < SMALL_MAX {
            // One is always held, unless the server refuses the next.
            held = take();
            admitted += usize::from(held.is_some());
        }
        drop(held);
        assert!(admitted < SMALL_MAX, "the large demand waits behind {admitted} small ones that came later");
        waiter.join().expect("it did not panic").expect("it is served");
    });
}
