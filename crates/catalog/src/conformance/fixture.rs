//! What every promise starts from.

use std::sync::Arc;

use tollgate_core::{AsDemand, Limit, Limits, Span, Tick};
use tollgate_store::records::{Index, Item, ItemKey, PAGE_MAX, Query};
use tollgate_store::{Backend, BucketRef, Clock, ManualClock, Op, Step, Transaction, TxnOutcome};

use super::spy::Spy;
use crate::{Catalog, Registry};

/// 2026-11-15T00:00:00Z, so that hours and days have names.
pub(super) const START: Tick = Tick::from_secs(1_794_700_800);

/// Makes stores.
pub(super) struct Suite<'a> {
    open: &'a dyn Fn(Clock) -> Arc<dyn Backend>,
}

/// A store with one namespace, and its manual clock.
pub(super) struct Fixture {
    pub(super) hands: ManualClock,
    pub(super) spy: Arc<Spy>,
    pub(super) registry: Registry,
    pub(super) catalog: Catalog,
}

impl<'a> Suite<'a> {
    pub(super) fn new(open: &'a dyn Fn(Clock) -> Arc<dyn Backend>) -> Suite<'a> {
        Suite { open }
    }

    /// Opens a store that was not used before, watched by a spy.
    pub(super) fn empty(&self) -> (ManualClock, Arc<Spy>) {
        let hands = ManualClock::at(START);
        let spy = Arc::new(Spy::new((self.open)(hands.clock())));
        (hands, spy)
    }

    /// A store with the namespace `default`.
    pub(super) fn fixture(&self) -> Fixture {
        let (hands, spy) = self.empty();
        let registry = Registry::new(spy.clone());
        let catalog = registry.open_or_register("default").wait().unwrap();
        Fixture { hands, spy, registry, catalog }
    }

    /// The same, on a store that does not report its revision.
    pub(super) fn fixture_without_revision(&self) -> Fixture {
        let fixture = self.fixture();
        fixture.spy.hide_revision();
        fixture
    }
}

impl Fixture {
    /// The same namespace, opened once more as another process would.
    pub(super) fn another(&self) -> Fixture {
        let catalog = self.registry.open("default").wait().unwrap();
        Fixture { hands: self.hands.clone(), spy: self.spy.clone(), registry: self.registry.clone(), catalog }
    }

    pub(super) fn advance(&self, seconds: u64) {
        self.hands.advance(Span::from_secs(seconds));
    }

    /// The keys of all records of the namespace.
    pub(super) fn keys(&self) -> Vec<ItemKey> {
        keys_in(self.spy.inner(), self.catalog.namespace_id())
    }

    pub(super) fn item(&self, key: ItemKey) -> Option<Item> {
        self.spy.inner().get_many(&[key]).wait().unwrap().pop().flatten()
    }

    /// Takes from the bucket of an entity, without any of its ancestors; says whether it was admitted.
    pub(super) fn take(&self, entity: &str, resource: &str, demand: &impl AsDemand) -> bool {
        let chain = self.catalog.chain(entity, resource).wait().unwrap();
        let link = &chain.links[0];
        let costs = link.limits.costs(demand).unwrap();
        let namespace = self.catalog.namespace_id();
        let place = BucketRef { namespace, key: &link.key, limits: &link.limits };
        let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
        let applied =
            self.spy.inner().apply(&Transaction { id: None, steps: &steps, metered: true }).wait().unwrap();
        matches!(applied, TxnOutcome::Done(_))
    }

    /// How much is left of the first limit of an entity.
    pub(super) fn available(&self, entity: &str, resource: &str) -> i64 {
        let link = self.catalog.chain(entity, resource).wait().unwrap().links[0].clone();
        let place =
            BucketRef { namespace: self.catalog.namespace_id(), key: &link.key, limits: &link.limits };
        self.spy.inner().peek(&place).wait().unwrap()[0].available()
    }
}

/// The keys of all records of a namespace.
pub(super) fn keys_in(backend: &dyn Backend, namespace: &str) -> Vec<ItemKey> {
    let mut query = Query { limit: PAGE_MAX, ..Query::all(namespace) };
    let mut keys = Vec::new();
    loop {
        let page = backend.find(Index::Namespace, &query).wait().unwrap();
        keys.extend(page.items);
        match page.next {
            Some(next) => query.after = Some(next),
            None => return keys,
        }
    }
}

/// One limit, `rpm`, of this many per minute.
pub(super) fn rpm(amount: u64) -> Limits {
    Limits::new([Limit::per_minute("rpm", amount)]).unwrap()
}
