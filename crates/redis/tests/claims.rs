//! Claims of waiters on a server: which calls they hold back, and for how long.
//!
//! The clock is a manual one, so nothing expires unless the test says so. A store of its own is to the server what a
//! process of its own is.

#![allow(clippy::disallowed_methods, reason = "what others do in the background is waited for")]

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tollgate::catalog::Level;
use tollgate::{AsDemand, Limit, Limiter, Limits, Priority, demand};
use tollgate_core::{PERIOD_MAX, Span, Tick};
use tollgate_redis::{RedisStore, RedisStoreBuilder};
use tollgate_redis_local::{RespReply as Said, Server, ServerKind};
use tollgate_store::{Backend, ManualClock, Reply};

const START: Tick = Tick::from_secs(1_800_000_000);

/// How long a claim holds that is not renewed.
const CLAIM: Span = Span::from_secs(1);

type Waiting<'a> = Reply<'a, Result<tollgate::LimiterLease<'a>, tollgate::LimiterError>>;

/// A server, and a clock for all instances on it.
struct Fleet {
    server: Server,
    hands: ManualClock,
}

/// A process, as far as the server can tell.
struct Instance {
    store: RedisStore,
    limiter: Limiter,
}

impl Fleet {
    fn new(kind: ServerKind) -> Fleet {
        Fleet { server: Server::start(kind), hands: ManualClock::at(START) }
    }

    fn instance(&self) -> Instance {
        self.instance_with(|builder| builder)
    }

    fn instance_with(&self, with: impl FnOnce(RedisStoreBuilder) -> RedisStoreBuilder) -> Instance {
        let builder = RedisStore::builder(self.server.url()).timeout(Duration::from_secs(30));
        let store = with(builder.clock(self.hands.clock())).build().wait().expect("the server is there");
        let limiter = Limiter::open(Arc::new(store.clone()), "default").wait().expect("it answers");
        Instance { store, limiter }
    }

    fn number(&self, script: &str, argument: &str) -> i64 {
        match self.server.command(&["EVAL", script, "0", argument]) {
            Said::Number(number) => number,
            other => panic!("the server said {other:?}"),
        }
    }

    /// How many keys there are that have to do with waiters, and buckets that say they have some.
    fn traces(&self) -> (i64, i64) {
        let keys = self.number("return #redis.call('KEYS', ARGV[1])", "{tollgate}[cq]:*");
        let marked = "local marked = 0
            for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
              local value = redis.call('GET', key)
              if struct.unpack('<d', value, 42) % 2 == 1 then marked = marked + 1 end
            end
            return marked";
        (keys, self.number(marked, "{tollgate}b:*"))
    }
}

impl Instance {
    fn set<const COUNT: usize>(&self, limits: [tollgate_core::LimitBuilder; COUNT]) {
        let limits = Limits::new(limits).expect("they are valid");
        self.limiter.catalog().set_limits(Level::System, &limits).wait().expect("it answers");
    }

    /// Takes now, or is refused.
    fn take<'a>(&'a self, demand: impl AsDemand + Send + Sync + 'a) -> Option<tollgate::LimiterLease<'a>> {
        self.limiter.try_acquire("me", "jobs", demand).wait().expect("it answers").admitted()
    }

    /// Starts to wait, and polls until there is nothing to do but wait.
    fn wait_for<'a>(&'a self, demand: impl AsDemand + Send + Sync + 'a) -> Waiting<'a> {
        self.wait_as(Priority::Normal, demand)
    }

    fn wait_as<'a>(&'a self, priority: Priority, demand: impl AsDemand + Send + Sync + 'a) -> Waiting<'a> {
        let (queues, before) = (self.store.wait_queues(), self.store.wait_queues().waiting());
        let mut waiting = self.limiter.acquire("me", "jobs", demand).priority(priority).into_future();
        while queues.waiting() == before || queues.is_busy() {
            assert!(poll(&mut waiting).is_pending(), "it does not fit");
            std::thread::yield_now();
        }
        waiting
    }
}

fn poll<'a>(waiting: &mut Waiting<'a>) -> Poll<<Waiting<'a> as Future>::Output> {
    Pin::new(waiting).poll(&mut Context::from_waker(Waker::noop()))
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}: not within ten seconds");
}

#[test]
fn a_claim_that_is_not_renewed_holds_others_back_for_a_second() {
    for kind in ServerKind::ALL {
        let fleet = Fleet::new(kind);
        let [one, two] = [fleet.instance(), fleet.instance()];
        one.set([Limit::resource("slots", 2)]);
        let holder = one.take(demand! { slots: 1 }).expect("it is free");
        let stopped = one.wait_for(demand! { slots: 2 });
        assert!(two.take(demand! { slots: 1 }).is_none(), "a waiter claims the rest");
        fleet.hands.advance(Span::from_micros(CLAIM.as_micros() - 1));
        assert!(two.take(demand! { slots: 1 }).is_none(), "a microsecond too early");
        fleet.hands.advance(Span::from_micros(1));
        let passed = two.take(demand! { slots: 1 }).expect("the waiter did not ask again for a second");
        drop((passed, holder, stopped));
    }
}

#[test]
fn a_waiter_that_asks_again_keeps_its_claim_and_its_place() {
    let fleet = Fleet::new(ServerKind::Redis);
    let [one, two] = [fleet.instance(), fleet.instance()];
    one.set([Limit::resource("slots", 2)]);
    let holder = one.take(demand! { slots: 1 }).expect("it is free");
    let mut waiting = one.wait_for(demand! { slots: 2 });
    for _ in 0..20 {
        fleet.hands.advance(Span::from_millis(200));
        while one.store.wait_queues().is_busy() {
            assert!(poll(&mut waiting).is_pending(), "it does not fit");
        }
        assert!(two.take(demand! { slots: 1 }).is_none(), "a waiter claims the rest");
    }
    holder.commit().wait().expect("it answers");
    assert!(two.take(demand! { slots: 1 }).is_none(), "all of it is claimed");
    fleet.hands.advance(Span::from_millis(200));
    let granted = waiting.wait().expect("it is served");
    assert_eq!(fleet.traces(), (0, 0), "the grant removes the claim");
    granted.commit().wait().expect("it answers");
    assert!(two.take(demand! { slots: 1 }).is_some());
}

#[test]
fn a_cancelled_waiter_leaves_no_trace() {
    for kind in ServerKind::ALL {
        let fleet = Fleet::new(kind);
        let [one, two] = [fleet.instance(), fleet.instance()];
        one.set([Limit::resource("slots", 2)]);
        let holder = one.take(demand! { slots: 1 }).expect("it is free");
        let waiting = one.wait_for(demand! { slots: 2 });
        fleet.hands.advance(Span::from_micros(1));
        let behind = two.wait_for(demand! { slots: 1 });
        assert_eq!(
            fleet.traces(),
            (2, 1),
            "the waiters of the limit, their claims on the bucket, and a mark"
        );
        drop((waiting, behind));
        eventually("the claims are removed", || fleet.traces() == (0, 0));
        assert!(two.take(demand! { slots: 1 }).is_some());
        drop(holder);
    }
}

#[test]
fn a_waiter_that_is_cancelled_at_any_poll_leaves_no_trace() {
    let fleet = Fleet::new(ServerKind::Redis);
    let [one, two] = [fleet.instance(), fleet.instance()];
    one.set([Limit::resource("slots", 2)]);
    let holder = one.take(demand! { slots: 1 }).expect("it is free");
    for polls in 0..40 {
        let waiting = one.limiter.acquire("me", "jobs", demand! { slots: 2 });
        let mut waiting = waiting.into_future();
        (0..polls).for_each(|_| assert!(poll(&mut waiting).is_pending(), "it does not fit"));
        drop(waiting);
    }
    eventually("the claims are removed", || fleet.traces() == (0, 0));
    assert!(two.take(demand! { slots: 1 }).is_some());
    drop(holder);
}

#[test]
fn a_demand_is_held_back_only_by_a_claim_on_a_limit_that_it_takes_from() {
    let fleet = Fleet::new(ServerKind::Redis);
    let [one, two] = [fleet.instance(), fleet.instance()];
    one.set([Limit::per_day("budget", 5), Limit::per_second("rps", 1_000)]);
    one.take(demand! { budget: 3 }).expect("it fits").commit().wait().expect("it answers");
    let first = one.wait_for(demand! { budget: 4, rps: 1 });
    assert!(two.take(demand! { budget: 1 }).is_none(), "the budget is claimed");
    // One that would fit, and is held back, claims no more than what holds it back.
    fleet.hands.advance(Span::from_micros(1));
    let second = two.wait_for(demand! { budget: 1, rps: 1 });
    let third = fleet.instance();
    for _ in 0..900 {
        let lease = third.take(demand! { rps: 1 }).expect("no waiter claims it");
        lease.commit().wait().expect("it answers");
    }
    drop((first, second));
}

#[test]
fn a_newcomer_passes_waiters_that_are_more_patient() {
    let fleet = Fleet::new(ServerKind::Redis);
    let [one, two] = [fleet.instance(), fleet.instance()];
    one.set([Limit::resource("slots", 2)]);
    let holder = one.take(demand! { slots: 1 }).expect("it is free");
    let patient = one.wait_as(Priority::Batch, demand! { slots: 2 });
    let at_once =
        two.limiter.try_acquire("me", "jobs", demand! { slots: 1 }).priority(Priority::Batch).wait();
    assert!(!at_once.expect("it answers").is_admitted(), "it came later");
    let interactive = two.limiter.acquire("me", "jobs", demand! { slots: 1 }).priority(Priority::Interactive);
    drop(interactive.wait().expect("it may pass"));
    drop(two.take(demand! { slots: 1 }).expect("a normal one may pass for a minute less five seconds"));
    drop((patient, holder));
}

/// Whatever a limit counts by, and also if its numbers are too large for scripts.
#[test]
fn a_claim_holds_back_smaller_demands_on_limits_of_all_kinds() {
    let day = Duration::from_secs(86_400);
    let kinds = [
        Limit::per_day("it", 10),
        Limit::fixed_window("it", 10, day),
        Limit::sliding_window("it", 10, day),
        Limit::quota("it", 10, day),
        Limit::resource("it", 10),
        Limit::rate("it", 999_999_999_999_989u64, PERIOD_MAX.to_duration()).burst(10),
    ];
    for (number, limit) in kinds.into_iter().enumerate() {
        let fleet = Fleet::new(ServerKind::Redis);
        let [one, two] = [fleet.instance(), fleet.instance()];
        one.set([limit]);
        let holder = one.take(demand! { it: 5 }).expect("it fits");
        let waiting = one.wait_for(demand! { it: 9 });
        assert!(two.take(demand! { it: 1 }).is_none(), "kind {number}");
        fleet.hands.advance(CLAIM);
        assert!(two.take(demand! { it: 1 }).is_some(), "kind {number}");
        drop((holder, waiting));
    }
}

/// What the first waiters do not want may be had by the next.
#[test]
fn a_waiter_passes_if_there_is_enough_for_all_that_are_ahead_of_it() {
    let fleet = Fleet::new(ServerKind::Redis);
    let [one, two, three] = [fleet.instance(), fleet.instance(), fleet.instance()];
    one.set([Limit::resource("slots", 3)]);
    let holder = one.take(demand! { slots: 3 }).expect("it is free");
    let first = one.wait_for(demand! { slots: 1 });
    fleet.hands.advance(Span::from_micros(1));
    let second = two.wait_for(demand! { slots: 1 });
    fleet.hands.advance(Span::from_micros(1));
    let third = three.wait_for(demand! { slots: 2 });
    holder.commit().wait().expect("it answers");
    fleet.hands.advance(Span::from_millis(200));
    let second = second.wait().expect("there is one for it and one for the first");
    let first = first.wait().expect("it is served");
    second.commit().wait().expect("it answers");
    fleet.hands.advance(Span::from_millis(200));
    drop((first, third.wait().expect("it is served")));
}

/// A program that takes ahead hands out what it holds, and no more while others wait.
#[test]
fn what_is_held_ahead_is_all_that_newcomers_get_while_another_process_waits() {
    const HELD_MAX: usize = 50;
    let fleet = Fleet::new(ServerKind::Redis);
    let ahead = fleet.instance_with(|builder| builder.prefetch(5, Duration::from_secs(3_600)));
    let plain = fleet.instance();
    plain.set([Limit::per_day("rpm", 1_000)]);
    for _ in 0..600 {
        ahead.take(demand! { rpm: 1 }).expect("it fits").commit().wait().expect("it answers");
    }
    let waiting = plain.wait_for(demand! { rpm: 800 });
    let overtaking = |_: &usize| ahead.take(demand! { rpm: 1 }).map(|lease| lease.commit().wait()).is_some();
    let overtaken = (0..1_000).take_while(overtaking).count();
    assert!(overtaken <= HELD_MAX, "{overtaken} passed");
    assert!(ahead.take(demand! { rpm: 1 }).is_none());
    drop(waiting);
}

/// A value of an earlier version may look as if there were waiters.
#[test]
fn a_mark_without_waiters_is_removed_by_the_next_take() {
    let fleet = Fleet::new(ServerKind::Redis);
    let one = fleet.instance();
    one.set([Limit::per_day("rpm", 1_000)]);
    one.take(demand! { rpm: 1 }).expect("it fits").commit().wait().expect("it answers");
    let mark = "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
          local lasts = struct.unpack('<d', redis.call('GET', key), 42)
          redis.call('SETRANGE', key, 41, struct.pack('<d', lasts + 1))
        end
        return 1";
    fleet.number(mark, "{tollgate}b:*");
    assert_eq!(fleet.traces(), (0, 1));
    one.take(demand! { rpm: 1 }).expect("it fits").commit().wait().expect("it answers");
    assert_eq!(fleet.traces(), (0, 0));
}
