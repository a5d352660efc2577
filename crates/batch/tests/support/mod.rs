//! The fixture of batch tests: items, replies, an event log and a counter of calls.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tollgate_batch::{BatchEvent, BatchObserver, CallReply, CooldownPolicy, Item, ItemAttempt, Outcome, Run};
use tollgate_provider::Hint;
use tollgate_store::Mutex;

/// Items 0, 1, 2 and so on.
pub(crate) fn items(count: u64) -> impl Iterator<Item = Item<u64>> + Send {
    (0..count).map(|number| Item::new(number.to_string(), number))
}

/// Returns a cooldown policy without jitter.
pub(crate) fn without_jitter() -> CooldownPolicy {
    CooldownPolicy::default().jitter(0)
}

/// Returns a 429 that advises a wait of this many seconds.
pub(crate) fn throttled<O>(seconds: u64) -> CallReply<O> {
    CallReply::refused(Hint::throttled(Some(Duration::from_secs(seconds))))
}

/// Returns the reply of a call that succeeded.
pub(crate) fn succeeded<O>(output: O) -> CallReply<O> {
    CallReply::done(output, Hint::ok())
}

/// The events of a batch, one line each.
#[derive(Clone, Default)]
pub(crate) struct EventLog(Arc<Mutex<Vec<String>>>);

impl EventLog {
    pub(crate) fn observer(&self) -> impl BatchObserver + 'static {
        let log = self.clone();
        move |event: &BatchEvent<'_>| {
            let line = match event {
                BatchEvent::Started { id, scope, attempt } => format!("start {id} {scope} {attempt}"),
                BatchEvent::CoolingDown { scope, left, .. } => {
                    format!("cooling {scope} {}ms", left.as_millis())
                }
                BatchEvent::CooledDown { scope, .. } => format!("cooled {scope}"),
                BatchEvent::Parked { id, .. } => format!("parked {id}"),
                BatchEvent::Finished { id, done, .. } => format!("finished {id} {done}"),
                BatchEvent::Closed { scope, closed } => format!("closed {scope} {}", closed.reason),
                BatchEvent::Skipped { id, .. } => format!("skipped {id}"),
                BatchEvent::Ended => "ended".into(),
                _ => return,
            };
            log.0.lock().push(line);
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    pub(crate) fn count(&self, start: &str) -> usize {
        self.lines().iter().filter(|line| line.starts_with(start)).count()
    }
}

/// Counts the calls of each item.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<HashMap<String, u32>>>);

impl Calls {
    /// Counts a call, and returns its number among those of the item.
    pub(crate) fn count<P, S>(&self, call: &ItemAttempt<P, S>) -> u32 {
        let mut calls = self.0.lock();
        let count = calls.entry(call.id().to_owned()).or_default();
        *count += 1;
        *count
    }

    pub(crate) fn total(&self) -> u32 {
        self.0.lock().values().sum()
    }

    pub(crate) fn of(&self, id: &str) -> u32 {
        self.0.lock().get(id).copied().unwrap_or(0)
    }
}

/// Returns all outcomes, after it has checked that there is one for each item.
pub(crate) async fn one_each<O: Send + 'static>(mut run: Run<O>, count: u64) -> Vec<Outcome<O>> {
    let mut outcomes = Vec::new();
    while let Some(outcome) = run.next().await {
        outcomes.push(outcome);
    }
    outcomes.sort_by_key(|outcome| outcome.index);
    let indices: Vec<u64> = outcomes.iter().map(|outcome| outcome.index).collect();
    assert_eq!(indices, (0..count).collect::<Vec<_>>());
    outcomes
}
