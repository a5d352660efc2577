//! Several cells taken together.

use std::sync::Arc;

use loom::sync::Mutex;
use loom::thread;
use tollgate_core::{Costs, Limit, Limits, Usage, demand};
use tollgate_store::{BucketCell, CellChain, Clock, Key, ManualClock, Priority};

use crate::gate::START;
use crate::{check, must_fail};

struct Pair {
    clock: Clock,
    limits: Limits,
    one: Costs,
    a: Arc<BucketCell>,
    b: Arc<BucketCell>,
}

impl Pair {
    fn new(of_a: u64, of_b: u64) -> Pair {
        let limits = |capacity| Limits::new([Limit::resource("slots", capacity)]).unwrap();
        let cell = |name, capacity| BucketCell::new(Key::new(&[name]), limits(capacity), START);
        let one = limits(1).costs(&demand! {}).unwrap();
        let clock = ManualClock::at(START).clock();
        Pair { clock, one, limits: limits(1), a: cell("a", of_a), b: cell("b", of_b) }
    }

    fn chain(&self, order: [&Arc<BucketCell>; 2]) -> CellChain {
        CellChain::new(order.map(Arc::clone).into()).unwrap()
    }

    fn take(&self, chain: &CellChain) -> bool {
        chain.try_take(&self.clock, &[&self.one, &self.one], None, Priority::default()).is_ok()
    }

    fn give_back(&self, chain: &CellChain) {
        let usage = || Usage { at: START, reserved: &self.one, used: &[0], holder: None };
        let limits = [self.limits.clone(), self.limits.clone()];
        chain.settle(&self.clock, &limits, &[usage(), usage()]);
    }

    fn left(&self) -> [i64; 2] {
        [&self.a, &self.b].map(|cell| cell.peek(&self.clock)[0].available())
    }
}

#[test]
fn chains_in_opposite_orders_never_deadlock_and_lose_nothing() {
    check(|| {
        let pair = Arc::new(Pair::new(1, 1));
        let run = |pair: Arc<Pair>, chain: CellChain| {
            let taken = pair.take(&chain);
            if taken {
                pair.give_back(&chain);
            }
            taken
        };
        let (other, backwards) = (Arc::clone(&pair), pair.chain([&pair.b, &pair.a]));
        let thread = thread::spawn(move || run(other, backwards));
        let mine = run(Arc::clone(&pair), pair.chain([&pair.a, &pair.b]));
        let its = thread.join().unwrap();
        assert!(mine || its, "one of the two finds both free");
        assert_eq!(pair.left(), [1, 1]);
    });
}

#[test]
fn a_chain_is_taken_whole_or_not_at_all() {
    check(|| {
        // Only one of the two chains fits b; the one that does not leaves a alone.
        let pair = Arc::new(Pair::new(2, 1));
        let (other, backwards) = (Arc::clone(&pair), pair.chain([&pair.b, &pair.a]));
        let thread = thread::spawn(move || other.take(&backwards));
        let mine = pair.take(&pair.chain([&pair.a, &pair.b]));
        let its = thread.join().unwrap();
        assert!(mine != its, "mine: {mine}, its: {its}");
        assert_eq!(pair.left(), [1, 0]);
    });
}

/// Two threads take both of two places, each from its own end.
fn both_from_either_end(sorted: bool) -> impl Fn() + Send + Sync {
    move || {
        let places = Arc::new([Mutex::new(1), Mutex::new(1)]);
        let run = move |places: Arc<[Mutex<u64>; 2]>, order: [usize; 2]| {
            let order = if sorted { [0, 1] } else { order };
            let mut locked = order.map(|index| places[index].lock().unwrap());
            locked.iter_mut().for_each(|place| **place = 0);
        };
        let other = Arc::clone(&places);
        let thread = thread::spawn(move || run(other, [1, 0]));
        run(places, [0, 1]);
        thread.join().unwrap();
    }
}

#[test]
fn locking_in_the_order_of_the_chain_is_noticed() {
    check(both_from_either_end(true));
    must_fail("a circle of locks", both_from_either_end(false));
}
