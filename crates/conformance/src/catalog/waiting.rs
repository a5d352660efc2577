//! Waiters, as other processes see them.

use tollgate_catalog::{CatalogError, Counts, SeenWaiter, WAITERS_SEEN_MAX, WaiterRecord};
use tollgate_core::Span;

use super::fixture::{CatalogFixture, START};
use crate::OpenBackend;

const SEEN_FOR: Span = Span::from_secs(5);

crate::catalog::laws![
    a_waiter_is_listed_with_its_demand_until_its_wait_ends,
    a_waiter_that_is_not_renewed_is_listed_until_it_expires,
    an_expired_waiter_cannot_withdraw_its_successor,
    the_longest_waiter_is_listed_first,
    the_list_of_waiters_has_a_bound,
    a_waiter_is_neither_counted_nor_a_finding,
    a_purge_removes_all_waiters,
    an_invalid_waiter_is_refused,
];

fn waiter(entity: &str) -> WaiterRecord {
    WaiterRecord::new(entity, "gpt-4", START, 4711, "host-1")
}

fn show(fixture: &CatalogFixture, waiter: &WaiterRecord) -> Option<SeenWaiter> {
    fixture.catalog.show_waiter(waiter, SEEN_FOR).wait().unwrap()
}

fn seen(fixture: &CatalogFixture) -> Vec<String> {
    fixture.catalog.waiters().wait().unwrap().into_iter().map(|waiter| waiter.entity).collect()
}

fn a_waiter_is_listed_with_its_demand_until_its_wait_ends(open: OpenBackend<'_>) {
    let (fixture, mut waiter) = (CatalogFixture::new(open), waiter("a"));
    waiter.demand = [("rpm".into(), 1), ("tpm".into(), 1_500)].into();
    waiter.also = [("embeddings".into(), [("rpm".into(), 2)].into())].into();
    waiter.since = START + Span::from_micros(1);
    let place = show(&fixture, &waiter).unwrap();
    let another = fixture.another();
    assert_eq!(another.catalog.waiters().wait().unwrap(), [waiter]);
    fixture.catalog.withdraw_waiter(&place).wait().unwrap();
    assert_eq!(another.catalog.waiters().wait().unwrap(), []);
    assert!(!fixture.catalog.renew_waiter(&place, SEEN_FOR).wait().unwrap());
    assert_eq!(seen(&fixture), [""; 0]);
}

fn a_waiter_that_is_not_renewed_is_listed_until_it_expires(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let place = show(&fixture, &waiter("a")).unwrap();
    for _ in 0..3 {
        fixture.clock.advance(Span::from_micros(SEEN_FOR.as_micros() - 1));
        assert_eq!(seen(&fixture), ["a"]);
        assert!(fixture.catalog.renew_waiter(&place, SEEN_FOR).wait().unwrap());
    }
    fixture.clock.advance(SEEN_FOR);
    assert_eq!(seen(&fixture), [""; 0]);
    assert!(!fixture.catalog.renew_waiter(&place, SEEN_FOR).wait().unwrap());
    assert_eq!(seen(&fixture), [""; 0]);
    assert!(show(&fixture, &waiter("a")).is_some());
    assert_eq!(seen(&fixture), ["a"]);
}

fn an_expired_waiter_cannot_withdraw_its_successor(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let late: Vec<SeenWaiter> =
        (0..WAITERS_SEEN_MAX).map(|_| show(&fixture, &waiter("late")).unwrap()).collect();
    fixture.clock.advance(SEEN_FOR);
    (0..WAITERS_SEEN_MAX).for_each(|_| drop(show(&fixture, &waiter("new")).unwrap()));
    for place in &late {
        assert!(!fixture.catalog.renew_waiter(place, SEEN_FOR).wait().unwrap());
        fixture.catalog.withdraw_waiter(place).wait().unwrap();
    }
    assert_eq!(seen(&fixture), ["new"; WAITERS_SEEN_MAX]);
}

fn the_longest_waiter_is_listed_first(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    for (entity, since) in [("c", 3), ("a", 1), ("d", 3), ("b", 2)] {
        let mut waiter = waiter(entity);
        waiter.since = START + Span::from_secs(since);
        show(&fixture, &waiter).unwrap();
    }
    assert_eq!(seen(&fixture), ["a", "b", "c", "d"]);
}

fn the_list_of_waiters_has_a_bound(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let before = fixture.keys().len();
    let places: Vec<SeenWaiter> =
        (0..WAITERS_SEEN_MAX).map(|_| show(&fixture, &waiter("a")).unwrap()).collect();
    assert_eq!(show(&fixture, &waiter("b")), None);
    assert_eq!(seen(&fixture).len(), WAITERS_SEEN_MAX);
    fixture.catalog.withdraw_waiter(&places[7]).wait().unwrap();
    assert!(show(&fixture, &waiter("b")).is_some());
    assert_eq!(show(&fixture, &waiter("c")), None);
    assert_eq!(fixture.keys().len(), before + WAITERS_SEEN_MAX);
}

fn a_waiter_is_neither_counted_nor_a_finding(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    show(&fixture, &waiter("a")).unwrap();
    assert_eq!(fixture.catalog.counts().wait().unwrap(), Counts::default());
    assert_eq!(fixture.registry.inspect().wait().unwrap().findings, []);
}

fn a_purge_removes_all_waiters(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let place = show(&fixture, &waiter("a")).unwrap();
    let id = fixture.catalog.namespace_id();
    fixture.registry.delete("default").wait().unwrap();
    let gone = CatalogError::NamespaceGone { name: "default".into(), id: id.to_owned() };
    assert_eq!(fixture.catalog.show_waiter(&waiter("b"), SEEN_FOR).wait(), Err(gone.clone()));
    assert_eq!(fixture.catalog.renew_waiter(&place, SEEN_FOR).wait(), Err(gone.clone()));
    fixture.registry.purge(id, |_| ()).wait().unwrap();
    assert_eq!(fixture.keys(), []);
    assert_eq!(fixture.catalog.show_waiter(&waiter("b"), SEEN_FOR).wait(), Err(gone));
    assert_eq!(fixture.keys(), []);
}

fn an_invalid_waiter_is_refused(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let amounts = |count: u64| (0..count).map(|index| (format!("l{index}"), index)).collect();
    let other = |index: u64| (format!("r{index}"), amounts(1));
    let spoil: [&dyn Fn(&mut WaiterRecord); 7] = [
        &|waiter| waiter.entity = "#".into(),
        &|waiter| waiter.resource = "7".into(),
        &|waiter| waiter.demand = [("a b".into(), 1)].into(),
        &|waiter| waiter.demand = amounts(1_000),
        &|waiter| waiter.also = (0..9).map(other).collect(),
        &|waiter| waiter.also = [("#".into(), amounts(1))].into(),
        &|waiter| waiter.host = "h".repeat(256),
    ];
    for spoil in spoil {
        let mut bad = waiter("a");
        spoil(&mut bad);
        assert!(fixture.catalog.show_waiter(&bad, SEEN_FOR).wait().is_err(), "{bad:?}");
    }
    assert_eq!(seen(&fixture), [""; 0]);
}
