//! A namespace as a whole: what is in it is found and counted.

use tollgate_core::demand;
use tollgate_store::Scope;

use super::fixture::{Fixture, START, Suite, rpm};
use crate::{DEFAULT_RESOURCE, Level, NewEntity, PageRequest, UsageQuery, Window};

super::promises![
    created_entities_are_listed_page_by_page,
    what_is_in_a_namespace_is_counted,
    all_limits_of_an_entity_are_found,
    what_is_disabled_is_known,
    events_of_everything_come_in_the_order_of_time,
    usage_of_everybody_is_that_of_each,
];

fn furnished(suite: &Suite<'_>) -> Fixture {
    let fixture = suite.fixture();
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

/// Brings the records of usage up to date, as the turn of the hour does.
fn written_down(fixture: &Fixture) {
    let catalog = &fixture.catalog;
    catalog.backend().write_usage(catalog.namespace_id(), Scope::All).wait().unwrap();
}

fn created_entities_are_listed_page_by_page(suite: &Suite<'_>) {
    let fixture = furnished(suite);
    // Usage stands between the records of entities, and is none.
    written_down(&fixture);
    for limit in [1, 2, 100] {
        let (mut page, mut seen) = (PageRequest::of(limit), Vec::new());
        loop {
            let found = fixture.catalog.entities(page.clone()).wait().unwrap();
            assert!(found.items.len() <= limit);
            seen.extend(found.items);
            match found.next {
                Some(next) => page = page.after(next),
                None => break,
            }
        }
        assert_eq!(seen, ["a", "b", "c", "d", "e"], "{limit} at a time");
    }
}

fn what_is_in_a_namespace_is_counted(suite: &Suite<'_>) {
    let fixture = furnished(suite);
    written_down(&fixture);
    let counts = fixture.catalog.counts().wait().unwrap();
    assert_eq!((counts.entities, counts.entity_limits, counts.resource_limits), (5, 2, 1));
    assert_eq!((counts.system_limits, counts.disabled, counts.buckets), (1, 2, 2));
    assert_eq!((counts.audit_events, counts.usage_records), (11, 6));
    let empty = fixture.registry.open_or_register("other").wait().unwrap();
    assert_eq!(empty.counts().wait().unwrap(), crate::Counts::default());
}

fn all_limits_of_an_entity_are_found(suite: &Suite<'_>) {
    let fixture = furnished(suite);
    let all = fixture.catalog.limits_of_entity("a").wait().unwrap();
    let told: Vec<_> =
        all.iter().map(|(resource, stored)| (resource.as_str(), stored.limits[0].amount())).collect();
    assert_eq!(told, [(DEFAULT_RESOURCE, 30), ("gpt-4", 40)]);
    assert!(fixture.catalog.limits_of_entity("b").wait().unwrap().is_empty());
}

fn what_is_disabled_is_known(suite: &Suite<'_>) {
    let fixture = furnished(suite);
    let catalog = &fixture.catalog;
    assert!(catalog.is_entity_disabled("never-created").wait().unwrap());
    assert!(!catalog.is_entity_disabled("a").wait().unwrap());
    assert_eq!(catalog.disabled_resources().wait().unwrap(), ["gpt-3"]);
    catalog.enable_resource("gpt-3").wait().unwrap();
    assert!(catalog.disabled_resources().wait().unwrap().is_empty());
}

fn events_of_everything_come_in_the_order_of_time(suite: &Suite<'_>) {
    let fixture = furnished(suite);
    let subjects = |page: PageRequest| {
        let page = fixture.catalog.audit_of_all(page).wait().unwrap();
        let subjects: Vec<String> = page.items.into_iter().map(|event| event.subject).collect();
        (subjects, page.next)
    };
    let (all, next) = subjects(PageRequest::default());
    assert_eq!(all[..7], ["a", "b", "c", "d", "e", "$SYSTEM", "$RESOURCE:gpt-4"]);
    assert_eq!((all.len(), next), (11, None));
    for newest_first in [false, true] {
        let (mut page, mut seen) = (PageRequest { newest_first, ..PageRequest::of(3) }, Vec::new());
        loop {
            let (subjects, next) = subjects(page.clone());
            seen.extend(subjects);
            match next {
                Some(next) => page = page.after(next),
                None => break,
            }
        }
        if newest_first {
            seen.reverse();
        }
        assert_eq!(seen, all);
    }
}

fn usage_of_everybody_is_that_of_each(suite: &Suite<'_>) {
    let fixture = furnished(suite);
    let query = UsageQuery::of_everybody(Window::Hour);
    let rows = fixture.catalog.usage(query.clone()).wait().unwrap().items;
    let told: Vec<_> = rows.iter().map(|row| (row.entity.as_str(), row.amounts["rpm"])).collect();
    assert_eq!(told, [("a", 7), ("b", 5)]);
    let summary = fixture.catalog.usage_summary(query.clone()).wait().unwrap();
    assert_eq!((summary.windows, summary.events, summary.limits["rpm"].total), (1, 2, 12));
    let later = query.clone().from(START + tollgate_core::Span::from_secs(3_600));
    assert!(fixture.catalog.usage(later).wait().unwrap().items.is_empty());
    let other = fixture.catalog.usage(query.resource("gpt-3")).wait().unwrap();
    assert!(other.items.is_empty());
}
