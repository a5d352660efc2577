//! A file that can grow no more: everything is refused whole, and goes on when there is room.

mod support;

use support::{Folder, START, Tap, limits};
use tollgate_core::{Usage, demand};
use tollgate_file::FileStore;
use tollgate_store::records::{Item, ItemKey, Records, RecordsError, Write};
use tollgate_store::{Backend, BucketRef, Key, ManualClock, Op, Scope, Step, Store, StoreError, Transaction};

const BYTES_MAX: u64 = 300_000;

fn small(folder: &Folder, hands: &ManualClock) -> FileStore {
    FileStore::builder(folder.file("x"))
        .clock(hands.clock())
        .bytes_max(BYTES_MAX)
        .build()
        .expect("it can be made")
}

/// Takes from one new bucket after another, until there is no room for one.
fn fill(store: &FileStore) -> (usize, StoreError) {
    for user in 0..100_000 {
        match Tap::new(store, &format!("a user with a name that is long enough to fill pages {user}"))
            .try_take(1, 0, None)
        {
            Ok(taken) => assert!(taken),
            Err(why) => return (user, why),
        }
    }
    panic!("it never becomes full");
}

#[test]
fn a_full_file_says_so_and_goes_on_when_there_is_room() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let store = small(&folder, &hands);
    let (made, why) = fill(&store);
    let StoreError::Unavailable(_, text) = &why else { panic!("{why}") };
    assert!(text.contains("no room"), "{text}");
    assert!(
        why.to_string().starts_with("the store cannot be used just now: "),
        "nothing was waited for: {why}"
    );
    assert!(made > 100, "{made}");
    let tap = Tap::new(&store, "a user with a name that is long enough to fill pages 0");
    assert!(tap.take(1, 0), "a bucket that is there needs no more room");
    assert_eq!(tap.left(), [98, 2]);

    let forgotten = store.forget("tests", Scope::All).wait().unwrap();
    assert!(forgotten > 100);
    assert!(Tap::new(&store, "newcomer").take(1, 0));
    assert!(std::fs::metadata(folder.file("x")).unwrap().len() <= BYTES_MAX);
}

#[test]
fn a_call_for_which_there_is_no_room_leaves_nothing_behind() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let store = small(&folder, &hands);
    fill(&store);
    let tap = Tap::new(&store, "a user with a name that is long enough to fill pages 0");
    let big = Item::new(ItemKey::new("tests/ENTITY#a", "#META")).with("text", "x".repeat(100_000));
    let (costs, writes) = (tap.costs(10, 0), [Write::Put(big.clone(), Vec::new())]);
    let steps = [Step { place: tap.place(), op: Op::Take { costs: &costs, term: None } }];
    let call = Transaction { id: None, steps: &steps, metered: false };
    let refused = store.apply_with(&call, &writes).wait();
    assert!(matches!(refused, Err(RecordsError::Store(StoreError::Unavailable(..)))), "{refused:?}");
    assert_eq!(tap.left(), [99, 2]);
    assert_eq!(store.get_many(&[big.key]).wait().unwrap(), [None]);
}

#[test]
fn what_was_handed_over_while_it_was_full_is_done_once_there_is_room() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let store = small(&folder, &hands);
    fill(&store);
    // What was used beyond what was taken of a bucket that is gone: it has to be made.
    let (limits, key) = (limits(), Key::new(&["x".repeat(5_000), "gpt".into()]));
    let reserved = limits.costs(&demand! { tpm: 0, slots: 0 }).unwrap();
    let place = BucketRef { namespace: "tests", key: &key, limits: &limits };
    let usage = Usage { at: START, reserved: &reserved, used: &[40, 0], holder: None };
    let steps = [Step { place, op: Op::Settle(usage) }];
    store.apply_detached(&Transaction { id: None, steps: &steps, metered: false });
    let tap = Tap::new(&store, "a user with a name that is long enough to fill pages 0");
    assert!(tap.take(1, 0), "who needs no room is not held up");
    store.forget("tests", Scope::Resource("gpt")).wait().unwrap();
    // Now there is room. What is left to do is done before it is closed, if it was not by then.
    drop(store);
    let left = small(&folder, &hands).peek(&place).wait().unwrap();
    assert_eq!(left[0].available(), 60);
}
