//! A scope in the batch, and who stands in line for it.

use std::collections::HashMap;
use std::sync::Arc;

use tollgate::LimitSet;

use super::entry::Slot;
use crate::scope::{Line, Rules, Scope};

/// How many scopes a batch may have.
pub const SCOPES_MAX: usize = 64;

/// The lane of items that any account may serve.
pub(super) const COMMON: usize = 0;

/// The scope of a batch that was given none.
const DEFAULT: &str = "default";

/// A scope with its name and its limits.
pub(super) struct Place {
    pub(super) name: Arc<str>,
    pub(super) scope: Scope,
    pub(super) limits: Option<LimitSet>,
    /// The cooldown whose beginning was told, and whose end was not.
    pub(super) announced: Option<u64>,
}

/// Items that wait for the same scopes.
#[derive(Default)]
pub(super) struct Lane {
    pub(super) line: Line<Slot>,
    pub(super) places: Vec<usize>,
}

/// All scopes of a batch, and all lanes.
pub(super) struct Places {
    pub(super) all: Vec<Place>,
    pub(super) lanes: Vec<Lane>,
    names: HashMap<Arc<str>, usize>,
    rules: Rules,
    seed: u64,
}

impl Places {
    /// These accounts; one of no name in particular if there is none.
    pub(super) fn new(accounts: Vec<(Arc<str>, Option<LimitSet>)>, rules: Rules, seed: u64) -> Places {
        let common = Lane::default();
        let mut places = Places { all: Vec::new(), lanes: vec![common], names: HashMap::new(), rules, seed };
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

    /// The lane of items of a scope, which is made if it is new; `None` if there are too many.
    pub(super) fn lane(&mut self, scope: Option<Arc<str>>) -> Option<usize> {
        let Some(name) = scope else { return Some(COMMON) };
        if let Some(place) = self.names.get(&name) {
            return Some(place + 1);
        }
        if self.all.len() >= SCOPES_MAX {
            return None;
        }
        let place = self.all.len();
        let scope = Scope::new(self.rules, self.seed.wrapping_add(place as u64));
        self.all.push(Place { name: Arc::clone(&name), scope, limits: None, announced: None });
        self.lanes.push(Lane { line: Line::default(), places: vec![place] });
        self.names.insert(name, place);
        Some(place + 1)
    }

    /// How many items wait.
    pub(super) fn waiting(&self) -> usize {
        self.lanes.iter().map(|lane| lane.line.len()).sum()
    }
}
