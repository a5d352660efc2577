//! The status of one scope: its counters, the limits it learned, and its cooldown.

use std::sync::Arc;
use std::time::Duration;

use crate::pace::PaceRate;
use crate::scope::{Closed, Counters};

/// The status of one scope, during a batch or at its end.
///
/// ```
/// use tollgate_batch::{Batch, CallReply, Item, ItemAttempt};
/// use tollgate_provider::Hint;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let run = Batch::new().run([Item::new("a", 1)], |_: ItemAttempt<u64>| async {
///     CallReply::done((), Hint::ok())
/// });
/// let summary = run.finish().await.unwrap();
/// let scope = &summary.scopes[0];
/// assert_eq!((&*scope.name, scope.counters.calls, scope.in_flight), ("default", 1, 0));
/// assert!(scope.cooldown.is_none() && scope.closed.is_none());
/// # });
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScopeStatus {
    /// The name of the scope.
    pub name: Arc<str>,
    /// The counters of the scope.
    pub counters: Counters,
    /// The number of calls in flight.
    pub in_flight: u64,
    /// The limits that the scope learned from refusals.
    pub learned: Learned,
    /// The cooldown in force, if any.
    pub cooldown: Option<CooldownStatus>,
    /// Why the scope is closed, if it is.
    pub closed: Option<Closed>,
    /// How many calls met a cooldown, over all cooldowns.
    pub participants: u64,
    /// How long cooldowns paused the scope, over all cooldowns.
    pub paused: Duration,
}

/// The limits of a provider as its refusals have shown them. `None` means that no refusal has shown
/// a limit.
///
/// ```
/// assert!(tollgate_batch::Learned::default().calls.is_none());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Learned {
    /// Calls per second.
    pub calls: Option<PaceRate>,
    /// Tokens per second.
    pub tokens: Option<PaceRate>,
}

/// A cooldown in force.
///
/// ```
/// # use tollgate_batch::CooldownStatus;
/// fn line(cooldown: &CooldownStatus) -> String {
///     format!("cooling down for {:?}: {}", cooldown.left, cooldown.reason)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CooldownStatus {
    /// The number of the cooldown in its scope, from 1.
    pub generation: u64,
    /// How long the cooldown still lasts.
    pub left: Duration,
    /// The reason, in the words of the provider.
    pub reason: Arc<str>,
}
