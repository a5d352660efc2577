//! Detection of unreachable servers. If no call of a batch has reached a server, the address or the network is wrong: the
//! batch ends with the reason, no request fails, and all can be resumed.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;
use tollgate::{Span, Tick};

use super::http::Replied;

/// How many calls must have failed before the batch is ended, and for how long: a server may be about to start.
const FAILURES_MIN: u64 = 10;
const FAILING_MIN: Span = Span::from_secs(5);

/// Watches the calls of a batch until one has reached a server.
#[derive(Default)]
pub(super) struct Reachability {
    state: Mutex<ReachState>,
    ended: Notify,
}

#[derive(Default)]
enum ReachState {
    #[default]
    Unknown,
    Failing {
        since: Tick,
        failures: u64,
    },
    Reached,
    /// The batch ends for this reason.
    Unreachable(String),
}

impl Reachability {
    /// Records a call to a host. `is_last` means that it was the last attempt of its request. Returns true if the batch ends
    /// instead.
    pub(super) fn observe(&self, host: &str, replied: &Replied, is_last: bool, now: Tick) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if replied.has_connected() {
            if !matches!(*state, ReachState::Unreachable(_)) {
                *state = ReachState::Reached;
            }
            return false;
        }
        let (since, failures) = match &*state {
            ReachState::Reached => return false,
            ReachState::Unreachable(_) => return true,
            ReachState::Unknown => (now, 1),
            ReachState::Failing { since, failures } => (*since, failures + 1),
        };
        if !is_last && (failures < FAILURES_MIN || now.since(since) < FAILING_MIN) {
            *state = ReachState::Failing { since, failures };
            return false;
        }
        let why = replied.hint.reason.as_deref().unwrap_or("no connection");
        *state = ReachState::Unreachable(format!("no call has reached {host}: {why}"));
        self.ended.notify_one();
        true
    }

    /// Waits until the server is found to be unreachable.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing.
    pub(super) async fn unreachable(&self) {
        self.ended.notified().await;
    }

    /// Returns why the batch ended, if the server is unreachable.
    pub(super) fn reason(&self) -> Option<String> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            ReachState::Unreachable(reason) => Some(reason.clone()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate_batch::TokenUsage;
    use tollgate_provider::Hint;

    use super::*;

    fn replied(has_connected: bool) -> Replied {
        let usage = (!has_connected).then_some(TokenUsage::Zero);
        let hint = Hint::ok().with_reason("Connection refused");
        Replied { status: has_connected.then_some(200), usage, request_id: None, body: Vec::new(), hint }
    }

    #[test]
    fn only_a_batch_that_never_reached_a_server_for_a_while_ends() {
        let start = Tick::from_secs(1);
        let late = start + FAILING_MIN;
        let never = Reachability::default();
        let fails = |now| never.observe("x", &replied(false), false, now);
        assert!((0..100).all(|_| !fails(start)), "a server may be about to start");
        assert!(fails(late));
        assert_eq!(never.reason().as_deref(), Some("no call has reached x: Connection refused"));

        let one = Reachability::default();
        assert!(one.observe("x", &replied(false), true, start), "no request fails by it");

        let reached = Reachability::default();
        assert!(!reached.observe("x", &replied(true), true, start));
        assert!((0..100).all(|_| !reached.observe("x", &replied(false), true, late)));
        assert_eq!(reached.reason(), None);
    }
}
