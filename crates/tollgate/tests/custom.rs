//! Custom limits in a set: taken together with ordinary ones, waited for, settled, dropped, shown and refused.

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use support::{
    START, advance_ms, answer, available, builder, count, hands, poll, set, spend, try_take, until,
};
use tollgate::{
    AcquireError, CheckError, Checker, CustomLimit, DemandError, Level, Limit, LimitBuilder, LimitSet,
    Limiter, LimiterError, Limits, LimitsError, Memory, OnDrop, Ready, ReplaceError, Span, Tick, demand,
};

/// At most so much at once every so many milliseconds: what was taken is counted until its own time has passed, and what is
/// given back is not counted any more.
#[derive(Clone, Copy)]
struct Each {
    amount: u64,
    period_ms: u64,
}

/// What was taken, and when.
type Taken = Vec<(Tick, u64)>;

impl Each {
    fn counts(&self, now: Tick) -> impl Fn(&&(Tick, u64)) -> bool {
        let period = Span::from_millis(self.period_ms);
        move |(at, _)| *at + period > now
    }

    fn end(&self, at: Tick) -> Tick {
        at + Span::from_millis(self.period_ms)
    }
}

impl CustomLimit for Each {
    type State = Taken;

    fn capacity(&self) -> u64 {
        self.amount
    }

    fn fresh(&self) -> Taken {
        Vec::new()
    }

    fn ready(&self, taken: &Taken, now: Tick, amount: u64) -> Ready {
        let ends = taken.iter().map(|(at, _)| self.end(*at)).filter(|end| *end > now);
        let at = std::iter::once(now).chain(ends).filter(|at| self.available(taken, *at) >= amount as i64);
        at.min().map_or(Ready::Unknown, Ready::At)
    }

    fn available(&self, taken: &Taken, now: Tick) -> i64 {
        let used: u64 = taken.iter().filter(self.counts(now)).map(|(_, amount)| amount).sum();
        self.amount as i64 - used as i64
    }

    fn charge(&self, taken: &mut Taken, now: Tick, amount: u64) {
        assert!(amount != 13, "this rule is afraid of it");
        taken.retain(|entry| self.counts(now)(&entry));
        taken.push((now, amount));
    }

    fn refund(&self, taken: &mut Taken, at: Tick, _: Tick, amount: u64) {
        if let Some((_, left)) = taken.iter_mut().find(|(then, left)| *then == at && *left >= amount) {
            *left -= amount;
        }
    }
}

fn each(amount: u64, period_ms: u64) -> LimitBuilder {
    Limit::custom("own", Each { amount, period_ms })
}

/// A custom limit, a rate and slots.
fn limits() -> [LimitBuilder; 3] {
    [each(3, 500), Limit::per_second("rps", 5), Limit::resource("slots", 4)]
}

/// What is left of each.
fn left(set: &LimitSet) -> [i64; 3] {
    ["own", "rps", "slots"].map(|limit| available(set, limit))
}

#[test]
fn a_custom_limit_is_taken_together_with_others_or_not_at_all() {
    let hands = hands();
    let set = set(&hands, limits());
    let lease = try_take(&set, demand! { own: 2, rps: 1 }).expect("there is room");
    assert_eq!(left(&set), [1, 4, 3]);
    // Short of the custom limit, then of the rate: nothing is taken of the others.
    assert!(try_take(&set, demand! { own: 2, rps: 1 }).is_none());
    assert!(try_take(&set, demand! { own: 1, rps: 5 }).is_none());
    assert_eq!(left(&set), [1, 4, 3]);
    lease.settle(demand! { own: 1, rps: 1 }).wait().expect("memory answers");
    assert_eq!(left(&set), [2, 4, 4]);
}

#[test]
fn a_denial_has_the_status_of_every_limit_and_the_wait_of_the_slowest() {
    let hands = hands();
    let set = set(&hands, limits());
    spend(&set, demand! { own: 3, rps: 5 });
    let denial =
        set.try_acquire(demand! { own: 1, rps: 1 }).wait().unwrap().denied().expect("nothing is left");
    assert_eq!(denial.wait(), Some(Duration::from_millis(500)));
    assert_eq!(denial.to_string(), "own has 0 of the 1 asked; retry in 500ms");
    let waits: Vec<_> = denial.statuses().map(|status| status.ready().wait(START)).collect();
    assert_eq!(waits, [500, 200, 0].map(|millis| Some(Duration::from_millis(millis))));
    let status = set.peek().wait().unwrap();
    let own = status.limit("own").expect("it is there");
    assert_eq!((own.available(), own.full()), (0, Ready::At(START + Span::from_millis(500))));
    assert_eq!(set.ready(demand! { own: 2 }).wait(), Ok(own.full()));
    assert_eq!(format!("{:?}", set.limit("own").unwrap().to_string()), "\"own: 3 (custom)\"");
}

#[test]
fn a_demand_beyond_the_capacity_or_without_an_amount_is_an_error() {
    let set = set(&hands(), limits());
    let refused = set.try_acquire(demand! { own: 4 }).wait();
    let is_impossible =
        |why: &DemandError| matches!(why, DemandError::Impossible { asked: 4, capacity: 3, .. });
    assert!(matches!(&refused, Err(AcquireError::Demand(why)) if is_impossible(why)), "{refused:?}");
    let unnamed = set.try_acquire(demand! {}).wait();
    assert!(matches!(unnamed, Err(AcquireError::Demand(DemandError::MissingAmount { .. }))));
    assert_eq!(left(&set), [3, 5, 4]);
}

#[test]
fn a_waiter_passes_at_the_instant_that_the_rule_gives_and_not_before() {
    let hands = hands();
    let set = set(&hands, limits());
    spend(&set, demand! { own: 3 });
    let mut waiting = set.acquire(demand! { own: 2, rps: 1 }).into_future();
    assert!(poll(&mut waiting).is_pending());
    hands.advance(Span::from_micros(499_999));
    assert!(poll(&mut waiting).is_pending());
    hands.advance(Span::from_micros(1));
    let lease = answer(&mut waiting).expect("its time has come");
    assert_eq!(lease.waited(), Some(Duration::from_millis(500)));
    assert_eq!(left(&set), [1, 4, 3]);
}

#[test]
fn a_refund_lets_a_waiter_pass_at_once_and_in_order() {
    let hands = hands();
    let set = set(&hands, limits());
    let lease = try_take(&set, demand! { own: 3 }).expect("there is room");
    let mut first = set.acquire(demand! { own: 2 }).into_future();
    let mut second = set.acquire(demand! { own: 1 }).into_future();
    assert!(poll(&mut first).is_pending() && poll(&mut second).is_pending());
    // A demand that takes nothing of the custom limit is not held back.
    spend(&set, demand! { rps: 1 });
    assert!(try_take(&set, demand! { own: 1 }).is_none(), "it does not overtake");
    lease.settle(demand! { own: 1 }).wait().expect("memory answers");
    drop(answer(&mut first).expect("two are back"));
    assert!(poll(&mut second).is_pending());
    advance_ms(&hands, 500);
    assert!(matches!(poll(&mut second), Poll::Ready(Ok(_))));
}

#[test]
fn a_thread_waits_in_the_same_queue_and_a_timeout_that_cannot_fit_is_told_at_once() {
    let hands = hands();
    let set = set(&hands, limits());
    spend(&set, demand! { own: 3 });
    let told = set.acquire(demand! { own: 1 }).timeout(Duration::from_millis(400)).wait();
    let Err(AcquireError::TimedOut { denial, waited }) = told else { panic!("it cannot fit") };
    assert_eq!((denial.wait(), waited), (Some(Duration::from_millis(500)), Duration::ZERO));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| set.acquire(demand! { own: 1 }).wait().map(|lease| lease.waited()));
        until("it stands in the queue", || set.peek().wait().unwrap().waiting == 1);
        advance_ms(&hands, 500);
        assert_eq!(waiting.join().unwrap(), Ok(Some(Duration::from_millis(500))));
    });
}

#[test]
fn a_cancelled_waiter_leaves_no_trace() {
    let hands = hands();
    let set = set(&hands, limits());
    spend(&set, demand! { own: 3 });
    let mut waiting = set.acquire(demand! { own: 3 }).into_future();
    assert!(poll(&mut waiting).is_pending());
    advance_ms(&hands, 500);
    drop(waiting);
    assert_eq!(left(&set), [3, 5, 4], "what it was granted is back");
    assert_eq!(set.peek().wait().unwrap().waiting, 0);
}

#[test]
fn a_dropped_lease_stays_charged_unless_the_set_says_otherwise() {
    let hands = hands();
    let keeps = set(&hands, limits());
    drop(try_take(&keeps, demand! { own: 2, rps: 2 }));
    assert_eq!(left(&keeps), [1, 3, 4]);
    let refunds = builder(&hands, limits()).on_drop(OnDrop::Refund).build().expect("valid");
    drop(try_take(&refunds, demand! { own: 2, rps: 2 }));
    assert_eq!(left(&refunds), [3, 5, 4]);
    let cancelled = try_take(&keeps, demand! { own: 1 }).expect("there is room");
    cancelled.cancel().wait().expect("memory answers");
    assert_eq!(left(&keeps), [1, 3, 4]);
}

#[test]
fn what_was_used_beyond_is_charged_and_may_be_debt() {
    let hands = hands();
    let set = set(&hands, limits());
    let lease = try_take(&set, demand! { own: 2 }).expect("there is room");
    lease.settle(demand! { own: 5 }).wait().expect("memory answers");
    assert_eq!(left(&set), [-2, 5, 4]);
    assert_eq!(count(&set, demand! { own: 1 }), 0);
    advance_ms(&hands, 500);
    assert_eq!(count(&set, demand! { own: 1 }), 3);
}

#[test]
fn more_limits_than_are_inline_and_leases_that_expire_work_as_well() {
    let hands = hands();
    let rates = (0..12).map(|index| Limit::per_second(format!("rate-{index}"), 9));
    let set = LimitSet::builder().limits(rates).limits(limits()).clock(hands.clock());
    let set = set.lease_ttl(Duration::from_secs(1)).build().expect("valid");
    let lease = try_take(&set, demand! { own: 3 }).expect("there is room");
    assert_eq!(left(&set), [0, 5, 3]);
    advance_ms(&hands, 1_000);
    assert_eq!(left(&set), [3, 5, 4], "its slot has expired");
    drop(lease);
    assert_eq!(left(&set), [3, 5, 4]);
}

#[test]
fn a_rule_is_replaced_with_what_was_used_and_removed() {
    let hands = hands();
    let set = set(&hands, limits());
    spend(&set, demand! { own: 3 });
    let mut waiting = set.acquire(demand! { own: 2 }).into_future();
    assert!(poll(&mut waiting).is_pending());
    set.replace(each(5, 500)).wait().expect("it is of one kind");
    let lease = answer(&mut waiting).expect("there is room under the larger one");
    assert_eq!(available(&set, "own"), 0);
    lease.cancel().wait().expect("memory answers");
    assert_eq!(available(&set, "own"), 2);
    let other = set.replace(Limit::per_second("own", 9)).wait();
    assert!(matches!(other, Err(ReplaceError::Limits(LimitsError::OtherKind(_)))));
    set.remove("own").wait().expect("it is there");
    assert!(try_take(&set, demand! { own: 1_000_000 }).is_some());
    let unknown = set.remove("none").wait();
    assert!(matches!(unknown, Err(ReplaceError::Limits(LimitsError::Unknown(_)))));
}

#[test]
fn a_rule_that_panics_takes_nothing_and_the_set_goes_on() {
    let hands = hands();
    let set = set(&hands, [each(20, 500), Limit::per_second("rps", 5), Limit::resource("slots", 4)]);
    spend(&set, demand! { own: 1 });
    let panicked = catch_unwind(AssertUnwindSafe(|| try_take(&set, demand! { own: 13, rps: 1 }).is_some()));
    assert!(panicked.is_err());
    assert_eq!(left(&set), [19, 5, 4]);
    assert_eq!(count(&set, demand! { own: 1, rps: 1 }), 5);
}

#[test]
fn a_shadow_of_a_rule_never_refuses() {
    let set = set(&hands(), [each(3, 500).shadow()]);
    assert!(try_take(&set, demand! { own: 3 }).is_some() && try_take(&set, demand! { own: 3 }).is_some());
    assert_eq!(available(&set, "own"), -3);
}

#[test]
fn a_hundred_threads_take_no_more_than_there_is() {
    let hands = hands();
    let set = set(&hands, [each(100, 500), Limit::per_second("rps", 70)]);
    let admitted: usize = thread::scope(|scope| {
        let take = || scope.spawn(|| count(&set, demand! { own: 1, rps: 1 }));
        let threads: Vec<_> = (0..100).map(|_| take()).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((admitted, available(&set, "own")), (70, 30));
}

#[test]
fn a_store_refuses_a_custom_limit_when_the_set_is_built_and_says_what_would_be_right() {
    let set = LimitSet::builder().limits(limits()).store(Arc::new(Memory::default())).name("openai/blue");
    let refused = set.build().expect_err("no store can keep a rule");
    assert!(matches!(&refused, LimitsError::Custom(name) if name == "own"));
    let told = refused.to_string();
    assert!(told.contains("\"own\"") && told.contains("without a store"), "{told}");
}

#[test]
fn a_checker_and_a_limiter_refuse_a_custom_limit() {
    let limits = Limits::new(limits()).expect("they are valid");
    let own = Limits::new([each(3, 500)]).expect("it is valid");
    let is_custom = |why: &LimitsError| matches!(why, LimitsError::Custom(name) if name == "own");
    for checker in [Checker::new(), Checker::in_store(Arc::new(Memory::default()), "checks")] {
        let refused = checker.try_acquire("key", "chat", &demand! { own: 1 }, &own).wait();
        assert!(matches!(&refused, Err(CheckError::Limits(why)) if is_custom(why)), "{refused:?}");
        let refused = checker.peek("key", "chat", &own).wait();
        assert!(matches!(&refused, Err(CheckError::Limits(why)) if is_custom(why)), "{refused:?}");
    }
    let limiter = Limiter::in_memory().expect("memory is there");
    use tollgate::catalog::CatalogError;
    for level in [Level::System, Level::Resource("gpt-4"), Level::Entity("user-1")] {
        let refused = limiter.catalog().set_limits(level, &limits).wait();
        assert!(matches!(&refused, Err(CatalogError::Limits(why)) if is_custom(why)), "{refused:?}");
    }
    let refused = limiter.acquire("user-1", "gpt-4", demand! { own: 1 }).limits(own).wait();
    let is_refused =
        matches!(&refused, Err(LimiterError::Catalog(CatalogError::Limits(why))) if is_custom(why));
    assert!(is_refused, "{refused:?}");
}
