//! What the tests of batches share: a handler that follows a script, and a record of what happened.
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

/// Rules with no chance in them.
pub(crate) fn exact() -> CooldownPolicy {
    CooldownPolicy::default().jitter(0)
}

/// A 429 that advises so many seconds.
pub(crate) fn not_now<O>(seconds: u64) -> CallReply<O> {
    CallReply::refused(Hint::throttled(Some(Duration::from_secs(seconds))))
}

/// It went well.
pub(crate) fn fine<O>(output: O) -> CallReply<O> {
    CallReply::done(output, Hint::ok())
}

/// What happened, in words.
#[derive(Clone, Default)]
pub(crate) struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    pub(crate) fn observer(&self) -> impl BatchObserver + 'static {
        let diary = self.clone();
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
            diary.0.lock().push(line);
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    pub(crate) fn count(&self, start: &str) -> usize {
        self.lines().iter().filter(|line| line.starts_with(start)).count()
    }
}

/// How often each item was called.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<HashMap<String, u32>>>);

impl Calls {
    /// Counts a call, and says which one of the item it is.
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

/// Every outcome, with the proof that there is one for each item.
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
