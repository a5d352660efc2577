//! Status of one scope: what it counted, what it learned, and whether it cools down.

use std::sync::Arc;
use std::time::Duration;

use crate::pace::PaceRate;
use crate::scope::{Closed, Counters};

/// Status of one scope, during a batch or at its end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScopeStatus {
    /// The name of the scope.
    pub name: Arc<str>,
    /// What it counted so far.
    pub counters: Counters,
    /// Calls under way.
    pub in_flight: u64,
    /// The limits it learned from refusals.
    pub learned: Learned,
    /// The cooldown that is on, if there is one.
    pub cooldown: Option<CooldownStatus>,
    /// Why it is closed, if it is.
    pub closed: Option<Closed>,
    /// Calls that met a cooldown, in all.
    pub participants: u64,
    /// For how long it was paused by cooldowns, in all.
    pub paused: Duration,
}

/// Limits of a provider, as far as its refusals have shown them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Learned {
    /// Calls a second.
    pub calls: Option<PaceRate>,
    /// Tokens a second.
    pub tokens: Option<PaceRate>,
}

/// A cooldown that is on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CooldownStatus {
    /// Which cooldown of the scope it is, from 1.
    pub generation: u64,
    /// How long it still lasts.
    pub left: Duration,
    /// Why it began, in the words of the provider.
    pub reason: Arc<str>,
}
