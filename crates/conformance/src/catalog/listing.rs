//! A namespace as a whole: what is in it is listed and counted.

use tollgate_catalog::{Access, DEFAULT_RESOURCE, Level, NewEntity, PageRequest, UsageQuery, Window};
use tollgate_core::demand;
use tollgate_store::Scope;

use super::fixture::{CatalogFixture, START, all_pages, rpm};
use crate::OpenBackend;

crate::catalog::laws![
    created_entities_are_listed_in_pages,
    what_is_in_a_namespace_is_counted,
    what_is_stored_of_one_entity_is_counted,
    a_deleted_namespace_can_be_counted,
    all_limits_of_an_entity_are_found,
    disabled_entities_and_resources_are_listed,
    an_entity_may_be_denied_one_resource_or_exempt_from_its_switch,
    events_of_all_subjects_are_listed_in_the_order_of_time,
    usage_of_all_entities_is_that_of_each,
];

fn filled(open: OpenBackend<'_>) -> CatalogFixture {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    for entity in ["a", "b", "c", "d", "e"] {
        catalog.create_entity(NewEntity::new(entity)).wait().unwrap();
        fixture.advance(1);
    }
    catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    catalog.set_limits(Level::Resource("gpt-4"), &rpm(20)).wait().unwrap();
    catalog.set_limits(Level::Entity("a"), &rpm(30)).wait().unwrap();
    catalog.set_limits(Level::EntityResource("a", "gpt-4"), &rpm(40)).wait().unwrap();
    catalog.disable_entity("never-created").wait().unwrap();
    catalog.disable_resource("gpt-3").wait().unwrap();
    assert!(fixture.take("a", "gpt-4", &demand! { rpm: 7 }));
    assert!(fixture.take("b", "gpt-4", &demand! { rpm: 5 }));
    fixture
}

/// Writes the records of usage, as a new hour does.
fn write_usage(fixture: &CatalogFixture) {
    let catalog = &fixture.catalog;
    catalog.backend().write_usage(catalog.namespace_id(), Scope::All).wait().unwrap();
}

fn created_entities_are_listed_in_pages(open: OpenBackend<'_>) {
    let fixture = filled(open);
    // Records of usage sort between those of entities, but are not entities.
    write_usage(&fixture);
    for limit in [1, 2, 100] {
        let listed = all_pages(&PageRequest::of(limit), |page| fixture.catalog.entities(page).wait());
        assert_eq!(listed, ["a", "b", "c", "d", "e"], "{limit} at a time");
    }
}

fn what_is_in_a_namespace_is_counted(open: OpenBackend<'_>) {
    let fixture = filled(open);
    for is_written in [false, true] {
        if is_written {
            write_usage(&fixture);
        }
        let counts = fixture.catalog.counts().wait().unwrap();
        assert_eq!((counts.entities, counts.entity_limits, counts.resource_limits), (5, 2, 1));
        assert_eq!((counts.system_limits, counts.disabled, counts.buckets), (1, 2, 2));
        assert_eq!((counts.audit_events, counts.usage_records), (11, 6), "usage is written: {is_written}");
    }
    let empty = fixture.registry.open_or_register("other").wait().unwrap();
    assert_eq!(empty.counts().wait().unwrap(), tollgate_catalog::Counts::default());
}

fn what_is_stored_of_one_entity_is_counted(open: OpenBackend<'_>) {
    let fixture = filled(open);
    let catalog = &fixture.catalog;
    // Its name starts with the name of another.
    catalog.set_limits(Level::Entity("aa"), &rpm(30)).wait().unwrap();
    for is_written in [false, true] {
        if is_written {
            write_usage(&fixture);
        }
        let of_a = catalog.counts_of_entity("a").wait().unwrap();
        let counted = (of_a.entities, of_a.entity_limits, of_a.usage_records, of_a.buckets);
        assert_eq!(counted, (1, 2, 3, 1), "usage is written: {is_written}");
    }
    let implicit = catalog.counts_of_entity("never-created").wait().unwrap();
    assert_eq!((implicit.entities, implicit.disabled), (0, 1));
    assert_eq!(catalog.counts_of_entity("unknown").wait().unwrap(), tollgate_catalog::Counts::default());
}

fn a_deleted_namespace_can_be_counted(open: OpenBackend<'_>) {
    let fixture = filled(open);
    let before = fixture.catalog.counts().wait().unwrap();
    let deleted = fixture.registry.delete(fixture.catalog.namespace_name()).wait().unwrap();
    assert_eq!(fixture.registry.counts(&deleted.id).wait().unwrap(), before);
    assert!(fixture.registry.counts("none-such").wait().is_err());
}

fn all_limits_of_an_entity_are_found(open: OpenBackend<'_>) {
    let fixture = filled(open);
    let all = fixture.catalog.limits_of_entity("a").wait().unwrap();
    let listed: Vec<_> =
        all.iter().map(|(resource, stored)| (resource.as_str(), stored.limits[0].amount())).collect();
    assert_eq!(listed, [(DEFAULT_RESOURCE, 30), ("gpt-4", 40)]);
    assert!(fixture.catalog.limits_of_entity("b").wait().unwrap().is_empty());
}

fn an_entity_may_be_denied_one_resource_or_exempt_from_its_switch(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    catalog.create_entity(NewEntity::new("org")).wait().unwrap();
    catalog.create_entity(NewEntity::new("key").parent("org").cascades(true)).wait().unwrap();
    let passes = |entity, resource| match catalog.chain(entity, resource).wait() {
        Ok(_) => true,
        Err(tollgate_catalog::CatalogError::Disabled { .. }) => false,
        Err(other) => panic!("{other}"),
    };
    let set = |entity, resource, access| catalog.set_access(entity, resource, access).wait().unwrap();
    // One resource is denied to one entity, and to those that cascade to it.
    assert!(set("org", "gpt-4", Some(Access::Off)) && !set("org", "gpt-4", Some(Access::Off)));
    assert_eq!(
        [passes("org", "gpt-4"), passes("key", "gpt-4"), passes("org", "gpt-3")],
        [false, false, true]
    );
    assert!(passes("other", "gpt-4") && !catalog.is_entity_disabled("org").wait().unwrap());
    assert!(set("org", "gpt-4", None) && passes("key", "gpt-4"));
    // The calling entity is exempt from a disabled resource.
    catalog.disable_resource("gpt-4").wait().unwrap();
    assert!(!passes("key", "gpt-4") && set("key", "gpt-4", Some(Access::On)));
    assert_eq!(
        [passes("key", "gpt-4"), passes("org", "gpt-4"), passes("other", "gpt-4")],
        [true, false, false]
    );
    assert_eq!(catalog.access("key", "gpt-4").wait().unwrap(), Some(Access::On));
    // An entity that is disabled itself has no exceptions, and keeps them until it is enabled.
    assert!(catalog.disable_entity("key").wait().unwrap() && !passes("key", "gpt-4"));
    assert!(set("key", "gpt-3", Some(Access::Off)) && catalog.is_entity_disabled("key").wait().unwrap());
    assert!(catalog.enable_entity("key").wait().unwrap() && !catalog.enable_entity("key").wait().unwrap());
    assert_eq!([passes("key", "gpt-4"), passes("key", "gpt-3")], [true, false]);
    let accesses = catalog.accesses("key").wait().unwrap().into_iter().collect::<Vec<_>>();
    assert_eq!(accesses, [("gpt-3".into(), Access::Off), ("gpt-4".into(), Access::On)]);
    assert!(set("key", "gpt-4", None) && set("key", "gpt-3", None) && !passes("key", "gpt-4"));
    assert_eq!(catalog.counts_of_entity("key").wait().unwrap().disabled, 0, "nothing is left of it");
}

fn disabled_entities_and_resources_are_listed(open: OpenBackend<'_>) {
    let fixture = filled(open);
    let catalog = &fixture.catalog;
    assert!(catalog.is_entity_disabled("never-created").wait().unwrap());
    assert!(!catalog.is_entity_disabled("a").wait().unwrap());
    assert_eq!(catalog.disabled_resources().wait().unwrap(), ["gpt-3"]);
    catalog.enable_resource("gpt-3").wait().unwrap();
    assert!(catalog.disabled_resources().wait().unwrap().is_empty());
}

fn events_of_all_subjects_are_listed_in_the_order_of_time(open: OpenBackend<'_>) {
    let fixture = filled(open);
    let subjects = |first: &PageRequest| {
        let events = all_pages(first, |page| fixture.catalog.audit_of_all(page).wait());
        events.into_iter().map(|event| event.subject).collect::<Vec<_>>()
    };
    let all = subjects(&PageRequest::default());
    assert_eq!(all[..7], ["a", "b", "c", "d", "e", "$SYSTEM", "$RESOURCE:gpt-4"]);
    let one_page = fixture.catalog.audit_of_all(PageRequest::default()).wait().unwrap();
    assert_eq!((all.len(), one_page.items.len(), one_page.next), (11, 11, None));
    assert_eq!(subjects(&PageRequest::of(3)), all);
    let newest_first = subjects(&PageRequest::of(3).newest_first());
    assert!(newest_first.iter().rev().eq(&all), "{newest_first:?}");
}

fn usage_of_all_entities_is_that_of_each(open: OpenBackend<'_>) {
    let fixture = filled(open);
    let query = UsageQuery::of_all_entities(Window::Hour);
    let rows = fixture.catalog.usage(query.clone()).wait().unwrap().items;
    let listed: Vec<_> = rows.iter().map(|row| (row.entity.as_str(), row.amounts["rpm"])).collect();
    assert_eq!(listed, [("a", 7), ("b", 5)]);
    let summary = fixture.catalog.usage_summary(query.clone()).wait().unwrap();
    assert_eq!((summary.windows, summary.events, summary.limits["rpm"].total), (1, 2, 12));
    let later = query.clone().from(START + tollgate_core::Span::from_secs(3_600));
    assert!(fixture.catalog.usage(later).wait().unwrap().items.is_empty());
    let other = fixture.catalog.usage(query.resource("gpt-3")).wait().unwrap();
    assert!(other.items.is_empty());
}
