//! Partitions, indexes, and the pages they are read in.

use tollgate_store::Clock;
use tollgate_store::records::{Change, Index, Item, ItemKey, PAGE_MAX, Page, Query, Records, Write};

use super::{find_all, key, put, query_all, write};
use crate::fixture::open_at_start;

pub(super) fn run<R: Records>(open: &impl Fn(Clock) -> R) {
    sort_keys_are_in_the_order_of_their_bytes(open);
    a_prefix_is_matched_literally(open);
    partitions_are_separate(open);
    pages_follow_each_other_in_both_directions(open);
    records_made_or_deleted_between_pages_move_no_other(open);
    an_index_has_a_record_where_it_was_placed_last(open);
    an_index_is_read_in_pages_also_where_sort_keys_are_equal(open);
    a_namespace_has_all_its_records_and_no_others(open);
    a_page_is_bounded(open);
}

fn fill<R: Records>(store: &R, partition: &str, sorts: &[&str]) {
    let writes: Vec<Write> = sorts.iter().map(|sort| put(Item::new(key(partition, sort)))).collect();
    write(store, &writes);
}

fn sorts<R: Records>(store: &R, query: &Query) -> Vec<String> {
    query_all(store, query).into_iter().map(|item| item.key.sort).collect()
}

fn sort_keys_are_in_the_order_of_their_bytes<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    let in_order = ["#", "1", "10", "2", "A", "Z", "_", "a", "a\u{1}", "aa", "b", "z", "ä", "\u{FFFD}", "🚪"];
    let mut shuffled = in_order;
    shuffled.reverse();
    shuffled.swap(2, 9);
    fill(&store, "ns/A", &shuffled);
    assert_eq!(sorts(&store, &Query::all("ns/A")), in_order);
    let newest = Query { newest_first: true, ..Query::all("ns/A") };
    assert!(sorts(&store, &newest).into_iter().rev().eq(in_order));
}

/// These are the wildcards and the edges where a store turns a prefix into a pattern or a range.
fn a_prefix_is_matched_literally<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    let last = "a\u{10FFFF}";
    let all = ["%", "%x", "*", "A", "a", "a%", "a_", "ab", "a\u{10FFFF}", "a\u{10FFFF}b", "b", "x%"];
    fill(&store, "ns/A", &all);
    for prefix in ["%", "_", "*", "a", "a%", "a_", "ab", "[", "\\", last, "b", "no"] {
        let expected: Vec<&str> = all.into_iter().filter(|sort| sort.starts_with(prefix)).collect();
        let query = Query::prefix("ns/A", prefix);
        assert_eq!(sorts(&store, &query), expected, "prefix {prefix:?}");
        let newest = Query { newest_first: true, ..query };
        assert!(sorts(&store, &newest).into_iter().rev().eq(expected), "newest with prefix {prefix:?}");
    }
}

fn partitions_are_separate<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    for partition in ["ns/A", "ns/AB", "ns/a", "ns/", "n"] {
        fill(&store, partition, &["1", partition]);
    }
    assert_eq!(sorts(&store, &Query::all("ns/A")), ["1", "ns/A"]);
    assert_eq!(sorts(&store, &Query::all("ns/")), ["1", "ns/"]);
    assert!(sorts(&store, &Query::all("ns")).is_empty());
    write(&store, &[Write::Delete(key("ns/A", "1"), vec![])]);
    assert_eq!(sorts(&store, &Query::all("ns/AB")), ["1", "ns/AB"]);
}

fn pages_follow_each_other_in_both_directions<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    let names: Vec<String> = (0..23).map(|number| format!("{number:02}")).collect();
    fill(&store, "ns/A", &names.iter().map(String::as_str).collect::<Vec<_>>());
    fill(&store, "ns/B", &["00"]);
    for limit in [1, 2, 7, 22, 23, 24] {
        for newest_first in [false, true] {
            let mut read = sorts(&store, &Query { limit, newest_first, ..Query::all("ns/A") });
            if newest_first {
                read.reverse();
            }
            assert_eq!(read, names, "in pages of {limit}");
        }
    }
}

/// Reads one page, and moves the query to the next.
fn page<R: Records>(store: &R, query: &mut Query) -> Vec<String> {
    let Page { items, next } = store.query(query).wait().expect("the store answers");
    query.after = next;
    items.into_iter().map(|item| item.key.sort).collect()
}

fn records_made_or_deleted_between_pages_move_no_other<R: Records>(open: &impl Fn(Clock) -> R) {
    for newest_first in [false, true] {
        let store = open_at_start(open);
        fill(&store, "ns/A", &["b", "d", "f", "h", "j", "l"]);
        let mut query = Query { limit: 2, newest_first, ..Query::all("ns/A") };
        let mut read = page(&store, &mut query);
        assert_eq!(read.len(), 2);
        // The last that was read is deleted, and others are made before and behind it.
        let last = read[1].clone();
        write(&store, &[Write::Delete(key("ns/A", &last), vec![])]);
        fill(&store, "ns/A", &["a", "m"]);
        while query.after.is_some() {
            read.extend(page(&store, &mut query));
        }
        let (seen, unseen) = if newest_first { ("a", "m") } else { ("m", "a") };
        let mut expected: Vec<&str> = vec!["b", "d", "f", "h", "j", "l", seen];
        expected.sort_unstable();
        read.sort_unstable();
        assert_eq!(read, expected, "{unseen} came where the pages had been already");
    }
}

fn an_index_has_a_record_where_it_was_placed_last<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    let at = key("ns/A", "1");
    let change = |change| write(&store, &[Write::Change(at.clone(), vec![change], vec![])]);
    let found = |index, partition: &str| find_all(&store, index, &Query::all(partition));
    change(Change::Place(Index::Children, key("ns/P", "x")));
    change(Change::Place(Index::Resource, key("ns/P", "x")));
    assert_eq!(found(Index::Children, "ns/P"), std::slice::from_ref(&at));
    change(Change::Place(Index::Children, key("ns/Q", "y")));
    assert!(found(Index::Children, "ns/P").is_empty());
    assert_eq!(found(Index::Children, "ns/Q"), std::slice::from_ref(&at));
    assert_eq!(found(Index::Resource, "ns/P"), std::slice::from_ref(&at), "indexes are apart");
    change(Change::Set("n".into(), 1.into()));
    assert_eq!(found(Index::Children, "ns/Q"), std::slice::from_ref(&at));
    change(Change::Displace(Index::Children));
    change(Change::Displace(Index::Custom));
    assert!(found(Index::Children, "ns/Q").is_empty());
    write(&store, &[Write::Delete(at.clone(), vec![])]);
    assert!(found(Index::Resource, "ns/P").is_empty());
}

fn an_index_is_read_in_pages_also_where_sort_keys_are_equal<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    let record = |number: usize| key(&format!("ns/{number}"), "1");
    let mut writes = Vec::new();
    for number in 0..12 {
        let place = if number < 9 { "a-same" } else { "b-other" };
        writes.push(put(Item::new(record(number)).indexed(Index::Resource, "ns/R", place)));
    }
    write(&store, &writes);
    for newest_first in [false, true] {
        for limit in [1, 4, 12, 20] {
            let query = Query { limit, newest_first, ..Query::all("ns/R") };
            let mut found = find_all(&store, Index::Resource, &query);
            let of_place = |key: &ItemKey| writes.iter().any(|write| write.key() == key);
            assert!(found.iter().all(of_place));
            found.sort();
            found.dedup();
            assert_eq!(found.len(), 12, "in pages of {limit}");
        }
    }
    let others = find_all(&store, Index::Resource, &Query::prefix("ns/R", "b"));
    assert_eq!(others.len(), 3);
}

fn a_namespace_has_all_its_records_and_no_others<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    for partition in ["ns/A", "ns/AB", "ns/B", "ns2/A", "ns!/A", "n/ns/A", "NS/A"] {
        fill(&store, partition, &["1", "2"]);
    }
    let partitions = |prefix: &str, limit: usize| {
        let query = Query { limit, ..Query::prefix("ns", prefix) };
        let found = find_all(&store, Index::Namespace, &query);
        found.into_iter().map(|key| format!("{} {}", key.partition, key.sort)).collect::<Vec<_>>()
    };
    for limit in [1, 3, 100] {
        let expected = ["ns/A 1", "ns/A 2", "ns/AB 1", "ns/AB 2", "ns/B 1", "ns/B 2"];
        let mut all = partitions("", limit);
        // Records of one partition may come in any order: they have the same sort key in the index.
        all.sort_unstable();
        assert_eq!(all, expected, "in pages of {limit}");
        assert_eq!(partitions("ns/A", limit).len(), 4);
        assert_eq!(partitions("ns/B", limit).len(), 2);
        assert!(partitions("x", limit).is_empty());
    }
}

fn a_page_is_bounded<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    let names: Vec<String> = (0..PAGE_MAX + 1).map(|number| format!("{number:05}")).collect();
    for names in names.chunks(100) {
        fill(&store, "ns/A", &names.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let query = Query { limit: usize::MAX, ..Query::all("ns/A") };
    let Page { items, next } = store.query(&query).wait().expect("the store answers");
    assert!(items.len() <= PAGE_MAX && next.is_some());
    let query = Query { limit: 0, ..Query::all("ns/A") };
    let first = store.query(&query).wait().expect("the store answers");
    assert_eq!(first.items.len(), 1, "0 counts as 1");
}
