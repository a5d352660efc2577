//! Buckets and records change together or not at all.

use std::sync::atomic::{AtomicUsize, Ordering};

use tollgate_core::Limits;
use tollgate_store::records::{Change, Item, ItemKey, RecordsError, Test, Write};
use tollgate_store::{Backend, BucketRef, Clock, Key, Op, OpId, Step, StoreError, Transaction, TxnOutcome};

use super::{BackendFixture, BucketName, get, is_done};

const NAME: BucketName<'_> = BucketName("together", "user", "api");

pub(super) fn run<B: Backend>(open: &impl Fn(Clock) -> B) {
    a_call_and_its_writes_are_applied_together(open);
    the_writes_of_a_denied_call_are_not_made(open);
    the_writes_of_a_stale_call_are_not_made(open);
    a_call_whose_write_fails_its_test_is_not_applied(open);
    a_call_with_an_invalid_write_is_not_applied(open);
    a_call_that_is_sent_again_writes_once(open);
    as_many_calls_are_admitted_as_are_written(open);
}

fn record() -> ItemKey {
    ItemKey::new("together/A", "record")
}

fn count_up(tests: Vec<Test>) -> Write {
    Write::Change(record(), vec![Change::Add("n".into(), 1)], tests)
}

fn counted<B: Backend>(fixture: &BackendFixture<B>) -> Option<i64> {
    get(&fixture.store, &record()).and_then(|item| item.int("n"))
}

fn a_call_and_its_writes_are_applied_together<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let take = Op::Take { costs: &fixture.costs(100), term: None };
    assert!(is_done(&fixture.apply_with(NAME, take, &[count_up(vec![])])));
    assert_eq!((fixture.left(NAME), counted(&fixture)), ([900, 3], Some(1)));
    let put = Write::Put(Item::new(record()).with("n", 9), vec![Test::Exists]);
    assert!(is_done(&fixture.apply_with(NAME, Op::Reset, &[put])));
    assert_eq!((fixture.left(NAME), counted(&fixture)), ([1_000, 4], Some(9)));
}

fn the_writes_of_a_denied_call_are_not_made<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    fixture.take(NAME, 950);
    let denied =
        fixture.apply_with(NAME, Op::Take { costs: &fixture.costs(100), term: None }, &[count_up(vec![])]);
    assert!(matches!(denied, Ok(TxnOutcome::Denied(_))), "{denied:?}");
    assert_eq!((fixture.left(NAME), counted(&fixture)), ([50, 3], None));
}

fn the_writes_of_a_stale_call_are_not_made<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let at_version = |version| fixture.limits.clone().at_version(version);
    let costs = fixture.costs(100);
    let take = |limits: &Limits, writes: &[Write]| {
        fixture.apply_under(limits, NAME, Op::Take { costs: &costs, term: None }, writes)
    };
    assert!(is_done(&take(&at_version(2), &[])));
    assert_eq!(take(&at_version(1), &[count_up(vec![])]), Ok(TxnOutcome::Stale(0)));
    assert_eq!((fixture.left(NAME), counted(&fixture)), ([900, 3], None));
}

fn a_call_whose_write_fails_its_test_is_not_applied<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let at = fixture.take(NAME, 100);
    let costs = fixture.costs(100);
    let other = Write::Put(Item::new(ItemKey::new("together/A", "other")), vec![]);
    let writes = [other, count_up(vec![Test::Exists])];
    let usage = tollgate_core::Usage { at, reserved: &costs, used: &[0, 0], holder: None };
    let take = Op::Take { costs: &costs, term: None };
    for op in [take, Op::SettleExisting(usage), Op::TopUp(&costs), Op::Reset] {
        assert_eq!(fixture.apply_with(NAME, op, &writes), Err(RecordsError::Failed(1)));
        assert_eq!((fixture.left(NAME), counted(&fixture)), ([900, 3], None));
    }
    assert_eq!(get(&fixture.store, writes[0].key()), None);
    // The call made no bucket either: it would be under later limits than these.
    let new = BucketName("together", "new", "api");
    let (old, later) = (fixture.limits.clone().at_version(1), fixture.limits.clone().at_version(2));
    let take = || Op::Take { costs: &costs, term: None };
    assert_eq!(fixture.apply_under(&later, new, take(), &writes), Err(RecordsError::Failed(1)));
    assert!(is_done(&fixture.apply_under(&old, new, take(), &[])));
}

fn a_call_with_an_invalid_write_is_not_applied<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let twice = [count_up(vec![]), count_up(vec![])];
    let refused = fixture.apply_with(NAME, Op::Take { costs: &fixture.costs(100), term: None }, &twice);
    assert!(matches!(refused, Err(RecordsError::Store(StoreError::BadCall(_)))), "{refused:?}");
    assert_eq!((fixture.left(NAME), counted(&fixture)), ([1_000, 4], None));
}

fn a_call_that_is_sent_again_writes_once<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let (key, costs) = (Key::new(&["user", "api"]), fixture.costs(100));
    let place = BucketRef { namespace: "together", key: &key, limits: &fixture.limits };
    let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
    let call = Transaction { id: Some(OpId(77)), steps: &steps, metered: true };
    // The test holds only the first time, which is no concern of a copy of the call.
    let writes = [count_up(vec![Test::Absent])];
    let first = fixture.store.apply_with(&call, &writes).wait();
    assert!(is_done(&first));
    assert_eq!(fixture.store.apply_with(&call, &writes).wait(), first);
    assert_eq!((fixture.left(NAME), counted(&fixture)), ([900, 3], Some(1)));
}

fn as_many_calls_are_admitted_as_are_written<B: Backend>(open: &impl Fn(Clock) -> B) {
    const THREADS: usize = 8;
    let fixture = BackendFixture::open(open);
    let admitted = AtomicUsize::new(0);
    let (store, limits) = (&fixture.store, &fixture.limits);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let (key, costs) = (Key::new(&["user", "api"]), super::costs(limits, 300));
                let place = BucketRef { namespace: "together", key: &key, limits };
                let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
                let call = Transaction { id: None, steps: &steps, metered: true };
                let writes = [count_up(vec![Test::AtMost("n".into(), 1)])];
                match store.apply_with(&call, &writes).wait() {
                    Ok(TxnOutcome::Done(_)) => admitted.fetch_add(1, Ordering::SeqCst),
                    Ok(TxnOutcome::Denied(_)) | Err(RecordsError::Failed(0)) => 0,
                    other => panic!("{other:?}"),
                };
            });
        }
    });
    // The bucket has capacity for three, and the record admits two.
    assert_eq!((admitted.into_inner(), counted(&fixture), fixture.left(NAME)), (2, Some(2), [400, 2]));
}
