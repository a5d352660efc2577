//! What is in the file is there again when it is opened again.

mod support;

use std::time::Duration;

use support::{Folder, START, Tap, open_at};
use tollgate_core::{Calendar, Edges, Limit, Limits, Span, Tick, Unit, demand};
use tollgate_file::FileStore;
use tollgate_store::records::{Index, Item, ItemKey, Query, Records, Write};
use tollgate_store::{
    Backend, BucketRef, Key, LeaseTerm, ManualClock, Op, OpId, Scope, Step, Store, StoreError, Transaction,
    TxnOutcome,
};

#[test]
fn buckets_holders_and_remembered_calls_are_found_again() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let file = folder.file("x");
    let (limits, key) = (support::limits(), Key::new(&["user", "gpt"]));
    let costs = limits.costs(&demand! { tpm: 20, slots: 0 }).unwrap();
    let place = BucketRef { namespace: "tests", key: &key, limits: &limits };
    let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
    let call = Transaction { id: Some(OpId(5)), steps: &steps, metered: false };
    let first = {
        let store = open_at(&file, &hands);
        let term = LeaseTerm { holder: 7, ttl: Span::from_secs(3_600) };
        assert!(Tap::new(&store, "user").try_take(30, 2, Some(term)).unwrap());
        store.apply(&call).wait().unwrap()
    };
    let store = open_at(&file, &hands);
    let tap = Tap::new(&store, "user");
    assert_eq!(tap.left(), [50, 0]);
    assert_eq!(store.apply(&call).wait().unwrap(), first, "it is remembered and not applied again");
    assert_eq!(tap.left(), [50, 0]);
    hands.advance(Span::from_secs(3_600));
    assert_eq!(tap.left(), [100, 2], "the holder has expired");
}

#[test]
fn records_and_closed_namespaces_are_found_again() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let file = folder.file("x");
    let item = Item::new(ItemKey::new("tests/ENTITY#a", "#META")).with("name", "A").indexed(
        Index::Children,
        "tests/p",
        "a",
    );
    {
        let store = open_at(&file, &hands);
        store.write(&[Write::Put(item.clone(), Vec::new())]).wait().unwrap();
        store.close("gone").wait().unwrap();
    }
    let store = open_at(&file, &hands);
    let found = store.get_many(std::slice::from_ref(&item.key)).wait().unwrap();
    assert_eq!(found, [Some(item.clone())]);
    assert_eq!(store.find(Index::Children, &Query::all("tests/p")).wait().unwrap().items, [item.key]);
    let tap = Tap::new(&store, "user");
    let costs = tap.costs(1, 0);
    let steps = [Step {
        place: BucketRef { namespace: "gone", ..tap.place() },
        op: Op::Take { costs: &costs, term: None },
    }];
    let refused = store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait();
    assert_eq!(refused, Err(StoreError::NamespaceGone("gone".into())));
}

#[test]
fn limits_of_every_kind_are_read_again_by_who_does_not_know_them() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let file = folder.file("x");
    let limits = [
        Limit::per_minute("rpm", 100).burst(20),
        Limit::fixed_window("fixed", 10, Duration::from_secs(60)),
        Limit::sliding_window("sliding", 10, Duration::from_secs(60)).resolution(Duration::from_millis(1)),
        Limit::calls(50, Duration::from_secs(1)),
        Limit::resource("slots", 3).shadow(),
        Limit::quota("session", 10, Duration::from_secs(60)).soft(5),
        Limit::quota("spend", 5_000_000, tollgate_calendar::daily("Europe/Berlin").unwrap())
            .unit(Unit::new("USD", 6).unwrap()),
    ];
    let limits = Limits::new(limits).unwrap().at_version(3);
    let key = Key::new(&["user", "gpt"]);
    let place = BucketRef { namespace: "tests", key: &key, limits: &limits };
    let told = {
        let store = open_at(&file, &hands);
        let wanted = demand! { rpm: 1, fixed: 2, sliding: 3, slots: 5, session: 6, spend: 7 };
        let costs = limits.costs(&wanted).unwrap();
        let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
        let applied = store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait().unwrap();
        let TxnOutcome::Done(done) = applied else { panic!("{applied:?}") };
        assert!(matches!(done[0], tollgate_store::StepOutcome::Taken(taken) if taken.warnings == 0b011_0000));
        store.peek(&place).wait().unwrap()
    };
    let store = open_at(&file, &hands);
    let page = store.buckets("tests", Scope::All, None, 10).wait().unwrap();
    assert_eq!(page.items.len(), 1);
    assert_eq!(page.items[0].limits, told);
}

struct Hourly;

impl Edges for Hourly {
    fn next_edge(&self, after: Tick) -> Option<Tick> {
        Some(Tick::from_micros((after.as_micros() / 3_600_000_000 + 1) * 3_600_000_000))
    }
}

#[test]
fn a_calendar_that_only_its_owner_knows_is_known_when_the_owner_comes() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let file = folder.file("x");
    let limits = || Limits::new([Limit::quota("spend", 10, Calendar::new("by the moon", Hourly))]).unwrap();
    let key = Key::new(&["user", "gpt"]);
    for left in [9, 8] {
        let (store, limits) = (open_at(&file, &hands), limits());
        let place = BucketRef { namespace: "tests", key: &key, limits: &limits };
        let costs = limits.costs(&demand! { spend: 1 }).unwrap();
        let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
        store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait().unwrap();
        assert_eq!(store.peek(&place).wait().unwrap()[0].available(), left);
    }
    let stranger = open_at(&file, &hands).buckets("tests", Scope::All, None, 10).wait();
    let Err(StoreError::Refused(why)) = stranger else { panic!("{stranger:?}") };
    assert!(why.contains("by the moon"), "{why}");
}

#[test]
fn a_store_that_is_closed_leaves_one_file() {
    let folder = Folder::new();
    let store = FileStore::open(folder.file("x")).unwrap();
    assert!(Tap::new(&store, "user").take(1, 0));
    drop(store);
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["x"]);
}

#[cfg(unix)]
#[test]
fn a_new_file_is_nobody_else_s_to_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let _store = FileStore::open(folder.file("x")).unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{:?}", entry.file_name());
    }
}

/// Who is killed, or has no room left, while the log is written into the file leaves a file that only the log makes whole.
#[test]
fn a_file_that_is_torn_without_its_log_is_whole_with_it() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let (file, copy) = (folder.file("x"), folder.file("copy"));
    let store = open_at(&file, &hands);
    for number in 0..200 {
        assert!(Tap::new(&store, &format!("user-{number}")).try_take(30, 0, None).unwrap());
    }
    for suffix in ["", "-wal"] {
        let from = format!("{}{suffix}", file.display());
        std::fs::copy(from, format!("{}{suffix}", copy.display())).unwrap();
    }
    let mut bytes = std::fs::read(&copy).unwrap();
    // The head of the file says that there are more pages than there are: the rest was about to come.
    let pages = u32::try_from(bytes.len() / 4_096).unwrap() + 20;
    bytes[28..32].copy_from_slice(&pages.to_be_bytes());
    std::fs::write(&copy, bytes).unwrap();
    let torn = open_at(&copy, &hands);
    assert_eq!(torn.check().wait(), Ok(()));
    assert_eq!(Tap::new(&torn, "user-199").left(), [70, 2]);
}

#[test]
fn a_timeout_may_be_longer_than_sqlite_can_count() {
    let folder = Folder::new();
    for (name, timeout) in [("days", Duration::from_secs(25 * 86_400)), ("ever", Duration::MAX)] {
        let store = FileStore::builder(folder.file(name)).timeout(timeout).build().expect("it can be opened");
        assert!(Tap::new(&store, "user").take(1, 0));
    }
}
