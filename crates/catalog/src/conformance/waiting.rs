//! Those who wait are seen by others for as long as they say so.

use tollgate_core::Span;

use super::fixture::{Fixture, START, Suite};
use crate::{CatalogError, Counts, SeenWaiter, WAITERS_SEEN_MAX, WaiterRecord};

const SEEN_FOR: Span = Span::from_secs(5);

super::promises![
    one_who_waits_is_seen_with_all_that_it_wants_until_the_wait_ends,
    one_who_says_nothing_more_is_seen_for_as_long_as_it_said,
    one_whose_place_was_taken_cannot_withdraw_the_other,
    who_waits_longest_comes_first,
    no_more_than_so_many_are_seen_to_wait,
    waiting_is_no_change,
    a_purge_leaves_nobody_who_waits,
    a_waiter_that_is_none_is_refused,
];

fn waiter(entity: &str) -> WaiterRecord {
    WaiterRecord::new(entity, "gpt-4", START, 4711, "host-1")
}

fn show(fixture: &Fixture, waiter: &WaiterRecord) -> Option<SeenWaiter> {
    fixture.catalog.show_waiter(waiter, SEEN_FOR).wait().unwrap()
}

fn seen(fixture: &Fixture) -> Vec<String> {
    fixture.catalog.waiters().wait().unwrap().into_iter().map(|waiter| waiter.entity).collect()
}

fn one_who_waits_is_seen_with_all_that_it_wants_until_the_wait_ends(suite: &Suite<'_>) {
    let (fixture, mut waiter) = (suite.fixture(), waiter("a"));
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

fn one_who_says_nothing_more_is_seen_for_as_long_as_it_said(suite: &Suite<'_>) {
    let fixture = suite.fixture();
    let place = show(&fixture, &waiter("a")).unwrap();
    for _ in 0..3 {
        fixture.hands.advance(Span::from_micros(SEEN_FOR.as_micros() - 1));
        assert_eq!(seen(&fixture), ["a"]);
        assert!(fixture.catalog.renew_waiter(&place, SEEN_FOR).wait().unwrap());
    }
    fixture.hands.advance(SEEN_FOR);
    assert_eq!(seen(&fixture), [""; 0]);
    assert!(!fixture.catalog.renew_waiter(&place, SEEN_FOR).wait().unwrap());
    assert_eq!(seen(&fixture), [""; 0]);
    assert!(show(&fixture, &waiter("a")).is_some());
    assert_eq!(seen(&fixture), ["a"]);
}

fn one_whose_place_was_taken_cannot_withdraw_the_other(suite: &Suite<'_>) {
    let fixture = suite.fixture();
    let late: Vec<SeenWaiter> =
        (0..WAITERS_SEEN_MAX).map(|_| show(&fixture, &waiter("late")).unwrap()).collect();
    fixture.hands.advance(SEEN_FOR);
    (0..WAITERS_SEEN_MAX).for_each(|_| drop(show(&fixture, &waiter("new")).unwrap()));
    for place in &late {
        assert!(!fixture.catalog.renew_waiter(place, SEEN_FOR).wait().unwrap());
        fixture.catalog.withdraw_waiter(place).wait().unwrap();
    }
    assert_eq!(seen(&fixture), ["new"; WAITERS_SEEN_MAX]);
}

fn who_waits_longest_comes_first(suite: &Suite<'_>) {
    let fixture = suite.fixture();
    for (entity, since) in [("c", 3), ("a", 1), ("d", 3), ("b", 2)] {
        let waiter = WaiterRecord { since: START + Span::from_secs(since), ..waiter(entity) };
        show(&fixture, &waiter).unwrap();
    }
    assert_eq!(seen(&fixture), ["a", "b", "c", "d"]);
}

fn no_more_than_so_many_are_seen_to_wait(suite: &Suite<'_>) {
    let fixture = suite.fixture();
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

fn waiting_is_no_change(suite: &Suite<'_>) {
    let fixture = suite.fixture();
    show(&fixture, &waiter("a")).unwrap();
    assert_eq!(fixture.catalog.counts().wait().unwrap(), Counts::default());
    assert_eq!(fixture.registry.inspect().wait().unwrap().findings, []);
}

fn a_purge_leaves_nobody_who_waits(suite: &Suite<'_>) {
    let fixture = suite.fixture();
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

fn a_waiter_that_is_none_is_refused(suite: &Suite<'_>) {
    let fixture = suite.fixture();
    let amounts = |count: u64| (0..count).map(|index| (format!("l{index}"), index)).collect();
    let other = |index: u64| (format!("r{index}"), amounts(1));
    let bad = [
        waiter("#"),
        WaiterRecord { resource: "7".into(), ..waiter("a") },
        WaiterRecord { demand: [("a b".into(), 1)].into(), ..waiter("a") },
        WaiterRecord { demand: amounts(1_000), ..waiter("a") },
        WaiterRecord { also: (0..9).map(other).collect(), ..waiter("a") },
        WaiterRecord { also: [("#".into(), amounts(1))].into(), ..waiter("a") },
        WaiterRecord { host: "h".repeat(256), ..waiter("a") },
    ];
    for bad in bad {
        assert!(fixture.catalog.show_waiter(&bad, SEEN_FOR).wait().is_err(), "{bad:?}");
    }
    assert_eq!(seen(&fixture), [""; 0]);
}
