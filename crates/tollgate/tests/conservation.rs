//! Nothing is lost and nothing is minted, whatever many threads do to one set at once.

mod support;

use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use support::{available, builder, hands, poll, try_take};
use tollgate::store::SplitMix64;
use tollgate::{AcquireError, Lease, Limit, LimitSet, Priority, demand};

const CAPACITY: i64 = 900_000_000_000_000;
const SLOTS: i64 = 4;
const THREADS: u64 = 8;
const STEPS: u64 = 1_500;

struct World {
    set: LimitSet,
    /// What was used in the end, by those who used it.
    used: AtomicI64,
    /// How many hold a slot, by those who hold one.
    held: AtomicI64,
}

#[test]
fn what_threads_take_wait_for_drop_settle_and_cancel_adds_up() {
    let limits =
        || [Limit::quota("tokens", CAPACITY, Duration::from_secs(60)), Limit::resource("slots", SLOTS)];
    for (seed, ttl) in [(1, None), (2, Some(Duration::from_secs(3_600)))] {
        println!("seed {seed}");
        let builder = builder(&hands(), limits());
        let builder = if let Some(ttl) = ttl { builder.lease_ttl(ttl) } else { builder };
        let world =
            World { set: builder.build().unwrap(), used: AtomicI64::default(), held: AtomicI64::default() };
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let world = &world;
                scope.spawn(move || {
                    let mut random = SplitMix64::new(seed * 1_000 + thread);
                    (0..STEPS).for_each(|_| world.step(&mut random));
                });
            }
        });
        assert_eq!(world.set.peek().wait().unwrap().waiting, 0);
        assert_eq!(available(&world.set, "slots"), SLOTS);
        assert_eq!(available(&world.set, "tokens"), CAPACITY - world.used.into_inner());
    }
}

impl World {
    fn step(&self, random: &mut SplitMix64) {
        // Amounts on both sides of what a lease packs.
        let tokens = if random.below(20) == 0 { 5_000_000_000 } else { random.below(50) };
        let slots = 1 + random.below(2) as i64;
        let demand = demand! { tokens: tokens, slots: slots };
        match random.below(5) {
            0 => {
                if let Some(lease) = try_take(&self.set, demand) {
                    self.end(lease, tokens, slots, random);
                }
            }
            // The clock stands, so a timeout can only be returned at once.
            1 => match self.set.acquire(demand).timeout(Duration::ZERO).wait() {
                Ok(lease) => self.end(lease, tokens, slots, random),
                Err(AcquireError::TimedOut { .. }) => {}
                Err(error) => panic!("{error}"),
            },
            2 => {
                let mut waiting = self.set.acquire(demand).priority(Priority::Interactive).into_future();
                for _ in 0..random.below(3) {
                    if let std::task::Poll::Ready(lease) = poll(&mut waiting) {
                        self.end(lease.expect("it is valid"), tokens, slots, random);
                        break;
                    }
                    thread::yield_now();
                }
            }
            _ => {
                let lease = self.set.acquire(demand).wait().expect("somebody gives back");
                self.end(lease, tokens, slots, random);
            }
        }
    }

    fn end(&self, mut lease: Lease<'_>, tokens: u64, slots: i64, random: &mut SplitMix64) {
        let held = self.held.fetch_add(slots, SeqCst) + slots;
        assert!(held <= SLOTS, "{held} slots are held");
        assert!(lease.heartbeat().wait().expect("memory answers"));
        if random.below(2) == 0 {
            thread::yield_now();
        }
        let used = random.below(2 * tokens + 1);
        let way = random.below(6);
        self.used.fetch_add(
            if way == 0 {
                0
            } else if way < 3 {
                tokens
            } else {
                used
            } as i64,
            SeqCst,
        );
        self.held.fetch_sub(slots, SeqCst);
        match way {
            0 => lease.cancel().wait().expect("memory answers"),
            1 => drop(lease),
            2 => drop(lease.into_owned().commit().wait()),
            3 => lease.settle(demand! { tokens: used }).wait().expect("it is valid"),
            4 => {
                lease.report(demand! { tokens: used }).expect("it is valid");
                drop(lease);
            }
            _ => lease.into_owned().settle(demand! { tokens: used, slots: 0 }).wait().expect("it is valid"),
        }
    }
}
