//! Audit: every change leaves an event, with its principal and its details.

use std::time::Duration;

use tollgate_catalog::{
    Action, AuditEvent, Catalog, Level, NewEntity, OnUnavailable, PageRequest, Registry, Subject,
};
use tollgate_core::{Limit, Limits, demand};
use tollgate_store::records::Value;

use super::fixture::{CatalogFixture, all_pages, rpm};
use super::login::login;
use crate::OpenBackend;

crate::catalog::laws![
    every_change_leaves_one_event,
    a_call_that_changes_nothing_leaves_no_event,
    limits_that_are_stored_already_are_no_change,
    events_name_the_principal_of_the_change,
    events_are_listed_in_pages_in_either_order,
    events_are_kept_for_their_retention,
];

fn events(catalog: &Catalog, subject: Subject<'_>) -> Vec<AuditEvent> {
    catalog.audit(subject, PageRequest::default()).wait().unwrap().items
}

fn actions(catalog: &Catalog, subject: Subject<'_>) -> Vec<Action> {
    events(catalog, subject).into_iter().map(|event| event.action).collect()
}

fn limits_that_are_stored_already_are_no_change(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    let limits = |tpm| Limits::new([Limit::per_minute("tpm", tpm), Limit::per_minute("rpm", 5)]).unwrap();
    for level in
        [Level::System, Level::Resource("gpt-4"), Level::Entity("e"), Level::EntityResource("e", "r")]
    {
        let ensured = |tpm| catalog.ensure_limits(level, &limits(tpm)).wait().unwrap();
        assert_eq!([7, 7, 8, 8, 7].map(ensured), [true, false, true, false, true]);
        assert_eq!(catalog.limits(level).wait().unwrap().unwrap().limits.len(), 2);
        let none = Limits::new([0; 0].map(|_: u8| Limit::per_minute("rpm", 1))).unwrap();
        assert!(catalog.ensure_limits(level, &none).wait().is_err(), "none are no limits");
    }
    assert_eq!(actions(catalog, Subject::System), [Action::LimitsSet, Action::LimitsSet, Action::LimitsSet]);
    assert_eq!(actions(catalog, Subject::Entity("e")).len(), 6);
}

fn every_change_leaves_one_event(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    catalog.create_entity(NewEntity::new("p")).wait().unwrap();
    catalog.create_entity(NewEntity::new("e").name("E")).wait().unwrap();
    catalog.set_parent("e", Some("p")).wait().unwrap();
    catalog.set_cascades("e", true).wait().unwrap();
    catalog.set_limits(Level::Entity("e"), &rpm(5)).wait().unwrap();
    catalog.set_limits(Level::EntityResource("e", "gpt-4"), &rpm(5)).wait().unwrap();
    catalog.reset("e", "gpt-4", None).wait().unwrap();
    catalog.top_up("e", "gpt-4", &demand! { rpm: 3 }, None).wait().unwrap();
    catalog.disable_entity("e").wait().unwrap();
    catalog.enable_entity("e").wait().unwrap();
    catalog.delete_limits(Level::Entity("e")).wait().unwrap();
    catalog.delete_entity("e").wait().unwrap();
    let events_of_e = events(catalog, Subject::Entity("e"));
    let expected = [
        (Action::EntityCreated, None),
        (Action::ParentSet, None),
        (Action::CascadeSet, None),
        (Action::LimitsSet, Some("_default_")),
        (Action::LimitsSet, Some("gpt-4")),
        (Action::Reset, Some("gpt-4")),
        (Action::ToppedUp, Some("gpt-4")),
        (Action::Disabled, None),
        (Action::Enabled, None),
        (Action::LimitsDeleted, Some("_default_")),
        // Deleting the entity deletes the limits that are left.
        (Action::LimitsDeleted, Some("gpt-4")),
        (Action::EntityDeleted, None),
    ];
    let seen: Vec<_> =
        events_of_e.iter().map(|event| (event.action.clone(), event.resource.as_deref())).collect();
    assert_eq!(seen, expected);
    assert!(events_of_e.is_sorted_by(|one, two| one.id < two.id));
    assert!(
        events_of_e.iter().all(|event| event.subject == "e" && event.timestamp == "2026-11-15T00:00:00Z")
    );
    assert_eq!(events_of_e[0].details["name"], Value::from("E"));
    assert_eq!(events_of_e[1].details["parent_id"], Value::from("p"));
    assert_eq!(
        events_of_e[3].details["limits"],
        Value::Map([("rpm".into(), "rpm: 5 per 60s".into())].into())
    );
    assert_eq!(events_of_e[6].details["rpm"], Value::Int(3));

    catalog.set_system_limits(&rpm(1), Some(OnUnavailable::Local)).wait().unwrap();
    catalog.delete_limits(Level::System).wait().unwrap();
    let system = events(catalog, Subject::System);
    assert_eq!((system.len(), system[0].subject.as_str()), (2, "$SYSTEM"));
    assert_eq!(system[0].details["on_unavailable"], Value::from("local"));
    catalog.set_limits(Level::Resource("gpt-4"), &rpm(1)).wait().unwrap();
    catalog.disable_resource("gpt-4").wait().unwrap();
    catalog.enable_resource("gpt-4").wait().unwrap();
    catalog.delete_limits(Level::Resource("gpt-4")).wait().unwrap();
    let expected = [Action::LimitsSet, Action::Disabled, Action::Enabled, Action::LimitsDeleted];
    assert_eq!(actions(catalog, Subject::Resource("gpt-4")), expected);
    assert_eq!(actions(catalog, Subject::Entity("p")), [Action::EntityCreated]);
}

fn a_call_that_changes_nothing_leaves_no_event(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    catalog.create_entity(NewEntity::new("e")).wait().unwrap();
    let keys = fixture.keys();
    assert!(catalog.create_entity(NewEntity::new("e")).wait().is_err());
    assert!(!catalog.set_parent("e", None).wait().unwrap());
    assert!(!catalog.set_cascades("e", false).wait().unwrap());
    assert!(!catalog.delete_limits(Level::Entity("e")).wait().unwrap());
    assert!(!catalog.enable_entity("e").wait().unwrap());
    assert!(catalog.set_parent("e", Some("nobody")).wait().is_err());
    assert!(catalog.reset("e", "gpt-4", None).wait().is_err());
    assert_eq!(fixture.keys(), keys);
    // An event is made with its change, or not at all.
    fixture.spy.fail_after(0);
    assert!(catalog.set_limits(Level::System, &rpm(1)).wait().unwrap_err().is_unavailable());
    fixture.spy.heal();
    assert_eq!(fixture.keys(), keys);
}

fn events_name_the_principal_of_the_change(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fixture.catalog.disable_entity("e").wait().unwrap();
    let alice = fixture.catalog.acting_as("alice@example.com").unwrap();
    alice.enable_entity("e").wait().unwrap();
    assert_eq!((fixture.catalog.principal(), alice.principal()), (&*login(), "alice@example.com"));
    let registry = Registry::builder(fixture.spy.clone()).principal("service:1").build().unwrap();
    fixture.advance(1);
    registry.open("default").wait().unwrap().disable_entity("e").wait().unwrap();
    let events_of_e = events(&fixture.catalog, Subject::Entity("e"));
    let principals: Vec<&str> = events_of_e.iter().map(|event| event.principal.as_str()).collect();
    assert_eq!(principals, [fixture.catalog.principal(), "alice@example.com", "service:1"]);
}

fn events_are_listed_in_pages_in_either_order(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    for round in 0..5 {
        catalog.set_limits(Level::System, &rpm(1 + round)).wait().unwrap();
        // The clock may stand still, or move.
        fixture.advance(round % 2);
    }
    let all = events(catalog, Subject::System);
    for (newest_first, expected) in
        [(false, all.clone()), (true, all.iter().rev().cloned().collect::<Vec<_>>())]
    {
        let first = PageRequest { newest_first, ..PageRequest::of(2) };
        assert_eq!(all_pages(&first, |page| catalog.audit(Subject::System, page).wait()), expected);
    }
}

fn events_are_kept_for_their_retention(open: OpenBackend<'_>) {
    const DAY: u64 = 86_400;
    for (retention, present, gone) in [
        (None, 3_000 * DAY, None),
        (Some(Duration::from_secs(DAY)), DAY - 1, Some(DAY)),
        (Some(Duration::from_secs(90 * DAY)), 90 * DAY - 1, Some(90 * DAY)),
    ] {
        let fixture = CatalogFixture::new(open);
        let registry = Registry::builder(fixture.spy.clone()).audit_retention(retention).build().unwrap();
        let catalog = registry.open("default").wait().unwrap();
        catalog.disable_entity("e").wait().unwrap();
        fixture.advance(present);
        assert_eq!(events(&catalog, Subject::Entity("e")).len(), 1);
        if let Some(gone) = gone {
            fixture.advance(gone - present);
            assert_eq!(events(&catalog, Subject::Entity("e")), []);
        }
    }
}
