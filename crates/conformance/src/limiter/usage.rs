//! Usage of entities and of their ancestors.

use tollgate_catalog::{Level, UsageQuery, UsageRow, Window};
use tollgate_core::{Limit, demand};

use super::LimiterFixture;
use super::fixture::RESOURCE;
use crate::OpenBackend;

/// A call that is charged to a key, its team and its organisation is one call and costs once in every sum over entities.
/// Each of the three has it in its own usage, and the ancestors have it as a call of a child.
pub fn a_sum_over_entities_counts_a_call_once(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_hour("spend", 1_000)]);
    fixture.create("org", None);
    fixture.create("team", Some("org"));
    fixture.create("key", Some("team"));
    fixture.spend("key", demand! { spend: 10 });
    // A team that calls itself, too, in turn with its keys, and leases that are settled with more and with less.
    fixture.spend("team", demand! { spend: 7 });
    let more = fixture.take("key", demand! { spend: 20 }).expect("there is room");
    more.settle(demand! { spend: 25 }).wait().expect("the store answers");
    let less = fixture.take("team", demand! { spend: 5 }).expect("there is room");
    less.settle(demand! { spend: 1 }).wait().expect("the store answers");
    let sums = |query: UsageQuery| {
        let sum = fixture.catalog().usage_summary(query).wait().expect("the store answers");
        (sum.events, sum.limits.get("spend").map_or(0, |spend| spend.total))
    };
    for window in [Window::Hour, Window::Day, Window::Month] {
        assert_eq!(sums(UsageQuery::of_all_entities(window)), (4, 43), "{window:?}");
        assert_eq!(sums(UsageQuery::of_resource(RESOURCE, window)), (4, 43), "{window:?}");
        for (entity, sum) in [("key", (2, 35)), ("team", (4, 43)), ("org", (4, 43))] {
            assert_eq!(sums(UsageQuery::of_entity(entity, window)), sum, "{entity} {window:?}");
        }
    }
    let rows = fixture.catalog().usage(UsageQuery::of_all_entities(Window::Day)).wait();
    let rows = rows.expect("the store answers").items;
    let of_children = |row: &UsageRow| (row.child_events, row.child_amounts.get("spend").copied());
    let of_children: Vec<_> = rows.iter().map(|row| (row.entity.as_str(), of_children(row))).collect();
    assert_eq!(of_children, [("key", (0, None)), ("org", (4, Some(43))), ("team", (2, Some(35)))]);
}

/// A ticket that is settled elsewhere counts where it was taken: as the key's own call, and as a child's with its parents.
pub fn a_ticket_is_counted_once_in_a_sum_over_entities(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_hour("spend", 1_000)]);
    fixture.create("org", None);
    fixture.create("key", Some("org"));
    let taken = fixture.take("key", demand! { spend: 10 }).expect("there is room");
    let ticket = taken.into_ticket().wait().expect("it has one");
    let redeemed = fixture.limiter.redeem(&ticket).wait().expect("it is one");
    redeemed.settle(demand! { spend: 4 }).wait().expect("the store answers");
    let sum = fixture.catalog().usage_summary(UsageQuery::of_all_entities(Window::Hour)).wait();
    let sum = sum.expect("the store answers");
    assert_eq!((sum.events, sum.limits["spend"].total), (1, 4));
}
