//! Letting others see that this process waits, which `tollgate top` shows.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tollgate::catalog::{SeenWaiter, WaiterRecord};
use tollgate::{Catalog, Span};

use super::call::LimiterCall;
use crate::demand_text::Exact;

/// A wait that is over by then is not worth a write.
const SHOWN_AFTER: Duration = Duration::from_millis(250);

/// For how long a wait is seen that is not said to go on: as long as it has lasted, within these bounds. So a wait costs
/// fewer writes the longer it lasts, and one whose process was killed is not seen for much longer than it was.
const SEEN_FOR: [Span; 2] = [Span::from_secs(5), Span::from_secs(60)];

/// How often it is said that a wait goes on while it is seen: so often that one or two lost words do not matter.
const RENEWALS: u32 = 3;

/// A wait that others can see, until this is dropped.
pub(super) struct VisibleWait {
    over: Option<Sender<()>>,
    teller: Option<JoinHandle<()>>,
}

impl VisibleWait {
    /// Begins to wait, even if the wait cannot be shown to others.
    pub(super) fn begin(catalog: &Catalog, call: &LimiterCall<'_>) -> VisibleWait {
        let (catalog, waiter) = (catalog.clone(), waiter_of(catalog, call));
        let (over, is_over) = mpsc::channel();
        let tell = move || Teller { catalog, waiter, seen: None }.tell_until(&is_over);
        let teller = thread::Builder::new().name("tollgate-wait".into()).spawn(tell).ok();
        VisibleWait { over: Some(over), teller }
    }
}

impl Drop for VisibleWait {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(teller) = self.teller.take() {
            // Should it have panicked, what it wrote is gone by itself in a moment.
            let _ = teller.join();
        }
    }
}

struct Teller {
    catalog: Catalog,
    waiter: WaiterRecord,
    seen: Option<SeenWaiter>,
}

impl Teller {
    fn tell_until(mut self, is_over: &Receiver<()>) {
        let mut pause = SHOWN_AFTER;
        while is_over.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            pause = self.tell().to_duration() / RENEWALS;
        }
        if let Some(seen) = &self.seen {
            // What cannot be withdrawn is gone by itself in a moment.
            let _ = self.catalog.withdraw_waiter(seen).wait();
        }
    }

    /// Says that the wait goes on. What fails is tried again next time: nothing but the view of others depends on it. Returns for
    /// how long it is seen now.
    fn tell(&mut self) -> Span {
        let [least, most] = SEEN_FOR;
        let seen_for = self.catalog.backend().clock().now().since(self.waiter.since).clamp(least, most);
        let is_seen = self.seen.as_ref().map(|seen| self.catalog.renew_waiter(seen, seen_for).wait());
        if matches!(is_seen, None | Some(Ok(false))) {
            self.seen = self.catalog.show_waiter(&self.waiter, seen_for).wait().ok().flatten();
        }
        seen_for
    }
}

fn waiter_of(catalog: &Catalog, call: &LimiterCall<'_>) -> WaiterRecord {
    let since = catalog.backend().clock().now();
    let mut waiter = WaiterRecord::new(call.entity, call.resource, since, std::process::id(), &host());
    waiter.demand = asked(call.amounts);
    waiter.also = call.also.iter().map(|(resource, amounts)| (resource.clone(), asked(amounts))).collect();
    waiter
}

fn asked(amounts: &[Exact]) -> BTreeMap<String, u64> {
    amounts.iter().map(|it| (it.limit.clone(), it.amount)).collect()
}

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use tollgate::Limiter;

    use super::*;
    use crate::args::PatienceArgs;
    use crate::units::Units;

    #[derive(Parser)]
    struct TestPatience {
        #[command(flatten)]
        patience: PatienceArgs,
    }

    fn call<'a>(amounts: &'a [Exact], units: &'a Units) -> LimiterCall<'a> {
        let TestPatience { patience } = TestPatience::parse_from(["", "--wait"]);
        LimiterCall { entity: "me", resource: "jobs", amounts, also: &[], units, patience, detached: None }
    }

    #[test]
    fn a_wait_that_ends_at_once_writes_nothing() {
        let limiter = Limiter::in_memory().unwrap();
        let catalog = limiter.catalog();
        let before = catalog.backend().revision().expect("memory counts its writes");
        drop(VisibleWait::begin(catalog, &call(&[], &Units::default())));
        assert_eq!(catalog.backend().revision(), Some(before));
    }

    #[test]
    fn a_wait_is_seen_while_it_lasts() {
        let limiter = Limiter::in_memory().unwrap();
        let catalog = limiter.catalog();
        let wait = VisibleWait::begin(
            catalog,
            &call(&[Exact { limit: "slots".into(), amount: 2 }], &Units::default()),
        );
        let waiter = loop {
            if let Some(waiter) = catalog.waiters().wait().unwrap().pop() {
                break waiter;
            }
            thread::yield_now();
        };
        assert_eq!((waiter.entity.as_str(), waiter.resource.as_str()), ("me", "jobs"));
        assert_eq!((waiter.demand, waiter.pid), ([("slots".into(), 2)].into(), std::process::id()));
        drop(wait);
        assert_eq!(catalog.waiters().wait(), Ok(Vec::new()));
    }

    #[test]
    fn one_that_was_not_renewed_in_time_is_shown_again() {
        let limiter = Limiter::in_memory().unwrap();
        let catalog = limiter.catalog().clone();
        let waiter = waiter_of(&catalog, &call(&[], &Units::default()));
        let mut teller = Teller { catalog: catalog.clone(), waiter, seen: None };
        teller.tell();
        // As if its time had been over.
        catalog.withdraw_waiter(teller.seen.as_ref().unwrap()).wait().unwrap();
        teller.tell();
        assert_eq!(catalog.waiters().wait().unwrap().len(), 1);
        teller.tell();
        assert_eq!(catalog.waiters().wait().unwrap().len(), 1);
    }
}
