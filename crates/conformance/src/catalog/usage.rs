//! Usage: exact, counted once, at the instant of the event.

use tollgate_catalog::{Level, PageRequest, UsageQuery, UsageRow, Window};
use tollgate_core::{Span, Tick, demand};

use super::fixture::{CatalogFixture, START, all_pages, rpm};
use crate::OpenBackend;

crate::catalog::laws![
    hours_days_and_months_add_up,
    usage_is_found_by_entity_and_by_resource,
    only_the_requested_windows_are_returned,
    usage_is_listed_in_pages,
    a_summary_adds_up_all_windows,
];

const HOUR: u64 = 3_600;

fn with_limits(open: OpenBackend<'_>) -> CatalogFixture {
    let fixture = CatalogFixture::new(open);
    fixture.catalog.set_limits(Level::System, &rpm(1_000)).wait().unwrap();
    fixture
}

fn use_some(fixture: &CatalogFixture, entity: &str, resource: &str, amount: u64) {
    assert!(fixture.take(entity, resource, &demand! { rpm: amount }));
}

fn rows(fixture: &CatalogFixture, query: UsageQuery) -> Vec<UsageRow> {
    fixture.catalog.usage(query).wait().unwrap().items
}

/// Returns the start of each window, in hours, and the amount that was used in it.
fn brief(rows: &[UsageRow]) -> Vec<(u64, i64)> {
    let hours = |row: &UsageRow| row.start.since(START).as_micros() / 1_000_000 / HOUR;
    rows.iter().map(|row| (hours(row), row.amounts["rpm"])).collect()
}

fn hours_days_and_months_add_up(open: OpenBackend<'_>) {
    let fixture = with_limits(open);
    use_some(&fixture, "e", "gpt-4", 4);
    use_some(&fixture, "e", "gpt-4", 6);
    fixture.advance(14 * HOUR);
    use_some(&fixture, "e", "gpt-4", 10);
    let hours = rows(&fixture, UsageQuery::of_entity("e", Window::Hour));
    assert_eq!(brief(&hours), [(0, 10), (14, 10)]);
    assert_eq!(hours.iter().map(|row| row.events).collect::<Vec<_>>(), [2, 1]);
    assert_eq!((hours[0].entity.as_str(), hours[0].resource.as_str()), ("e", "gpt-4"));
    let days = rows(&fixture, UsageQuery::of_entity("e", Window::Day));
    assert_eq!((brief(&days), days[0].events), (vec![(0, 20)], 3));
    let months = rows(&fixture, UsageQuery::of_entity("e", Window::Month));
    assert_eq!(months[0].start, START - Span::from_secs(14 * 24 * HOUR));
    assert_eq!((months.len(), months[0].amounts["rpm"]), (1, 20));
    // A second query counts nothing twice.
    assert_eq!(rows(&fixture, UsageQuery::of_entity("e", Window::Hour)), hours);
    fixture.advance(24 * HOUR);
    use_some(&fixture, "e", "gpt-4", 1);
    assert_eq!(brief(&rows(&fixture, UsageQuery::of_entity("e", Window::Day))), [(0, 20), (24, 1)]);
}

fn usage_is_found_by_entity_and_by_resource(open: OpenBackend<'_>) {
    let fixture = with_limits(open);
    use_some(&fixture, "a", "gpt-4", 1);
    use_some(&fixture, "a", "gpt-3", 2);
    use_some(&fixture, "b", "gpt-4", 3);
    let found = |query: UsageQuery| -> Vec<(String, String, i64)> {
        let rows = rows(&fixture, query).into_iter();
        rows.map(|row| (row.entity, row.resource, row.amounts["rpm"])).collect()
    };
    let expected = |entity: &str, resource: &str, amount| (entity.to_string(), resource.to_string(), amount);
    let of_a = UsageQuery::of_entity("a", Window::Hour);
    assert_eq!(found(of_a.clone()), [expected("a", "gpt-3", 2), expected("a", "gpt-4", 1)]);
    assert_eq!(found(of_a.resource("gpt-4")), [expected("a", "gpt-4", 1)]);
    let of_gpt_4 = UsageQuery::of_resource("gpt-4", Window::Day);
    assert_eq!(found(of_gpt_4.clone()), [expected("a", "gpt-4", 1), expected("b", "gpt-4", 3)]);
    assert_eq!(found(of_gpt_4.resource("gpt-3")), [expected("a", "gpt-3", 2)]);
    assert!(found(UsageQuery::of_entity("nobody", Window::Hour)).is_empty());
    assert!(found(UsageQuery::of_resource("nothing", Window::Hour)).is_empty());
}

fn only_the_requested_windows_are_returned(open: OpenBackend<'_>) {
    let fixture = with_limits(open);
    for hour in 0..30 {
        use_some(&fixture, "e", "gpt-4", 1 + hour);
        fixture.advance(HOUR);
    }
    let at = |hour: u64| START + Span::from_secs(hour * HOUR);
    for (from, until) in [(0, 30), (3, 7), (9, 11), (22, 26), (5, 5), (29, 100), (40, 50)] {
        let expected: Vec<_> = (from..until.min(30)).map(|hour| (hour, 1 + hour as i64)).collect();
        for query in [
            UsageQuery::of_entity("e", Window::Hour),
            UsageQuery::of_entity("e", Window::Hour).resource("gpt-4"),
            UsageQuery::of_resource("gpt-4", Window::Hour),
        ] {
            let found = rows(&fixture, query.from(at(from)).until(at(until)));
            assert_eq!(brief(&found), expected, "{from} to {until}");
        }
    }
    let half_past = at(3) + Span::from_secs(HOUR / 2);
    let found = rows(&fixture, UsageQuery::of_entity("e", Window::Hour).from(half_past).until(at(5)));
    assert_eq!(brief(&found), [(4, 5)]);
    let all = UsageQuery::of_entity("e", Window::Hour).from(Tick::ZERO).until(Tick::MAX);
    assert_eq!(rows(&fixture, all).len(), 30);
    // Years of five digits sort before those of four, but a query that ends in one loses no rows.
    fixture.advance(5 * 365 * 24 * HOUR);
    use_some(&fixture, "e", "gpt-4", 1);
    let until_20254 = Tick::from_secs(577_000_000_000);
    for query in [UsageQuery::of_resource("gpt-4", Window::Day), UsageQuery::of_entity("e", Window::Day)] {
        let last = rows(&fixture, query.from(START).until(until_20254)).pop().unwrap();
        assert_eq!(last.amounts["rpm"], 1);
    }
}

fn usage_is_listed_in_pages(open: OpenBackend<'_>) {
    let fixture = with_limits(open);
    for hour in 0..10 {
        use_some(&fixture, "e", "gpt-4", 1 + hour);
        use_some(&fixture, "e", "gpt-3", 1);
        fixture.advance(HOUR);
    }
    // More rows that are in no record yet than fit on a page.
    for entity in ["f", "g", "h", "i"] {
        use_some(&fixture, entity, "gpt-4", 1);
    }
    for query in [
        UsageQuery::of_entity("e", Window::Hour).resource("gpt-4"),
        UsageQuery::of_entity("e", Window::Hour),
        UsageQuery::of_resource("gpt-4", Window::Hour),
        UsageQuery::of_all_entities(Window::Hour),
    ] {
        let whole = rows(&fixture, query.clone());
        for limit in [1, 3, 100] {
            let read = |page| fixture.catalog.usage(query.clone().page(page)).wait();
            assert_eq!(all_pages(&PageRequest::of(limit), read), whole, "{limit} at a time");
        }
        let latest = PageRequest::of(1).newest_first();
        let last = fixture.catalog.usage(query.page(latest)).wait().unwrap().items;
        assert_eq!(last.first(), whole.last());
    }
}

fn a_summary_adds_up_all_windows(open: OpenBackend<'_>) {
    let fixture = with_limits(open);
    use_some(&fixture, "a", "gpt-4", 5);
    use_some(&fixture, "b", "gpt-4", 7);
    fixture.advance(2 * HOUR);
    use_some(&fixture, "a", "gpt-4", 3);
    use_some(&fixture, "a", "gpt-3", 100);
    let query = UsageQuery::of_resource("gpt-4", Window::Hour);
    let summary = fixture.catalog.usage_summary(query.page(PageRequest::of(1))).wait().unwrap();
    assert_eq!((summary.windows, summary.events), (2, 3));
    assert_eq!((summary.first, summary.last), (Some(START), Some(START + Span::from_secs(2 * HOUR))));
    let usage = summary.limits["rpm"];
    assert_eq!((usage.total, usage.windows, usage.min, usage.max), (15, 2, 3, 12));
    assert_eq!(usage.average(), 7.5);
    let of_a = fixture.catalog.usage_summary(UsageQuery::of_entity("a", Window::Day)).wait().unwrap();
    assert_eq!((of_a.windows, of_a.limits["rpm"].total), (1, 108));
    let nothing = fixture.catalog.usage_summary(UsageQuery::of_entity("c", Window::Day)).wait().unwrap();
    assert_eq!(nothing, tollgate_catalog::UsageSummary::default());
}
