//! What the tests of this crate share: a clock to turn, a set that goes by it, and ears for its events.

#![allow(dead_code, reason = "each file of tests uses its own part of it")]

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use tollgate::{
    AsDemand, Event, Lease, Limit, LimitBuilder, LimitSet, LimitSetBuilder, ManualClock, Span, Tick,
};

/// Where clocks start: far from zero, and on no round number of any period.
pub(crate) const START: Tick = Tick::from_micros(1_767_225_599_123_457);

/// A clock that stands until it is turned.
pub(crate) fn hands() -> ManualClock {
    ManualClock::at(START)
}

/// A set of these limits that goes by the manual clock `hands`.
pub(crate) fn set<const N: usize>(hands: &ManualClock, limits: [LimitBuilder; N]) -> LimitSet {
    builder(hands, limits).build().expect("the limits of a test are valid")
}

/// The same, with more to say about it.
pub(crate) fn builder<const N: usize>(hands: &ManualClock, limits: [LimitBuilder; N]) -> LimitSetBuilder {
    LimitSet::builder().limits(limits).clock(hands.clock())
}

/// A limit as it was built.
pub(crate) fn built(limit: LimitBuilder) -> Limit {
    limit.build().expect("the limits of a test are valid")
}

/// The lease, if the demand is admitted now.
pub(crate) fn try_take(set: &LimitSet, demand: impl AsDemand) -> Option<Lease<'_>> {
    set.try_acquire(demand).wait().expect("the demand is valid").admitted()
}

/// Takes the demand, which must be admitted, and drops the lease without a word.
pub(crate) fn spend(set: &LimitSet, demand: impl AsDemand) {
    drop(try_take(set, demand).expect("there is room"));
}

/// How many demands like this are admitted now, one after the other.
pub(crate) fn count(set: &LimitSet, demand: impl AsDemand) -> usize {
    std::iter::from_fn(|| try_take(set, &demand)).count()
}

/// How much could be had of a limit now.
pub(crate) fn available(set: &LimitSet, limit: &str) -> i64 {
    set.peek().wait().expect("memory answers").limit(limit).expect("the limit is there").available()
}

/// Turns the clock by so many milliseconds.
pub(crate) fn advance_ms(hands: &ManualClock, millis: u64) {
    hands.advance(Span::from_millis(millis));
}

/// Polls once, as a runtime would.
pub(crate) fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// The answer of a future that must have one.
pub(crate) fn answer<F: Future + Unpin>(future: &mut F) -> F::Output {
    match poll(future) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("still waiting"),
    }
}

/// Gives way to other threads until `done`. Time does not pass, so this is no sleep.
pub(crate) fn until(what: &str, done: impl Fn() -> bool) {
    for _ in 0..100_000_000_u64 {
        if done() {
            return;
        }
        std::thread::yield_now();
    }
    panic!("it never came to pass that {what}");
}

/// What an observer heard, in order.
#[derive(Clone, Default)]
pub(crate) struct Ears(Arc<Mutex<Vec<String>>>);

impl Ears {
    /// An observer that writes down every event.
    pub(crate) fn observer(&self) -> impl Fn(&Event<'_>) + Send + Sync + 'static {
        let heard = Arc::clone(&self.0);
        move |event| heard.lock().expect("no test panics while it listens").push(format!("{event:?}"))
    }

    /// What was heard since the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no test panics while it listens"))
    }

    /// How many events of this kind were heard since the last time.
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.take().iter().filter(|event| event.starts_with(kind)).count()
    }
}

/// A subscriber that keeps the messages of warnings, with their fields.
#[derive(Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// What was warned of while `work` ran in this thread, for a subscriber that listens to nothing less.
    pub(crate) fn during(work: impl FnOnce()) -> Vec<String> {
        let warnings = Warnings::default();
        tracing::subscriber::with_default(warnings.clone(), work);
        std::mem::take(&mut *warnings.0.lock().expect("no test panics while it listens"))
    }
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(tracing::level_filters::LevelFilter::WARN)
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().expect("no test panics while it listens").push(line.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

struct Line(String);

impl tracing::field::Visit for Line {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        use std::fmt::Write as _;
        write!(self.0, "{field}={value:?} ").expect("a string has room");
    }
}
