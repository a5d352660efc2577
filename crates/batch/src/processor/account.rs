//! A scope in the batch, and the queue of items that wait for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tollgate::{LimitSet, Tick};

use super::entry::ItemSlot;
use crate::scope::{CooldownPolicy, PaceScope, StartQueue};
use crate::status::{CooldownStatus, Learned, ScopeStatus};

/// How many scopes a batch may have.
pub const SCOPES_MAX: usize = 64;

/// The queue of items that any account may serve.
pub(super) const COMMON: usize = 0;

/// The scope of a batch that was given none.
const DEFAULT: &str = "default";

/// A scope with its name and its limits.
pub(super) struct Account {
    pub(super) name: Arc<str>,
    pub(super) scope: PaceScope,
    pub(super) limits: Option<LimitSet>,
    /// The cooldown whose beginning was reported, and whose end was not.
    pub(super) announced: Option<Announced>,
    /// How long the cooldowns lasted whose end was reported.
    pub(super) paused: Duration,
    /// How many calls met them.
    pub(super) participants: u64,
    /// When the last of them ended.
    pub(super) resumed: Option<Tick>,
}

/// A cooldown whose beginning was reported.
pub(super) struct Announced {
    pub(super) generation: u64,
    pub(super) since: Tick,
    pub(super) reason: Arc<str>,
}

impl Account {
    /// How it stands at `now`.
    pub(super) fn status(&self, now: Tick) -> ScopeStatus {
        let pace = self.scope.pace();
        let cooldown = self.announced.as_ref().and_then(|announced| {
            let left = self.scope.cooling(now)?.since(now).to_duration();
            let reason = Arc::clone(&announced.reason);
            Some(CooldownStatus { generation: announced.generation, left, reason })
        });
        let current = self.announced.as_ref().map(|announced| now.since(announced.since).to_duration());
        ScopeStatus {
            name: Arc::clone(&self.name),
            counters: self.scope.counters().clone(),
            in_flight: pace.in_flight(),
            learned: Learned { calls: pace.calls(), tokens: pace.tokens() },
            cooldown,
            closed: self.scope.closed().cloned(),
            participants: self.participants,
            paused: self.paused + current.unwrap_or_default(),
        }
    }
}

/// Items that wait for the same scopes.
#[derive(Default)]
pub(super) struct AccountQueue {
    pub(super) line: StartQueue<ItemSlot>,
    pub(super) places: Vec<usize>,
}

/// All scopes of a batch, and all queues.
pub(super) struct Accounts {
    pub(super) all: Vec<Account>,
    pub(super) lanes: Vec<AccountQueue>,
    names: HashMap<Arc<str>, usize>,
    rules: CooldownPolicy,
    seed: u64,
}

impl Accounts {
    /// Makes these accounts; one of no name in particular if none are given.
    pub(super) fn new(
        accounts: Vec<(Arc<str>, Option<LimitSet>)>,
        rules: CooldownPolicy,
        seed: u64,
    ) -> Accounts {
        let common = AccountQueue::default();
        let mut places =
            Accounts { all: Vec::new(), lanes: vec![common], names: HashMap::new(), rules, seed };
        let accounts = if accounts.is_empty() { vec![(DEFAULT.into(), None)] } else { accounts };
        for (name, limits) in accounts {
            if let Some(lane) = places.lane(Some(name)) {
                let place = places.lanes[lane].places[0];
                places.all[place].limits = limits;
                if !places.lanes[COMMON].places.contains(&place) {
                    places.lanes[COMMON].places.push(place);
                }
            }
        }
        places
    }

    /// Returns the queue of items of a scope, which is made if it is new; `None` if there are too many.
    pub(super) fn lane(&mut self, scope: Option<Arc<str>>) -> Option<usize> {
        let Some(name) = scope else { return Some(COMMON) };
        if let Some(place) = self.names.get(&name) {
            return Some(place + 1);
        }
        if self.all.len() >= SCOPES_MAX {
            return None;
        }
        let place = self.all.len();
        let scope = PaceScope::new(self.rules, self.seed.wrapping_add(place as u64));
        self.all.push(Account {
            name: Arc::clone(&name),
            scope,
            limits: None,
            announced: None,
            paused: Duration::ZERO,
            participants: 0,
            resumed: None,
        });
        self.lanes.push(AccountQueue { line: StartQueue::default(), places: vec![place] });
        self.names.insert(name, place);
        Some(place + 1)
    }

    /// How many items wait.
    pub(super) fn waiting(&self) -> usize {
        self.lanes.iter().map(|lane| lane.line.len()).sum()
    }
}
