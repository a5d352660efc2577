//! Publication of a wait in the store, which `tollgate top` shows.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tollgate::catalog::{SeenWaiter, WaiterRecord};
use tollgate::{Catalog, Span};

use super::call::LimiterCall;
use crate::demand_text::Exact;

/// A shorter wait is not published.
const SHOWN_AFTER: Duration = Duration::from_millis(250);

/// The bounds of the lifetime of a published wait, which is as long as the wait has lasted. So a longer wait costs fewer
/// writes, and the record of a killed process expires soon.
const LIFETIME: [Span; 2] = [Span::from_secs(5), Span::from_secs(60)];

/// The number of renewals within a lifetime, so that one or two lost ones do no harm.
const RENEWALS: u32 = 3;

/// A wait that is published until this is dropped.
pub(super) struct VisibleWait {
    over: Option<Sender<()>>,
    publisher: Option<JoinHandle<()>>,
}

impl VisibleWait {
    /// Starts to publish a wait. Errors are ignored, because only the view of `top` depends on it.
    pub(super) fn begin(catalog: &Catalog, call: &LimiterCall<'_>) -> VisibleWait {
        let waiter = waiter_of(catalog, call);
        let catalog = catalog.clone();
        let (over, is_over) = mpsc::channel();
        let publish = move || WaitPublisher { catalog, waiter, seen: None }.publish_until(&is_over);
        let publisher = thread::Builder::new().name("tollgate-wait".into()).spawn(publish).ok();
        VisibleWait { over: Some(over), publisher }
    }
}

impl Drop for VisibleWait {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(publisher) = self.publisher.take() {
            // A panic is ignored: the record expires by itself.
            let _ = publisher.join();
        }
    }
}

struct WaitPublisher {
    catalog: Catalog,
    waiter: WaiterRecord,
    seen: Option<SeenWaiter>,
}

impl WaitPublisher {
    fn publish_until(mut self, is_over: &Receiver<()>) {
        let mut pause = SHOWN_AFTER;
        while is_over.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            pause = self.publish().to_duration() / RENEWALS;
        }
        if let Some(seen) = &self.seen {
            // An error is ignored: the record expires by itself.
            let _ = self.catalog.withdraw_waiter(seen).wait();
        }
    }

    /// Publishes or renews the wait, and returns its lifetime. An error is ignored until the next renewal.
    fn publish(&mut self) -> Span {
        let [least, most] = LIFETIME;
        let lifetime = self.catalog.backend().clock().now().since(self.waiter.since).clamp(least, most);
        let is_seen = self.seen.as_ref().map(|seen| self.catalog.renew_waiter(seen, lifetime).wait());
        if matches!(is_seen, None | Some(Ok(false))) {
            self.seen = self.catalog.show_waiter(&self.waiter, lifetime).wait().ok().flatten();
        }
        lifetime
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
    amounts.iter().map(|exact| (exact.limit.clone(), exact.amount)).collect()
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
    use crate::args::WaitArgs;
    use crate::units::Units;

    #[derive(Parser)]
    struct TestArgs {
        #[command(flatten)]
        wait: WaitArgs,
    }

    fn call<'a>(amounts: &'a [Exact], units: &'a Units) -> LimiterCall<'a> {
        let TestArgs { wait } = TestArgs::parse_from(["", "--wait"]);
        LimiterCall { entity: "me", resource: "jobs", amounts, also: &[], units, wait, detached: None }
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
    fn a_wait_is_published_while_it_lasts() {
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
    fn a_wait_that_was_not_renewed_in_time_is_published_again() {
        let limiter = Limiter::in_memory().unwrap();
        let catalog = limiter.catalog().clone();
        let waiter = waiter_of(&catalog, &call(&[], &Units::default()));
        let mut publisher = WaitPublisher { catalog: catalog.clone(), waiter, seen: None };
        publisher.publish();
        // As if its lifetime had expired.
        catalog.withdraw_waiter(publisher.seen.as_ref().unwrap()).wait().unwrap();
        publisher.publish();
        assert_eq!(catalog.waiters().wait().unwrap().len(), 1);
        publisher.publish();
        assert_eq!(catalog.waiters().wait().unwrap().len(), 1);
    }
}
