//! Single records, and writes that are made together.

use std::collections::BTreeSet;

use tollgate_core::Span;
use tollgate_store::Clock;
use tollgate_store::records::{
    Change, Fields, GETS_MAX, Index, Item, Query, Records, RecordsError, Test, Value,
};
use tollgate_store::records::{WRITES_MAX, Write};

use super::{find_all, get, is_bad_call, key, put, query_all, sorted, write};
use crate::fixture::{START, open_at, open_at_start};

pub(super) fn run<R: Records>(open: &impl Fn(Clock) -> R) {
    a_record_is_read_as_it_was_put(open);
    a_put_replaces_and_a_change_keeps_the_rest(open);
    numbers_are_added_up_and_sets_have_each_member_once(open);
    records_are_returned_in_the_order_of_the_keys(open);
    every_test_holds_or_fails(open);
    one_failed_test_and_nothing_is_written(open);
    an_expired_record_is_absent(open);
    invalid_calls_are_refused(open);
    the_largest_allowed_calls_succeed(open);
    every_write_changes_the_revision(open);
}

/// Returns a record with every kind of value, at its edges.
fn rich_item() -> Item {
    let set: BTreeSet<String> = ["", "b", "ü"].map(String::from).into();
    let inner = Fields::from([("n".into(), Value::Int(-1)), ("null".into(), Value::Null)]);
    let nested = Fields::from([("map".into(), Value::Map(inner)), ("set".into(), Value::Set(set.clone()))]);
    let item = Item::new(key("ns/A'\"#%", "sort:\u{10FFFF}\u{1}'"))
        .with("text", "Tür \u{0}\n\"'\\ 🚪")
        .with("empty", "")
        .with("long", "x".repeat(20_000))
        .with("most", i64::MAX)
        .with("least", i64::MIN)
        .with("yes", true)
        .with("no", false)
        .with("null", Value::Null)
        .with("set", Value::Set(set))
        .with("map", nested)
        .with("nothing", Fields::new())
        .with("a name.with-[odd] #signs", 1);
    item.indexed(Index::Children, "ns/P", "child").indexed(Index::Resource, "ns/R", "it")
}

fn a_record_is_read_as_it_was_put<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    let item = Item { expires: Some(START + Span::from_secs(1)), ..rich_item() };
    assert_eq!(get(&store, &item.key), None);
    write(&store, &[put(item.clone())]);
    assert_eq!(get(&store, &item.key), Some(sorted(item.clone())));
    let read = query_all(&store, &Query::all(item.key.partition.clone()));
    assert_eq!(read, [sorted(item.clone())]);
    let bare = Item::new(item.key.clone());
    write(&store, &[put(bare.clone())]);
    assert_eq!(get(&store, &item.key), Some(bare));
    assert!(find_all(&store, Index::Children, &Query::all("ns/P")).is_empty());
}

fn a_put_replaces_and_a_change_keeps_the_rest<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    let at = key("ns/A", "1");
    write(&store, &[put(Item::new(at.clone()).with("a", 1).with("b", 2))]);
    let changes = vec![Change::Set("c".into(), "x".into()), Change::Remove("a".into())];
    write(&store, &[Write::Change(at.clone(), changes, vec![])]);
    assert_eq!(get(&store, &at), Some(Item::new(at.clone()).with("b", 2).with("c", "x")));
    write(&store, &[put(Item::new(at.clone()).with("d", 4))]);
    assert_eq!(get(&store, &at), Some(Item::new(at.clone()).with("d", 4)));
    write(&store, &[Write::Delete(at.clone(), vec![])]);
    write(&store, &[Write::Delete(at.clone(), vec![])]);
    assert_eq!(get(&store, &at), None);
    write(&store, &[Write::Change(at.clone(), vec![Change::Remove("a".into())], vec![])]);
    assert_eq!(get(&store, &at), Some(Item::new(at.clone())), "a change makes the record");
}

fn numbers_are_added_up_and_sets_have_each_member_once<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    let at = key("ns/A", "1");
    let change = |changes: Vec<Change>| write(&store, &[Write::Change(at.clone(), changes, vec![])]);
    for amount in [5, -7, 0] {
        change(vec![Change::Add("n".into(), amount)]);
    }
    assert_eq!(get(&store, &at).and_then(|item| item.int("n")), Some(-2));
    for member in ["a", "b", "a"] {
        change(vec![Change::Include("set".into(), member.into())]);
    }
    let members = |names: &[&str]| Value::Set(names.iter().map(|name| name.to_string()).collect());
    assert_eq!(get(&store, &at).map(|item| item.fields["set"].clone()), Some(members(&["a", "b"])));
    change(vec![Change::Exclude("set".into(), "a".into())]);
    change(vec![Change::Exclude("set".into(), "never".into())]);
    assert_eq!(get(&store, &at).map(|item| item.fields["set"].clone()), Some(members(&["b"])));
    change(vec![Change::Exclude("set".into(), "b".into())]);
    assert_eq!(get(&store, &at), Some(Item::new(at.clone()).with("n", -2)), "an empty set is no field");
}

fn records_are_returned_in_the_order_of_the_keys<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    let (one, two) = (Item::new(key("ns/A", "1")), Item::new(key("ns/B", "1")).with("n", 2));
    write(&store, &[put(one.clone()), put(two.clone())]);
    let keys = [two.key.clone(), key("ns/A", "2"), one.key.clone(), two.key.clone()];
    let found = store.get_many(&keys).wait().expect("the store answers");
    assert_eq!(found, [Some(two.clone()), None, Some(one), Some(two)]);
    assert_eq!(store.get_many(&[]).wait(), Ok(vec![]));
    assert_eq!(store.write(&[]).wait(), Ok(()));
}

fn every_test_holds_or_fails<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    let (there, absent) = (key("ns/A", "there"), key("ns/A", "absent"));
    write(&store, &[put(Item::new(there.clone()).with("n", 5).with("t", "x").with("null", Value::Null))]);
    let is = |field: &str, value: Value| Test::Is(field.into(), value);
    let most = |field: &str, most: i64| Test::AtMost(field.into(), most);
    let cases = [
        (&there, Test::Exists, true),
        (&absent, Test::Exists, false),
        (&there, Test::Absent, false),
        (&absent, Test::Absent, true),
        (&there, is("n", 5.into()), true),
        (&there, is("n", 6.into()), false),
        (&there, is("n", "5".into()), false),
        (&there, is("t", "x".into()), true),
        (&there, is("none", 0.into()), false),
        (&there, is("null", Value::Null), true),
        (&there, is("none", Value::Null), false),
        (&absent, is("n", 5.into()), false),
        (&there, most("n", 5), true),
        (&there, most("n", 4), false),
        (&there, most("none", 0), true),
        (&there, most("none", -1), false),
        (&absent, most("n", 0), true),
    ];
    for (at, test, holds) in cases {
        let checked = store.write(&[Write::Check(at.clone(), vec![test.clone()])]).wait();
        assert_eq!(checked, if holds { Ok(()) } else { Err(RecordsError::Failed(0)) }, "{at:?}: {test:?}");
    }
    assert_eq!(get(&store, &absent), None, "a check makes nothing");
    let both = Write::Check(there.clone(), vec![Test::Exists, most("n", 4)]);
    assert_eq!(store.write(&[both]).wait(), Err(RecordsError::Failed(0)), "all tests must hold");
}

fn one_failed_test_and_nothing_is_written<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    let old = Item::new(key("ns/A", "old")).with("n", 1).indexed(Index::Custom, "ns/C", "1");
    let counter = Item::new(key("ns/A", "counter")).with("n", 1);
    write(&store, &[put(old.clone()), put(counter.clone())]);
    let new = Item::new(key("ns/B", "new")).indexed(Index::Custom, "ns/C", "2");
    let writes = |failing: usize| {
        let mut writes = vec![
            put(new.clone()),
            Write::Change(counter.key.clone(), vec![Change::Add("n".into(), 1)], vec![]),
            Write::Delete(old.key.clone(), vec![]),
        ];
        let failing_write = Write::Check(key("ns/A", "none"), vec![Test::Exists]);
        writes.insert(failing, failing_write);
        writes
    };
    for failing in 0..=3 {
        assert_eq!(store.write(&writes(failing)).wait(), Err(RecordsError::Failed(failing)));
        assert_eq!(get(&store, &new.key), None);
        assert_eq!(get(&store, &counter.key), Some(counter.clone()));
        assert_eq!(get(&store, &old.key), Some(old.clone()));
        let found = find_all(&store, Index::Custom, &Query::all("ns/C"));
        assert_eq!(found, std::slice::from_ref(&old.key));
    }
}

fn an_expired_record_is_absent<R: Records>(open: &impl Fn(Clock) -> R) {
    let (clock, store) = open_at(START, open);
    let at = key("ns/A", "1");
    let item = Item::new(at.clone()).with("n", 5).indexed(Index::Children, "ns/P", "1");
    write(&store, &[put(Item { expires: Some(START + Span::from_secs(10)), ..item.clone() })]);
    clock.advance(Span::from_micros(9_999_999));
    assert!(get(&store, &at).is_some(), "it is there until then");
    clock.advance(Span::from_micros(1));
    assert_eq!(get(&store, &at), None);
    assert_eq!(query_all(&store, &Query::all("ns/A")), []);
    for (index, partition) in [(Index::Children, "ns/P"), (Index::Namespace, "ns")] {
        assert_eq!(find_all(&store, index, &Query::all(partition)), [], "{index:?}");
    }
    let tests = vec![Test::Absent, Test::AtMost("n".into(), 0)];
    write(&store, &[Write::Change(at.clone(), vec![Change::Add("n".into(), 1)], tests)]);
    assert_eq!(get(&store, &at), Some(Item::new(at.clone()).with("n", 1)), "nothing is left of the old one");
    write(&store, &[Write::Change(at.clone(), vec![Change::Expire(Some(START))], vec![])]);
    assert_eq!(get(&store, &at), None);
}

fn invalid_calls_are_refused<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    let item = |sort: &str| Item::new(key("ns/A", sort));
    let too_many: Vec<Write> = (0..=WRITES_MAX).map(|number| put(item(&number.to_string()))).collect();
    let place = |index, place| Write::Change(key("ns/A", "1"), vec![Change::Place(index, place)], vec![]);
    let bad = [
        too_many,
        vec![put(item("1")), Write::Delete(key("ns/A", "1"), vec![])],
        vec![put(Item::new(key("", "1")))],
        vec![put(item(""))],
        vec![Write::Check(key("ns/A", ""), vec![])],
        vec![place(Index::Namespace, key("ns", "1"))],
        vec![place(Index::Children, key("ns/P", ""))],
        vec![put(item("1").indexed(Index::Children, "a", "b").indexed(Index::Children, "a", "c"))],
        vec![put(item("1").with("set", Value::Set(BTreeSet::new())))],
    ];
    for writes in bad {
        assert!(is_bad_call(&store.write(&writes).wait()), "{:?}", writes.last());
    }
    assert!(is_bad_call(&store.get_many(&vec![key("ns/A", "1"); GETS_MAX + 1]).wait()));
    assert!(is_bad_call(&store.get_many(&[key("", "1")]).wait()));
    let query =
        Query { after: Some(tollgate_store::records::Cursor("made up".into())), ..Query::all("ns/A") };
    assert!(is_bad_call(&store.query(&query).wait()));
    assert!(is_bad_call(&store.find(Index::Children, &query).wait()));
    assert_eq!(query_all(&store, &Query::all("ns/A")), []);
}

fn the_largest_allowed_calls_succeed<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    let items: Vec<Item> =
        (0..WRITES_MAX).map(|number| Item::new(key("ns/A", &number.to_string()))).collect();
    write(&store, &items.iter().cloned().map(put).collect::<Vec<_>>());
    let keys: Vec<_> = items.iter().take(GETS_MAX).map(|item| item.key.clone()).collect();
    let found = store.get_many(&keys).wait().expect("the store answers");
    assert!(found.into_iter().eq(items.into_iter().take(GETS_MAX).map(Some)));
}

fn every_write_changes_the_revision<R: Records>(open: &impl Fn(Clock) -> R) {
    let store = open_at_start(open);
    let item = Item::new(key("ns/A", "1"));
    let mut revisions = vec![store.revision()];
    assert_eq!(store.revision(), revisions[0]);
    for write_once in [put(item.clone()), put(item.clone()), Write::Delete(item.key.clone(), vec![])] {
        write(&store, &[write_once]);
        revisions.push(store.revision());
    }
    let known: BTreeSet<u64> = revisions.iter().flatten().copied().collect();
    assert!(known.is_empty() || known.len() == revisions.len(), "{revisions:?}");
}
