//! Many threads that take, give back, detach calls and drop replies: when all are gone, nothing is missing.

mod support;

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;

use support::{Folder, START, Tap, open_at};
use tollgate_core::Usage;
use tollgate_file::FileStore;
use tollgate_store::{
    Backend, ManualClock, Op, OpId, Priority, QueueKey, SplitMix64, Step, StepOutcome, Store, Transaction,
    TxnOutcome,
};

const THREADS: u64 = 6;
const CALLS: u64 = 300;

/// What one of the crowd does: as the numbers of its seed have it.
fn roam(store: &FileStore, seed: u64) {
    let mut random = SplitMix64::new(seed);
    let mut roll = |sides: u64| random.below(sides);
    for call in 0..CALLS {
        let taps = [Tap::new(store, &format!("user-{}", roll(3))), Tap::new(store, "all")];
        let costs = taps[0].costs(roll(20), roll(2));
        let take = |tap: usize| Step { place: taps[tap].place(), op: Op::Take { costs: &costs, term: None } };
        let steps = [take(0), take(1)];
        let id = (roll(3) == 0).then_some(OpId(u128::from(seed << 32 | call)));
        let mut reply = store.apply(&Transaction { id, steps: &steps, metered: false });
        let applied = match roll(4) {
            0 => match pin!(&mut reply).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(applied) => applied,
                // Walks away.
                Poll::Pending => continue,
            },
            _ => reply.wait(),
        };
        let TxnOutcome::Done(done) = applied.expect("the store answers") else { continue };
        let used = [0, 0];
        let settle = taps.iter().zip(&done).map(|(tap, done)| {
            let StepOutcome::Taken(taken) = done else { panic!("it was a take") };
            let usage = Usage { at: taken.at, reserved: &costs, used: &used, holder: None };
            Step { place: tap.place(), op: Op::Settle(usage) }
        });
        let settle: Vec<Step<'_>> = settle.collect();
        let call = Transaction { id: None, steps: &settle, metered: false };
        match roll(2) {
            0 => store.apply_detached(&call),
            _ => drop(store.apply(&call).wait().expect("the store answers")),
        }
    }
}

#[test]
fn when_all_are_gone_nothing_is_missing() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let stores = [open_at(&folder.file("x"), &hands), open_at(&folder.file("x"), &hands)];
    std::thread::scope(|scope| {
        for seed in 0..THREADS {
            let store = &stores[seed as usize % 2];
            scope.spawn(move || roam(store, seed + 1));
        }
    });
    // The detached calls of one store are seen by the other once the first is closed.
    drop(stores);
    let store = open_at(&folder.file("x"), &hands);
    for entity in ["user-0", "user-1", "user-2", "all"] {
        assert_eq!(Tap::new(&store, entity).left(), [100, 2], "{entity}");
    }
}

#[test]
fn one_who_waits_is_poked_by_whatever_gives_back() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let store = open_at(&folder.file("x"), &hands);
    let tap = Tap::new(&store, "user");
    let place = tap.place();
    let reserved = tap.costs(10, 1);
    let usage = || Usage { at: START, reserved: &reserved, used: &[0, 0], holder: None };
    let give_back: [fn(&FileStore, &Transaction<'_>); 2] = [
        |store, call| drop(store.apply(call).wait().expect("the store answers")),
        |store, call| store.apply_detached(call),
    ];
    for give_back in give_back {
        assert!(tap.take(10, 1));
        let mut guard = store.wait_queues().guard(store.clock(), Priority::default(), START);
        let queue = QueueKey { namespace: "tests".into(), bucket: place.key.clone(), limit: "slots".into() };
        guard.enqueue([queue], 10).unwrap();
        guard.clear_notification(10);
        let poll = |waker: &Waker| pin!(guard.notified(None)).poll(&mut Context::from_waker(waker));
        assert!(poll(Waker::noop()).is_pending());
        let steps = [Step { place, op: Op::Settle(usage()) }];
        give_back(&store, &Transaction { id: None, steps: &steps, metered: false });
        // Who looks next is served after it.
        assert_eq!(tap.left(), [100, 2]);
        while poll(Waker::noop()).is_pending() {}
    }
}

/// A caller that finds the executor busy leaves its call to the one that has it, so nothing else may ever have it.
#[test]
fn a_caller_is_served_while_other_files_are_opened_and_closed() {
    let folder = Folder::new();
    let store = FileStore::open(folder.file("x")).unwrap();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::SeqCst) {
                drop(FileStore::open(folder.file("y")).unwrap());
            }
        });
        for user in 0..2_000 {
            assert!(Tap::new(&store, &format!("user-{user}")).take(1, 0));
        }
        is_done.store(true, Ordering::SeqCst);
    });
}
