//! What the tests of batches share: a handler that follows a script, and a record of what happened.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tollgate_batch::{Event, Item, Observer, Outcome, Reply, Rules, Run, Try};
use tollgate_provider::Hint;
use tollgate_store::Mutex;

/// Items 0, 1, 2 and so on.
pub(crate) fn items(count: u64) -> impl Iterator<Item = Item<u64>> + Send {
    (0..count).map(|number| Item::new(number.to_string(), number))
}

/// Rules with no chance in them.
pub(crate) fn exact() -> Rules {
    Rules::default().jitter(0)
}

/// A 429 that advises so many seconds.
pub(crate) fn not_now<O>(seconds: u64) -> Reply<O> {
    Reply::refused(Hint::throttled(Some(Duration::from_secs(seconds))))
}

/// It went well.
pub(crate) fn fine<O>(output: O) -> Reply<O> {
    Reply::done(output, Hint::ok())
}

/// What happened, in words.
#[derive(Clone, Default)]
pub(crate) struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    pub(crate) fn observer(&self) -> impl Observer + 'static {
        let diary = self.clone();
        move |event: &Event<'_>| {
            let line = match event {
                Event::Started { id, scope, attempt } => format!("start {id} {scope} {attempt}"),
                Event::CoolingDown { scope, left, .. } => format!("cooling {scope} {}ms", left.as_millis()),
                Event::CooledDown { scope, .. } => format!("cooled {scope}"),
                Event::Parked { id, .. } => format!("parked {id}"),
                Event::Finished { id, done, .. } => format!("finished {id} {done}"),
                Event::Closed { scope, closed } => format!("closed {scope} {}", closed.reason),
                Event::Skipped { id, .. } => format!("skipped {id}"),
                Event::Ended => "ended".into(),
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
    pub(crate) fn count<P, S>(&self, call: &Try<P, S>) -> u32 {
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
