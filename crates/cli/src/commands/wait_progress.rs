//! The progress line of a call that waits: for what, how long so far, and behind how many others.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tollgate::limiter::ChainStatus;
use tollgate::{Demand, Limiter, Ready, Tick};

use super::call::LimiterCall;
use crate::demand_text;
use crate::duration_text;
use crate::limit_text;
use crate::output::{ProgressLine, grouped};

/// The interval between two updates. Each reads the store.
const INTERVAL: Duration = Duration::from_secs(1);

/// A progress line that is updated until this is dropped. Nothing is read if no terminal shows it.
pub(super) struct WaitProgress {
    over: Option<Sender<()>>,
    updater: Option<JoinHandle<()>>,
}

/// What is read for the line.
struct WaitedCall {
    limiter: Limiter,
    entity: String,
    demands: Vec<(String, Demand)>,
    since: Tick,
    progress: ProgressLine,
}

impl WaitProgress {
    /// Shows the line, and starts to update it.
    pub(super) fn begin(limiter: &Limiter, call: &LimiterCall<'_>, progress: ProgressLine) -> WaitProgress {
        if !progress.is_watched() {
            return WaitProgress { over: None, updater: None };
        }
        let own = (call.resource.to_owned(), demand_text::demand(call.amounts));
        let also =
            call.also.iter().map(|(resource, amounts)| (resource.clone(), demand_text::demand(amounts)));
        let mut waited = WaitedCall {
            limiter: limiter.clone(),
            entity: call.entity.into(),
            demands: std::iter::once(own).chain(also).collect(),
            since: limiter.catalog().backend().clock().now(),
            progress,
        };
        let (over, is_over) = mpsc::channel();
        let update = move || waited.update_until(&is_over);
        let updater = thread::Builder::new().name("tollgate-progress".into()).spawn(update).ok();
        WaitProgress { over: Some(over), updater }
    }
}

impl Drop for WaitProgress {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(updater) = self.updater.take() {
            // A panic is ignored: the line is only shown.
            let _ = updater.join();
        }
    }
}

impl WaitedCall {
    fn update_until(&mut self, is_over: &Receiver<()>) {
        loop {
            // An error is ignored: the call itself reports it.
            if let Some(line) = self.line() {
                self.progress.show(line);
            }
            if is_over.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    fn line(&self) -> Option<String> {
        let demands = self.demands.iter().map(|(resource, demand)| (resource.as_str(), demand)).collect();
        let status = self.limiter.check_availability_of_all(&self.entity, demands).wait().ok()?;
        let catalog = self.limiter.catalog();
        let waiters = catalog.waiters().wait().ok()?;
        let resource = self.demands.first().map_or("", |(resource, _)| resource.as_str());
        let is_ahead = |waiter: &&tollgate::catalog::WaiterRecord| {
            let is_same = waiter.entity == self.entity && waiter.resource == resource;
            is_same && waiter.since < self.since && waiter.pid != std::process::id()
        };
        let ahead = waiters.iter().filter(is_ahead).count();
        let waited = catalog.backend().clock().now().since(self.since).to_duration();
        Some(line_of(&self.entity, &status, ahead, waited))
    }
}

/// Formats the line: `waiting 12s for slots (3 of 3 held), 2 ahead`.
fn line_of(entity: &str, status: &ChainStatus, ahead: usize, waited: Duration) -> String {
    let seconds = waited.as_secs();
    let waited = if seconds < 60 { format!("{seconds}s") } else { duration_text::roughly(waited) };
    let what = match status.limited_by() {
        Some((part, limit)) => {
            let of = if part.entity == entity { String::new() } else { format!(" of {}", part.entity) };
            format!("{}{of} ({})", limit.limit().name(), shortage(&limit, part.denial.now()))
        }
        None => "its turn".into(),
    };
    let ahead = if ahead > 0 { format!(", {} ahead", grouped(ahead)) } else { String::new() };
    format!("waiting {waited} for {what}{ahead}")
}

/// Formats what is missing of a limit: `3 of 3 held`, or `12 of the 1,500 asked, in 4.2s`.
fn shortage(status: &tollgate::Status, now: Tick) -> String {
    let limit = status.limit();
    let left = u64::try_from(status.available()).unwrap_or(0);
    if limit.is_resource() {
        let held = limit.capacity().saturating_sub(left);
        return format!("{} of {} held", grouped(held), grouped(limit.capacity()));
    }
    let [left, asked] = [left, status.requested()].map(|amount| limit_text::shown(limit, amount));
    let wait = match status.ready() {
        Ready::Now => None,
        ready => ready.wait(now),
    };
    let wait = wait.map(|wait| format!(", in {}", duration_text::roughly(wait))).unwrap_or_default();
    format!("{left} of the {asked} asked{wait}")
}

#[cfg(test)]
mod tests {
    use tollgate::{Level, Limits, demand};

    use super::*;

    #[test]
    fn the_line_names_the_limit_what_is_missing_and_how_many_are_ahead() {
        let limiter = Limiter::in_memory().unwrap();
        let limits = ["tpm:6000/hour", "slots:3/at-once"].map(|text| crate::limit_text::parse(text).unwrap());
        limiter.catalog().set_limits(Level::System, &Limits::new(limits).unwrap()).wait().unwrap();
        let line = |demand: Demand, ahead| {
            let status = limiter.check_availability("me", "jobs", demand).wait().unwrap();
            line_of("me", &status, ahead, Duration::from_millis(12_900))
        };
        let _held = limiter.acquire("me", "jobs", demand! { tpm: 5_990, slots: 3 }).wait().unwrap();
        let slots = line(Demand::new().with("slots", 1_u64).with("tpm", 0_u64), 2);
        assert_eq!(slots, "waiting 12s for slots (3 of 3 held), 2 ahead");
        let tokens = line(Demand::new().with("slots", 0_u64).with("tpm", 1_500_u64), 0);
        let start = "waiting 12s for tpm (10 of the 1,500 asked, in 14m ";
        assert!(tokens.starts_with(start) && tokens.ends_with("s)"), "{tokens}");
        let nothing = line(Demand::new().with("slots", 0_u64).with("tpm", 1_u64), 1);
        assert_eq!(nothing, "waiting 12s for its turn, 1 ahead");
    }
}
