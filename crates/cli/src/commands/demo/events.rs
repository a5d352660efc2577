//! The latest events of the demo, for the screen.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tollgate::{Clock, Tick};

/// The most events that are kept: no screen shows more.
const EVENTS_MAX: usize = 100;

/// The latest events, with the seconds at which they happened.
pub(super) struct DemoEvents {
    clock: Clock,
    began: Tick,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    latest: VecDeque<DemoEvent>,
    /// The limit that has denied the last call of each key.
    denied_by: HashMap<String, String>,
}

/// An event, and how often it has happened in a row.
struct DemoEvent {
    /// Of the last time.
    after: Duration,
    text: String,
    times: u64,
}

impl DemoEvents {
    /// Starts without events.
    pub(super) fn new(clock: Clock) -> DemoEvents {
        let began = clock.now();
        DemoEvents { clock, began, entries: Mutex::default() }
    }

    /// Adds an event.
    pub(super) fn add(&self, text: String) {
        let after = self.passed();
        self.entries(|entries| entries.add(after, text));
    }

    /// Adds a denial, unless the same limit has denied the last call of the key: most denials are alike.
    pub(super) fn deny(&self, key: &str, limit: &str, reason: &str) {
        let after = self.passed();
        self.entries(|entries| {
            let before = entries.denied_by.insert(key.into(), limit.into());
            if before.as_deref() != Some(limit) {
                entries.add(after, format!("{key}: denied by {limit}: {reason}"));
            }
        });
    }

    /// Returns the latest events, the last one at the end.
    pub(super) fn latest(&self, most: usize) -> Vec<String> {
        self.entries(|entries| {
            let skipped = entries.latest.len().saturating_sub(most);
            entries.latest.iter().skip(skipped).map(DemoEvent::line).collect()
        })
    }

    fn passed(&self) -> Duration {
        self.clock.now().since(self.began).to_duration()
    }

    fn entries<T>(&self, change: impl FnOnce(&mut Entries) -> T) -> T {
        change(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Entries {
    fn add(&mut self, after: Duration, text: String) {
        match self.latest.back_mut().filter(|last| last.text == text) {
            Some(last) => (last.after, last.times) = (after, last.times + 1),
            None => self.latest.push_back(DemoEvent { after, text, times: 1 }),
        }
        if self.latest.len() > EVENTS_MAX {
            self.latest.pop_front();
        }
    }
}

impl DemoEvent {
    fn line(&self) -> String {
        let times = if self.times > 1 { format!(" ({} times)", self.times) } else { String::new() };
        format!("{:>5.1}s  {}{times}", self.after.as_secs_f64(), self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_is_an_event_only_if_another_limit_denied_the_last_call() {
        let events = DemoEvents::new(Clock::system());
        for limit in ["rpm", "rpm", "tpm", "rpm"] {
            events.deny("key", limit, limit);
        }
        events.deny("other", "rpm", "rpm");
        let latest = events.latest(9);
        assert_eq!(latest.len(), 4, "{latest:?}");
        assert!(latest[1].ends_with("s  key: denied by tpm: tpm"), "{latest:?}");
        assert_eq!(events.latest(1), latest[3..]);
    }

    #[test]
    fn an_event_that_happens_again_is_counted() {
        let events = DemoEvents::new(Clock::system());
        for text in ["one", "two", "two", "two", "one"] {
            events.add(text.into());
        }
        let texts: Vec<String> = events.latest(9).iter().map(|line| line[8..].to_owned()).collect();
        assert_eq!(texts, ["one", "two (3 times)", "one"]);
    }
}
