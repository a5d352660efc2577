//! A caller's entries in the wait queues of a store: whether it may ask the store, waits, or gives up.

use std::time::Duration;

use tollgate_core::{Denial, Ready, Span, Tick};
use tollgate_store::{
    Backend, Backoff, Claim, Clock, Key, Priority, QueueFull, QueueGuard, QueueKey, QueuePlace, Reach, Reply,
    StoreError, Transaction, TxnOutcome, random_u64,
};

use super::Takes;
use crate::timeout::with_timeout;

/// Initial and maximum polling interval of a waiter in a store whose other clients cannot notify it.
const POLL: [Span; 2] = [Span::from_millis(5), Span::from_millis(200)];

/// Polling interval where processes share the queues: only processes that died do not notify.
const SHARED_POLL: Span = Span::from_millis(200);

/// Polling interval of a waiter that has many others ahead in a store across a network. Its claim holds for a second, so it is renewed in
/// time, and a thousand processes leave the processors to those that are next.
const FAR_POLL: Span = Span::from_millis(700);

/// How many waiters ahead are many.
const FAR: u32 = 32;

/// How many waiters behind the one that asks a store across a network have their claims renewed with its own. They are served
/// one after the other, so those further back are in the list by the time they matter.
const FOLLOWERS_MAX: usize = 16;

/// How long a store keeps claims that are not renewed.
const CLAIMS_EXPIRE_AFTER: Duration = Duration::from_secs(1);

/// Whether and until when a caller waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitPolicy {
    pub(crate) waits: bool,
    pub(crate) priority: Priority,
    pub(crate) deadline: Option<Tick>,
    /// How many may wait for one bucket.
    pub(crate) waiters_max: usize,
}

impl WaitPolicy {
    /// Returns the policy of a caller that does not wait, so that no number of waiters is too many for it.
    pub(crate) fn at_once(priority: Priority) -> WaitPolicy {
        WaitPolicy { waits: false, priority, deadline: None, waiters_max: usize::MAX }
    }
}

/// A caller of a store, with its entries in the wait queues. It has none until it is denied or finds waiters ahead.
pub(crate) struct QueuedCaller<'a> {
    backend: &'a dyn Backend,
    namespace: &'a str,
    policy: WaitPolicy,
    since: Tick,
    guard: Option<QueueGuard<'a>>,
    /// The limits that it was found short of. It stays in their queues until it is granted.
    claims: Vec<QueueKey>,
    polls: u32,
    /// How many waiters the store reported ahead of it.
    ahead: u32,
}

/// What a caller does after a denial.
pub(crate) enum AfterDenial {
    /// Gives up: it does not wait, or cannot be admitted before its deadline.
    Deny,
    /// Asks again: a release before the caller was in the queue did not notify it.
    Again,
    /// Waits until it is notified, and no later than this.
    Wait(Option<Tick>),
}

impl<'a> QueuedCaller<'a> {
    pub(crate) fn new(backend: &'a dyn Backend, namespace: &'a str, policy: WaitPolicy) -> QueuedCaller<'a> {
        let since = backend.clock().now();
        QueuedCaller {
            backend,
            namespace,
            policy,
            since,
            guard: None,
            claims: Vec::new(),
            polls: 0,
            ahead: 0,
        }
    }

    /// Returns how long ago the caller came.
    pub(crate) fn elapsed(&self) -> Duration {
        self.backend.clock().now().since(self.since).to_duration()
    }

    /// Returns how long it has waited, if it has.
    pub(crate) fn waited(&self) -> Option<Duration> {
        self.guard.is_some().then(|| self.elapsed())
    }

    /// Returns whether a waiter is ahead of this caller in the queue of a limit it takes from. A caller that waits joins
    /// that queue.
    pub(crate) fn must_queue(&mut self, takes: &[Takes<'_>]) -> Result<bool, QueueFull> {
        let queues = self.backend.wait_queues();
        let WaitPolicy { waits, priority, waiters_max, .. } = self.policy;
        if self.guard.is_none() && queues.is_empty() {
            return Ok(false);
        }
        let keys = self.keys(takes);
        if self.guard.is_none() {
            let now = self.backend.clock().now();
            if !keys.iter().any(|key| queues.ahead_of(key, priority, now).is_some()) {
                return Ok(false);
            }
            if !waits {
                return Ok(true);
            }
        }
        let guard =
            self.guard.get_or_insert_with(|| queues.guard(self.backend.clock(), priority, self.since));
        // In this order: what happens from here on notifies, what happened before is seen.
        guard.clear_notification(waiters_max);
        Ok(!guard.may_ask(&keys, waiters_max)?)
    }

    fn keys(&self, takes: &[Takes<'_>]) -> Vec<QueueKey> {
        let keys = takes.iter().flat_map(|Takes { bucket, limits, costs }| {
            QueueKey::of_costs(self.namespace, bucket, limits, costs).collect::<Vec<_>>()
        });
        keys.collect()
    }

    /// Applies the call, and sends the position of the caller along if the store keeps the order of the waiters of all
    /// processes.
    pub(crate) fn apply<'c>(&'c self, call: &Transaction<'c>) -> Reply<'c, Result<TxnOutcome, StoreError>> {
        match self.backend.reach() {
            Reach::Fleet => self.backend.apply_in_turn(call, self.place()),
            _ => self.backend.apply(call),
        }
    }

    fn place(&self) -> QueuePlace {
        let (priority, queues) = (self.policy.priority, self.backend.wait_queues());
        let Some(rank) = self.guard.as_ref().map(QueueGuard::rank) else {
            return QueuePlace { priority, ..QueuePlace::default() };
        };
        let claim = |limit: &QueueKey| Claim {
            limit: limit.clone(),
            followers: queues.behind(limit, rank, FOLLOWERS_MAX),
        };
        QueuePlace { priority, rank: Some(rank), claims: self.claims.iter().map(claim).collect() }
    }

    /// Returns until when to wait while waiters are ahead, or to give up.
    pub(crate) fn behind_waiters(&mut self) -> AfterDenial {
        let WaitPolicy { waits, deadline, .. } = self.policy;
        let now = self.backend.clock().now();
        if !waits || deadline.is_some_and(|deadline| now >= deadline) {
            return AfterDenial::Deny;
        }
        let is_notified = self.guard.as_ref().is_some_and(QueueGuard::is_notified_of_all);
        AfterDenial::Wait(if is_notified { deadline } else { self.next_poll(Ready::Unknown, now) })
    }

    /// Queues the caller that these buckets denied, unless it does not wait or cannot be admitted in time.
    pub(crate) fn denied(
        &mut self,
        takes: &[Takes<'_>],
        denials: &[Denial],
    ) -> Result<AfterDenial, QueueFull> {
        let now = self.backend.clock().now();
        let latest = |of: fn(&Denial) -> Ready| denials.iter().map(of).fold(Ready::Now, Ready::later);
        if !self.policy.waits || self.cannot_pass_in_time(latest(Denial::earliest), now) {
            return Ok(AfterDenial::Deny);
        }
        self.claim(takes, denials);
        self.ahead = denials.iter().map(Denial::ahead).max().unwrap_or(0);
        let queues = self.backend.wait_queues();
        let guard = self
            .guard
            .get_or_insert_with(|| queues.guard(self.backend.clock(), self.policy.priority, self.since));
        let is_new = guard.enqueue(self.claims.iter().cloned(), self.policy.waiters_max)?;
        guard.retain_only(&self.claims);
        if is_new {
            return Ok(AfterDenial::Again);
        }
        Ok(AfterDenial::Wait(self.next_poll(latest(Denial::ready), now)))
    }

    /// Claims the limit that the caller will wait longest for, unless it is short of one that it claims already: until it
    /// has that, other callers may take the rest. So claims only grow, and only as far as needed.
    fn claim(&mut self, takes: &[Takes<'_>], denials: &[Denial]) {
        let shortages =
            || takes.iter().zip(denials).map(|(takes, denial)| (takes, denial, denial.shortage()));
        let slowest = shortages().map(|(.., shortage)| shortage.ready).fold(Ready::Now, Ready::later);
        let named = |takes: &Takes<'_>, denial: &Denial, mask: u64| -> Vec<QueueKey> {
            let limits = denial.limits().iter().enumerate().filter(|(index, _)| mask >> index & 1 == 1);
            let key = |limit: &tollgate_core::Limit| QueueKey {
                namespace: self.namespace.into(),
                bucket: takes.bucket.clone(),
                limit: limit.name().as_str().into(),
            };
            limits.map(|(_, limit)| key(limit)).collect()
        };
        let short: Vec<QueueKey> = shortages()
            .flat_map(|(takes, denial, shortage)| named(takes, denial, shortage.short | denial.claimed()))
            .collect();
        let longest = shortages().filter(|(.., shortage)| shortage.ready == slowest);
        let longest: Vec<QueueKey> =
            longest.flat_map(|(takes, denial, shortage)| named(takes, denial, shortage.slowest)).collect();
        // A cooldown ends for all callers at once, so there is nothing to keep for one of them.
        let cooldown = tollgate_core::Limit::cooldown();
        self.claims.retain(|claim| *claim.limit != *cooldown.name().as_str() || short.contains(claim));
        if !self.claims.iter().any(|claim| short.contains(claim)) {
            // A caller that is denied though it is short of nothing is behind waiters that the store knows of.
            let new = [longest, short].into_iter().find(|keys| !keys.is_empty());
            self.claims.extend(new.unwrap_or_else(|| self.keys(takes)));
        }
    }

    /// Returns whether a wait is sure to miss its deadline, going by these denials.
    pub(crate) fn is_too_late(&self, denials: &[Denial]) -> bool {
        let earliest = denials.iter().map(Denial::earliest).fold(Ready::Now, Ready::later);
        self.cannot_pass_in_time(earliest, self.backend.clock().now())
    }

    pub(crate) fn has_deadline(&self) -> bool {
        self.policy.deadline.is_some()
    }

    fn cannot_pass_in_time(&self, earliest: Ready, now: Tick) -> bool {
        self.policy.deadline.is_some_and(|deadline| match earliest {
            Ready::At(earliest) => earliest > deadline || deadline <= now,
            Ready::Now | Ready::Unknown => deadline <= now,
        })
    }

    /// Returns when to ask again without a notification: when the store expects to admit it, at the deadline, and, where other
    /// processes take and give back without notifying it, at growing intervals in between, with jitter.
    fn next_poll(&mut self, ready: Ready, now: Tick) -> Option<Tick> {
        let ready = match ready {
            Ready::At(tick) => Some(tick.max(now)),
            Ready::Now => Some(now),
            Ready::Unknown => None,
        };
        let is_notified = self.guard.as_ref().is_some_and(QueueGuard::is_notified_of_all);
        let poll = (self.backend.reach() != Reach::Process).then(|| {
            let is_shared = self.backend.wait_queues().is_shared() && is_notified;
            let interval = match is_shared {
                true => [SHARED_POLL; 2],
                false if self.ahead >= FAR => [FAR_POLL; 2],
                false => POLL,
            };
            let [first, longest] = interval.map(Span::to_duration);
            self.polls += 1;
            let pause = Span::covering(Backoff::Exponential.pause(first, longest, self.polls)).as_micros();
            // Up to half of it less, so that processes that wait for the same bucket do not poll together.
            now + Span::from_micros(pause - random_u64() % (pause / 2).max(1))
        });
        [ready, poll, self.policy.deadline].into_iter().flatten().min()
    }

    /// Waits until the caller is notified, or until `due`.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing.
    pub(crate) async fn notified(&self, due: Option<Tick>) {
        if let Some(guard) = &self.guard {
            guard.notified(due).await;
        }
    }

    /// Returns the denial, not to be retried before the waiters ahead are served.
    pub(crate) fn behind(&self, key: &Key, denial: Denial) -> Denial {
        behind(self.backend, self.namespace, key, self.policy.priority, denial)
    }
}

impl QueuedCaller<'_> {
    /// Leaves all queues, and waits until the store knows: otherwise the claims of a process that gives up and ends at once
    /// would hold back other callers until they expire.
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves the queues all the same.
    pub(crate) async fn leave(&mut self) {
        if let Some(left) = self.begin_to_leave() {
            let left = async {
                left.await;
                Ok::<(), StoreError>(())
            };
            // If it takes longer, the claims have expired.
            let _ = with_timeout(&Clock::system(), CLAIMS_EXPIRE_AFTER, left).await;
        }
    }

    fn begin_to_leave(&mut self) -> Option<Reply<'_, ()>> {
        let guard = self.guard.take()?;
        (self.backend.reach() == Reach::Fleet).then(|| self.backend.leave_queues(guard.rank()))
    }
}

impl Drop for QueuedCaller<'_> {
    fn drop(&mut self) {
        // A store that granted the caller has removed its claims already.
        drop(self.begin_to_leave());
    }
}

/// Returns the denial of a newcomer, not to be retried before the waiters ahead are served.
pub(crate) fn behind(
    backend: &dyn Backend,
    namespace: &str,
    bucket: &Key,
    priority: Priority,
    denial: Denial,
) -> Denial {
    let queues = backend.wait_queues();
    if queues.is_empty() {
        return denial;
    }
    let now = backend.clock().now();
    let asked = denial.statuses().filter(|status| status.requested() > 0);
    let ahead = asked.filter_map(|status| {
        let limit = status.limit().name().as_str().into();
        queues.ahead_of(
            &QueueKey { namespace: namespace.into(), bucket: bucket.clone(), limit },
            priority,
            now,
        )
    });
    let ready = ahead.map(|due| due.map_or(Ready::Unknown, Ready::At)).fold(Ready::Now, Ready::later);
    denial.not_before(ready)
}
