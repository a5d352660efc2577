//! The memory store: calls over several buckets, and calls that are sent twice.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use loom::thread;
use tollgate_core::{Costs, Limit, Limits, Usage, demand};
use tollgate_store::{
    BucketCell, BucketRef, Key, ManualClock, Memory, Op, OpId, Step, Store, Transaction, TxnOutcome,
    WaitRequest,
};

use crate::check;
use crate::gate::START;

struct Shop {
    memory: Memory,
    limits: Limits,
    one: Costs,
}

impl Shop {
    fn new() -> Shop {
        let limits = Limits::new([Limit::resource("slots", 1)]).unwrap();
        let one = limits.costs(&demand! {}).unwrap();
        let memory = Memory::builder().clock(ManualClock::at(START).clock()).build();
        Shop { memory, limits, one }
    }

    fn place<'a>(&'a self, key: &'a Key) -> BucketRef<'a> {
        BucketRef { namespace: "shop", key, limits: &self.limits }
    }

    fn take(&self, id: Option<OpId>, keys: &[Key]) -> TxnOutcome {
        let op = || Op::Take { costs: &self.one, term: None };
        let steps: Vec<Step<'_>> = keys.iter().map(|key| Step { place: self.place(key), op: op() }).collect();
        self.memory.apply(&Transaction { id, steps: &steps, metered: false }).wait().unwrap()
    }

    fn give_back(&self, id: Option<OpId>, keys: &[Key]) {
        let usage = || Usage { at: START, reserved: &self.one, used: &[0], holder: None };
        let steps: Vec<Step<'_>> =
            keys.iter().map(|key| Step { place: self.place(key), op: Op::Settle(usage()) }).collect();
        self.memory.apply(&Transaction { id, steps: &steps, metered: false }).wait().unwrap();
    }

    fn left(&self, key: &Key) -> i64 {
        self.memory.peek(&self.place(key)).wait().unwrap()[0].available()
    }
}

#[test]
fn two_copies_of_a_call_at_once_are_applied_once() {
    check(|| {
        let shop = Arc::new(Shop::new());
        let other = Arc::clone(&shop);
        let key = [Key::new(&["a"])];
        let thread = thread::spawn(move || other.take(Some(OpId(1)), &[Key::new(&["a"])]));
        let mine = shop.take(Some(OpId(1)), &key);
        let its = thread.join().unwrap();
        assert!(matches!(mine, TxnOutcome::Done(_)));
        assert_eq!(mine, its);
        assert_eq!(shop.left(&key[0]), 0);
    });
}

#[test]
fn calls_over_several_buckets_in_opposite_orders_never_deadlock() {
    check(|| {
        let shop = Arc::new(Shop::new());
        let (a, b) = (Key::new(&["a"]), Key::new(&["b"]));
        let (other, backwards) = (Arc::clone(&shop), [b.clone(), a.clone()]);
        let thread = thread::spawn(move || matches!(other.take(None, &backwards), TxnOutcome::Done(_)));
        let mine = matches!(shop.take(None, &[a.clone(), b.clone()]), TxnOutcome::Done(_));
        let its = thread.join().unwrap();
        assert!(mine != its, "mine: {mine}, its: {its}");
        assert_eq!([shop.left(&a), shop.left(&b)], [0, 0]);
    });
}

/// Looks at cells when it is woken, as an executor may that drops or runs a task right there.
struct Nosy {
    shop: Arc<Shop>,
    cells: Vec<Arc<BucketCell>>,
}

impl Wake for Nosy {
    fn wake(self: Arc<Self>) {
        self.cells.iter().for_each(|cell| assert_eq!(cell.waiting(), 0));
        self.shop.take(Some(OpId(9)), &[Key::new(&["c"])]);
    }
}

#[test]
fn a_waker_is_called_with_no_lock_held() {
    check(|| {
        let shop = Arc::new(Shop::new());
        let keys = ["a", "b"].map(|name| Key::new(&[name]));
        shop.take(None, &keys);
        let cells: Vec<Arc<BucketCell>> =
            keys.iter().map(|key| shop.memory.cell(&shop.place(key)).unwrap()).collect();
        let nosy = Waker::from(Arc::new(Nosy { shop: Arc::clone(&shop), cells: cells.clone() }));
        let clock = shop.memory.clock();
        let mut waits: Vec<_> = cells
            .iter()
            .map(|cell| Box::pin(cell.acquire(clock, WaitRequest::of(shop.one.clone()))))
            .collect();
        for wait in &mut waits {
            assert!(wait.as_mut().poll(&mut Context::from_waker(&nosy)).is_pending());
        }
        shop.give_back(Some(OpId(2)), &keys);
        assert_eq!(shop.left(&Key::new(&["c"])), 0, "nobody was woken");
    });
}
