//! Buckets that are forgotten, and usage that is counted, while others are at it.

use std::sync::Arc;

use loom::thread;
use tollgate_core::{Costs, Limit, Limits, Span, demand};
use tollgate_store::records::{Item, ItemKey, Records, Write};
use tollgate_store::usage::{Caller, Window, iso, usage_key};
use tollgate_store::{
    Backend, BucketRef, Key, ManualClock, Memory, Op, Scope, Step, Store, Transaction, TxnOutcome, WaitError,
    WaitRequest,
};

use crate::block_on::block_on;
use crate::check;
use crate::gate::START;

const BUCKET: Scope<'_> = Scope::Bucket("user", "api");

struct Shop {
    memory: Memory,
    limits: Limits,
    one: Costs,
    key: Key,
}

impl Shop {
    fn new(limit: tollgate_core::LimitBuilder) -> Arc<Shop> {
        let limits = Limits::new([limit]).unwrap();
        let one = limits.costs(&demand! { calls: 1 }).unwrap();
        let memory = Memory::builder().clock(ManualClock::at(START).clock()).build();
        Arc::new(Shop { memory, limits, one, key: Key::new(&["user", "api"]) })
    }

    fn place(&self) -> BucketRef<'_> {
        BucketRef { namespace: "shop", key: &self.key, limits: &self.limits }
    }

    fn take(&self) -> TxnOutcome {
        let steps = [Step { place: self.place(), op: Op::Take { costs: &self.one, term: None } }];
        self.memory.apply(&Transaction { id: None, steps: &steps, metered: true }).wait().unwrap()
    }

    fn used(&self) -> i64 {
        self.memory.write_usage("shop", BUCKET).wait().unwrap();
        let key = usage_key("shop", "user", "api", Window::Hour, &iso(Window::Hour.start(START)));
        self.memory.get_many(&[key]).wait().unwrap()[0]
            .as_ref()
            .and_then(|item| item.int("calls"))
            .unwrap_or(0)
    }
}

#[test]
fn what_a_bucket_says_is_what_is_counted_of_it_though_it_is_forgotten_meanwhile() {
    check(|| {
        let shop = Shop::new(Limit::per_day("calls", 10));
        let other = Arc::clone(&shop);
        let thread = thread::spawn(move || other.memory.forget("shop", BUCKET).wait().unwrap());
        assert!(matches!(shop.take(), TxnOutcome::Done(_)));
        let forgotten = thread.join().unwrap();
        let taken = 10 - shop.memory.peek(&shop.place()).wait().unwrap()[0].available();
        assert!(taken == 1 || forgotten == 1, "it is there unless it was forgotten");
        assert_eq!(shop.used(), taken);
    });
}

#[test]
fn who_has_a_bucket_at_hand_takes_from_it_or_finds_it_gone() {
    check(|| {
        let shop = Shop::new(Limit::per_day("calls", 10));
        shop.take();
        let pin = shop.memory.pin(&shop.place()).unwrap();
        let other = Arc::clone(&shop);
        let thread = thread::spawn(move || other.memory.forget("shop", BUCKET).wait().unwrap());
        match pin.cell.take_plain(shop.memory.clock(), &shop.one.small().unwrap()) {
            Some(at) => pin.count_take(at, &shop.limits, Caller::Own, shop.one.amounts()),
            None => assert!(pin.cell.is_removed()),
        }
        assert_eq!(thread.join().unwrap(), 1);
        assert!(pin.cell.is_removed());
        assert_eq!(shop.used(), 0, "nothing is counted of a bucket that is gone");
    });
}

#[test]
fn who_waits_for_a_bucket_that_is_forgotten_is_told() {
    check(|| {
        let shop = Shop::new(Limit::resource("calls", 1));
        shop.take();
        let cell = shop.memory.namespace("shop").find(&shop.key).unwrap();
        let other = Arc::clone(&shop);
        let thread = thread::spawn(move || other.memory.forget("shop", BUCKET).wait().unwrap());
        let waited = block_on(cell.acquire(shop.memory.clock(), WaitRequest::of(shop.one.clone())));
        assert_eq!(waited, Err(WaitError::Gone));
        assert_eq!((thread.join().unwrap(), cell.waiting()), (1, 0));
    });
}

#[test]
fn what_is_counted_at_hand_is_written_down_once() {
    check(|| {
        let shop = Shop::new(Limit::per_day("calls", 10));
        shop.take();
        let pin = shop.memory.pin(&shop.place()).unwrap();
        let other = Arc::clone(&shop);
        let thread = thread::spawn(move || other.memory.write_usage("shop", BUCKET).wait().unwrap());
        pin.count_take(START, &shop.limits, Caller::Own, shop.one.amounts());
        thread.join().unwrap();
        assert_eq!(shop.used(), 2);
    });
}

#[test]
fn a_call_with_writes_and_the_writing_down_of_usage_never_wait_for_each_other() {
    check(|| {
        let shop = Shop::new(Limit::per_day("calls", 10));
        shop.take();
        let other = Arc::clone(&shop);
        let thread = thread::spawn(move || other.memory.write_usage("shop", BUCKET).wait().unwrap());
        let steps = [Step { place: shop.place(), op: Op::Take { costs: &shop.one, term: None } }];
        let call = Transaction { id: None, steps: &steps, metered: true };
        let writes = [Write::Put(Item::new(ItemKey::new("shop/A", "1")), vec![])];
        assert!(matches!(shop.memory.apply_with(&call, &writes).wait(), Ok(TxnOutcome::Done(_))));
        thread.join().unwrap();
        assert_eq!(shop.used(), 2);
    });
}

#[test]
fn a_call_with_writes_and_a_count_that_turns_the_hour_never_wait_for_each_other() {
    check(|| {
        let shop = Shop::new(Limit::per_day("calls", 10));
        shop.take();
        let (pin, limits) = (shop.memory.pin(&shop.place()).unwrap(), shop.limits.clone());
        let one = shop.one.clone();
        let next_hour = START + Span::from_secs(3_600);
        let thread = thread::spawn(move || pin.count_take(next_hour, &limits, Caller::Own, one.amounts()));
        let steps = [Step { place: shop.place(), op: Op::Take { costs: &shop.one, term: None } }];
        let call = Transaction { id: None, steps: &steps, metered: true };
        let writes = [Write::Put(Item::new(ItemKey::new("shop/A", "1")), vec![])];
        assert!(matches!(shop.memory.apply_with(&call, &writes).wait(), Ok(TxnOutcome::Done(_))));
        thread.join().unwrap();
        assert_eq!(shop.used(), 2, "what was counted in the first hour is not counted in the second");
    });
}
