//! Accounts: the scopes of a batch, and the queues of items that wait for them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tollgate::{LimitSet, Tick};

use super::entry::ItemSlot;
use crate::scope::{CooldownPolicy, PaceScope, StartQueue};
use crate::status::{CooldownStatus, Learned, ScopeStatus};

/// How many scopes a batch may have.
pub const SCOPES_MAX: usize = 64;

/// The index of the queue of items that any account may serve.
pub(super) const COMMON: usize = 0;

/// The name of the scope of a batch without accounts.
const DEFAULT: &str = "default";

/// A scope with its name and its limits.
pub(super) struct Account {
    pub(super) name: Arc<str>,
    pub(super) scope: PaceScope,
    pub(super) limits: Option<LimitSet>,
    /// The cooldown whose beginning was reported and whose end was not.
    pub(super) announced: Option<Announced>,
    /// The total length of the cooldowns whose end was reported.
    pub(super) paused: Duration,
    /// How many calls met those cooldowns.
    pub(super) participants: u64,
    /// When the last of those cooldowns ended.
    pub(super) resumed: Option<Tick>,
}

/// A cooldown whose beginning was reported.
pub(super) struct Announced {
    pub(super) generation: u64,
    pub(super) since: Tick,
    pub(super) reason: Arc<str>,
}

impl Account {
    /// Returns the status of the scope at `now`.
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

/// A queue of items that wait for the same accounts.
#[derive(Default)]
pub(super) struct AccountQueue {
    pub(super) items: StartQueue<ItemSlot>,
    /// The indices of the accounts that may serve the items.
    pub(super) accounts: Vec<usize>,
}

/// All scopes of a batch, and all queues.
pub(super) struct Accounts {
    pub(super) all: Vec<Account>,
    pub(super) queues: Vec<AccountQueue>,
    /// The index of each account, by name.
    names: HashMap<Arc<str>, usize>,
    policy: CooldownPolicy,
    seed: u64,
}

impl Accounts {
    /// Creates these accounts, or the default account if the list is empty.
    pub(super) fn new(
        named: Vec<(Arc<str>, Option<LimitSet>)>,
        policy: CooldownPolicy,
        seed: u64,
    ) -> Accounts {
        let common = AccountQueue::default();
        let mut accounts =
            Accounts { all: Vec::new(), queues: vec![common], names: HashMap::new(), policy, seed };
        let named = if named.is_empty() { vec![(DEFAULT.into(), None)] } else { named };
        for (name, limits) in named {
            if let Some(queue) = accounts.queue(Some(name)) {
                let account = accounts.queues[queue].accounts[0];
                accounts.all[account].limits = limits;
                if !accounts.queues[COMMON].accounts.contains(&account) {
                    accounts.queues[COMMON].accounts.push(account);
                }
            }
        }
        accounts
    }

    /// Returns the index of the queue of a scope, which is created if it is new; `None` if there
    /// are too many scopes.
    pub(super) fn queue(&mut self, scope: Option<Arc<str>>) -> Option<usize> {
        let Some(name) = scope else { return Some(COMMON) };
        if let Some(account) = self.names.get(&name) {
            // The queue of an account is behind the common one.
            return Some(account + 1);
        }
        if self.all.len() >= SCOPES_MAX {
            return None;
        }
        let account = self.all.len();
        let scope = PaceScope::new(self.policy, self.seed.wrapping_add(account as u64));
        self.all.push(Account {
            name: Arc::clone(&name),
            scope,
            limits: None,
            announced: None,
            paused: Duration::ZERO,
            participants: 0,
            resumed: None,
        });
        self.queues.push(AccountQueue { items: StartQueue::default(), accounts: vec![account] });
        self.names.insert(name, account);
        Some(account + 1)
    }

    /// Returns how many items wait.
    pub(super) fn waiting(&self) -> usize {
        self.queues.iter().map(|queue| queue.items.len()).sum()
    }
}
