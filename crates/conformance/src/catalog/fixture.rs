//! What every law of the catalog starts from.

use std::sync::Arc;

use tollgate_catalog::{Catalog, PageRequest, Registry, Result};
use tollgate_core::{AsDemand, Limit, Limits, Span, Tick};
use tollgate_store::records::{Index, Item, ItemKey, PAGE_MAX, Page, Query};
use tollgate_store::{Backend, BucketRef, ManualClock, Op, Step, Transaction, TxnOutcome};

use super::spy::Spy;
use crate::OpenBackend;
use crate::fixture::{self, open_at};

/// 2026-11-15T00:00:00Z, which starts an hour and a day.
pub(super) const START: Tick = Tick::from_secs(1_794_700_800);

/// A store with one namespace, and its manual clock.
pub(super) struct CatalogFixture {
    pub(super) clock: ManualClock,
    pub(super) spy: Arc<Spy>,
    pub(super) registry: Registry,
    pub(super) catalog: Catalog,
}

/// Opens a store that no other law uses, watched by a spy.
pub(super) fn watched(open: OpenBackend<'_>) -> (ManualClock, Arc<Spy>) {
    let (clock, store) = open_at(START, open);
    (clock, Arc::new(Spy::new(store)))
}

impl CatalogFixture {
    /// Opens a store with the namespace `default`.
    pub(super) fn new(open: OpenBackend<'_>) -> CatalogFixture {
        let (clock, spy) = watched(open);
        let registry = Registry::new(spy.clone());
        let catalog = registry.open_or_register("default").wait().unwrap();
        CatalogFixture { clock, spy, registry, catalog }
    }

    /// Opens the same on a store that does not report its revision.
    pub(super) fn without_revision(open: OpenBackend<'_>) -> CatalogFixture {
        let fixture = CatalogFixture::new(open);
        fixture.spy.hide_revision();
        fixture
    }

    /// Opens the namespace once more, as another process would.
    pub(super) fn another(&self) -> CatalogFixture {
        let catalog = self.registry.open("default").wait().unwrap();
        CatalogFixture {
            clock: self.clock.clone(),
            spy: self.spy.clone(),
            registry: self.registry.clone(),
            catalog,
        }
    }

    pub(super) fn advance(&self, seconds: u64) {
        self.clock.advance(Span::from_secs(seconds));
    }

    /// Returns the keys of all records of the namespace.
    pub(super) fn keys(&self) -> Vec<ItemKey> {
        keys_in(self.spy.inner(), self.catalog.namespace_id())
    }

    pub(super) fn item(&self, key: ItemKey) -> Option<Item> {
        self.spy.inner().get_many(&[key]).wait().unwrap().pop().flatten()
    }

    /// Takes from the bucket of an entity, without its ancestors, and returns whether it was admitted.
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

    /// Returns what is left of the first limit of an entity.
    pub(super) fn available(&self, entity: &str, resource: &str) -> i64 {
        let link = self.catalog.chain(entity, resource).wait().unwrap().links[0].clone();
        let place =
            BucketRef { namespace: self.catalog.namespace_id(), key: &link.key, limits: &link.limits };
        self.spy.inner().peek(&place).wait().unwrap()[0].available()
    }
}

/// Returns the keys of all records of a namespace.
pub(super) fn keys_in(backend: &dyn Backend, namespace: &str) -> Vec<ItemKey> {
    let query = Query { limit: PAGE_MAX, ..Query::all(namespace) };
    let read = |after| backend.find(Index::Namespace, &Query { after, ..query.clone() }).wait();
    fixture::all_pages(|after| read(after).unwrap())
}

/// Returns one limit, `rpm`, of this amount per minute.
pub(super) fn rpm(amount: u64) -> Limits {
    Limits::new([Limit::per_minute("rpm", amount)]).unwrap()
}

/// Reads all pages of the size and in the order of a request.
pub(super) fn all_pages<T>(
    first: &PageRequest,
    mut read: impl FnMut(PageRequest) -> Result<Page<T>>,
) -> Vec<T> {
    fixture::all_pages(|after| {
        let page = read(after.into_iter().fold(first.clone(), PageRequest::after)).unwrap();
        assert!(page.items.len() <= first.limit, "a page of {} has {}", first.limit, page.items.len());
        page
    })
}
