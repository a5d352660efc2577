//! A process that ends before any of its writes to the memory: the next one finds the state before or the state after.

#![allow(clippy::unwrap_used, reason = "what panics here is a test")]

mod support;

use std::path::Path;
use std::sync::atomic::Ordering;

use support::fork::{Board, End, fork, one_at_a_time};
use support::{Folder, START, Tap, limits, open_at, queue};
use tollgate_core::{Limit, Limits, Span, Usage, demand};
use tollgate_shm::{ShmStore, failpoints};
use tollgate_store::records::{Change, Index, Item, ItemKey, Query, Records, Write};
use tollgate_store::{
    Backend, BucketRef, Key, LeaseTerm, ManualClock, Op, OpId, Priority, Scope, Step, Store, Transaction,
};

/// All that can be seen of a store.
#[derive(Debug, PartialEq)]
struct Seen {
    buckets: String,
    records: String,
    indexed: String,
    waiting: bool,
}

fn is_waited_for(store: &ShmStore) -> bool {
    store.wait_queues().ahead_of(&queue("user"), Priority::Batch, START).is_some()
}

fn seen(store: &ShmStore) -> Seen {
    let buckets = store.buckets("tests", Scope::All, None, 1_000).wait().unwrap();
    let of_resource = store.buckets("tests", Scope::Resource("gpt"), None, 1_000).wait().unwrap();
    let keys = store.find(Index::Namespace, &Query::all("tests")).wait().unwrap().items;
    let records: Vec<_> = keys.chunks(100).flat_map(|keys| store.get_many(keys).wait().unwrap()).collect();
    let indexes = [Index::Children, Index::Resource, Index::Custom];
    let places = ["tests/p", "tests/q", "tests/RESOURCE#gpt"];
    let places = indexes.iter().flat_map(|index| places.iter().map(move |place| (*index, *place)));
    let indexed = places.map(|(index, place)| store.find(index, &Query::all(place)).wait().unwrap());
    Seen {
        buckets: format!("{buckets:?} {of_resource:?}"),
        records: format!("{records:?}"),
        indexed: format!("{:?}", indexed.collect::<Vec<_>>()),
        waiting: is_waited_for(store),
    }
}

/// Lets `work` end before each of its writes in turn, on a store that `prepare` has prepared; answers how many there are.
fn at_every_write(prepare: impl Fn(&ShmStore, &ManualClock), work: impl Fn(&ShmStore)) -> u64 {
    let (folder, hands, board) = (Folder::new(), ManualClock::at(START), Board::new(1));
    let open = |name: &str| {
        let store = ShmStore::builder(name).folder(folder.path()).clock(hands.clock()).build();
        store.expect("whatever was left can be opened")
    };
    let template = open("template");
    prepare(&template, &hands);
    let path = template.path().to_path_buf();
    drop(template);
    let copy = |name: &str| {
        let to = Path::new(&path)
            .with_file_name(path.file_name().unwrap().to_str().unwrap().replace("template", name));
        std::fs::copy(&path, &to).unwrap();
        to
    };
    copy("whole");
    let whole = open("whole");
    let before = seen(&whole);
    let counted = fork(|| {
        failpoints::arm(0);
        work(&whole);
        board[0].store(failpoints::passed(), Ordering::Relaxed);
    });
    assert_eq!(counted.end(), End::Code(0));
    let (after, writes) = (seen(&whole), board[0].load(Ordering::Relaxed));
    whole.check().unwrap();
    assert_ne!(before, after, "nothing was done");
    let (mut were_before, mut were_after) = (0, 0);
    for write in 1..=writes {
        let copied = copy("torn");
        let victim = fork(|| {
            let store = open("torn");
            failpoints::arm(write);
            work(&store);
        });
        assert_eq!(victim.end(), End::Signal(libc::SIGABRT), "write {write} of {writes}");
        let torn = open("torn");
        torn.check().unwrap_or_else(|why| panic!("write {write} of {writes}: {why}"));
        let found = seen(&torn);
        were_before += u32::from(found == before);
        were_after += u32::from(found == after);
        assert!(
            found == before || found == after,
            "write {write} of {writes}: {found:#?}\n{before:#?}\n{after:#?}"
        );
        // And it goes on from there.
        assert!(Tap::new(&torn, "somebody else").take(1, 0));
        torn.check().unwrap();
        std::fs::remove_file(copied).unwrap();
    }
    assert!(were_before > 0, "the first write is never the commit");
    assert_eq!(were_before + were_after, writes as u32);
    writes
}

fn nothing(_: &ShmStore, _: &ManualClock) {}

fn used(store: &ShmStore, _: &ManualClock) {
    assert!(Tap::new(store, "user").take(40, 1));
    assert!(Tap::new(store, "other").take(1, 1));
}

#[test]
fn a_take_of_a_new_bucket_is_made_whole_or_not_at_all() {
    let _alone = one_at_a_time();
    assert!(at_every_write(nothing, |store| assert!(Tap::new(store, "user").take(10, 1))) > 30);
}

#[test]
fn a_take_and_a_settlement_are_each_whole_or_not_at_all() {
    let _alone = one_at_a_time();
    at_every_write(used, |store| assert!(Tap::new(store, "user").take(10, 1)));
    at_every_write(used, |store| Tap::new(store, "user").give_back(START, 30, 1));
}

#[test]
fn a_take_of_several_buckets_with_a_holder_usage_an_id_and_records_is_one() {
    let _alone = one_at_a_time();
    let work = |store: &ShmStore| {
        let (limits, keys) = (limits(), ["user", "new"].map(|entity| Key::new(&[entity, "gpt"])));
        let costs = limits.costs(&demand! { tpm: 5, slots: 1 }).unwrap();
        let term = Some(LeaseTerm { holder: 7, ttl: Span::from_secs(60) });
        let steps = keys.each_ref().map(|key| {
            let place = BucketRef { namespace: "tests", key, limits: &limits };
            Step { place, op: Op::Take { costs: &costs, term } }
        });
        let call = Transaction { id: Some(OpId(1)), steps: &steps, metered: true };
        let writes = [Write::Put(Item::new(ItemKey::new("tests/a", "b")).with("x", 1), Vec::new())];
        store.apply_with(&call, &writes).wait().unwrap();
    };
    let writes = at_every_write(used, work);
    assert!(writes > 100, "{writes}");
    // Once it is made, it is not made again.
    at_every_write(used, |store| {
        work(store);
        let once = seen(store);
        work(store);
        assert_eq!(seen(store), once);
    });
}

#[test]
fn records_and_their_places_change_together() {
    let _alone = one_at_a_time();
    let item = |sort: &str, size: usize| {
        let item = Item::new(ItemKey::new("tests/p", sort)).with("text", "x".repeat(size));
        item.indexed(Index::Children, "tests/p", sort).indexed(Index::Custom, "tests/q", "same")
    };
    let prepare = |store: &ShmStore, _: &ManualClock| {
        let items = ["a", "b", "c", "d"].map(|sort| Write::Put(item(sort, 20), Vec::new()));
        store.write(&items).wait().unwrap();
    };
    at_every_write(prepare, |store| {
        let key = |sort: &str| ItemKey::new("tests/p", sort);
        let moved = Change::Place(Index::Children, ItemKey::new("tests/q", "b"));
        let writes = [
            Write::Put(item("a", 500), Vec::new()),
            Write::Change(
                key("b"),
                vec![moved, Change::Expire(Some(START + Span::from_secs(9)))],
                Vec::new(),
            ),
            Write::Delete(key("c"), Vec::new()),
            Write::Put(item("e", 3), Vec::new()),
        ];
        store.write(&writes).wait().unwrap();
    });
}

#[test]
fn a_record_that_has_expired_is_dropped_whole() {
    let _alone = one_at_a_time();
    let prepare = |store: &ShmStore, hands: &ManualClock| {
        let mut item = Item::new(ItemKey::new("tests/p", "old")).indexed(Index::Children, "tests/p", "old");
        item.expires = Some(START + Span::from_secs(1));
        store.write(&[Write::Put(item, Vec::new())]).wait().unwrap();
        hands.set(START + Span::from_secs(2));
    };
    at_every_write(prepare, |store| {
        let new = Item::new(ItemKey::new("tests/p", "new"));
        store.write(&[Write::Put(new, Vec::new())]).wait().unwrap();
    });
}

#[test]
fn the_file_and_the_table_grow_whole_or_not_at_all() {
    let _alone = one_at_a_time();
    // As many as chains are there at first: the next bucket splits one, and makes a segment for it.
    let fill = |store: &ShmStore, _: &ManualClock| {
        (0..64).for_each(|user| assert!(Tap::new(store, &format!("user-{user}")).take(1, 0)));
    };
    at_every_write(fill, |store| assert!(Tap::new(store, "one more").take(1, 0)));
    // More than a new file has room for.
    let large = |sort: &str, bytes: usize| {
        let item = Item::new(ItemKey::new("tests/p", sort)).with("text", "x".repeat(bytes));
        [Write::Put(item, Vec::new())]
    };
    let length = |store: &ShmStore| std::fs::metadata(store.path()).unwrap().len();
    let fill_one = |store: &ShmStore, n: u32| store.write(&large(&format!("{n}"), 1_000)).wait().unwrap();
    let folder = Folder::new();
    let store = open_at(folder.path(), &ManualClock::at(START));
    let new = length(&store);
    // How many fit, one less because some need a little more than others.
    let fit = (0..).find(|n| {
        fill_one(&store, *n);
        length(&store) > new
    });
    let fit = fit.unwrap() - 1;
    at_every_write(
        |store, _| {
            (0..fit).for_each(|n| fill_one(store, n));
            assert_eq!(length(store), new);
        },
        |store| {
            let full = length(store);
            store.write(&large("last", 5_000)).wait().unwrap();
            assert!(length(store) > full);
        },
    );
    // More limits than the bucket had when it was made.
    at_every_write(used, |store| {
        let limits = Limits::new((0..12).map(|n| Limit::per_minute(format!("limit-{n}"), 100))).unwrap();
        let costs = limits.costs(&demand! { "limit-3": 5 }).unwrap();
        let place = BucketRef { namespace: "tests", key: &Key::new(&["user", "gpt"]), limits: &limits };
        let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
        store.apply(&Transaction { id: None, steps: &steps, metered: true }).wait().unwrap();
    });
}

#[test]
fn a_sweep_forgets_a_bucket_whole_and_writes_its_usage_with_it() {
    let _alone = one_at_a_time();
    let idle = |store: &ShmStore| store.buckets("tests", Scope::All, None, 1_000).wait().unwrap().items.len();
    let prepare = |store: &ShmStore, hands: &ManualClock| {
        for user in 0..100 {
            let tap = Tap::new(store, &format!("idle-{user}"));
            let costs = tap.costs(5, 0);
            let steps = [Step { place: tap.place(), op: Op::Take { costs: &costs, term: None } }];
            store.apply(&Transaction { id: None, steps: &steps, metered: true }).wait().unwrap();
        }
        // Full again, and idle for long.
        hands.set(START + Span::from_secs(8_000));
    };
    at_every_write(prepare, |store| {
        let (limits, keys) = (limits(), (0..).map(|n| Key::new(&[&format!("new-{n}"), "gpt"])));
        let costs = limits.costs(&demand! { tpm: 1, slots: 0 }).unwrap();
        for key in keys {
            let place = BucketRef { namespace: "elsewhere", key: &key, limits: &limits };
            let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
            store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait().unwrap();
            // The chain that is looked at next may be empty.
            if idle(store) < 100 {
                return;
            }
        }
    });
}

#[test]
fn forgetting_writing_usage_and_closing_are_whole_or_not_at_all() {
    let _alone = one_at_a_time();
    let prepare = |store: &ShmStore, hands: &ManualClock| {
        used(store, hands);
        let tap = Tap::new(store, "user");
        let costs = tap.costs(5, 0);
        let steps = [Step { place: tap.place(), op: Op::Take { costs: &costs, term: None } }];
        store.apply(&Transaction { id: None, steps: &steps, metered: true }).wait().unwrap();
    };
    at_every_write(prepare, |store| assert_eq!(store.forget("tests", Scope::All).wait(), Ok(2)));
    at_every_write(prepare, |store| store.write_usage("tests", Scope::All).wait().unwrap());
}

#[test]
fn a_process_that_ends_while_it_joins_or_leaves_a_queue_is_in_it_no_more() {
    let _alone = one_at_a_time();
    let (folder, hands, board) = (Folder::new(), ManualClock::at(START), Board::new(1));
    let store = open_at(folder.path(), &hands);
    assert!(Tap::new(&store, "user").take(100, 2));
    let wait = |store: &ShmStore| {
        let mut guard = store.wait_queues().guard(store.clock(), Priority::default(), START);
        guard.enqueue([queue("user")], 10).unwrap();
    };
    let counted = fork(|| {
        failpoints::arm(0);
        wait(&store);
        board[0].store(failpoints::passed(), Ordering::Relaxed);
    });
    assert_eq!(counted.end(), End::Code(0));
    let writes = board[0].load(Ordering::Relaxed);
    assert!(writes > 20, "{writes}");
    for write in 1..=writes {
        let victim = fork(|| {
            failpoints::arm(write);
            wait(&store);
        });
        // The thread that waits for the bell writes as well, now and then, so the last ones may come too late.
        assert!(matches!(victim.end(), End::Signal(libc::SIGABRT) | End::Code(0)));
        // A heartbeat counts for a moment longer than its process.
        while is_waited_for(&store) {
            std::thread::yield_now();
        }
        store.check().unwrap();
    }
    Tap::new(&store, "user")
        .apply(Op::Settle(Usage {
            at: START,
            reserved: &Tap::new(&store, "user").costs(100, 2),
            used: &[0, 0],
            holder: None,
        }))
        .unwrap();
    assert!(Tap::new(&store, "user").take(100, 2));
}
