//! Decisions allocate nothing: neither admissions, nor denials, nor settlements.
//!
//! The heap is counted for the whole process, so this file has a `main` of its own: the thread of a
//! test harness allocates whenever the scheduler lets it run.
#![allow(clippy::print_stdout, reason = "the test reports that it has passed")]

use std::time::Duration;

use tollgate_core::{AMOUNT_MAX, Bucket, Costs, Demand, Limit, LimitBuilder, Limits, Take, Tick, Usage};

#[global_allocator]
static HEAP: dhat::Alloc = dhat::Alloc;

const MINUTE: Duration = Duration::from_secs(60);

/// Returns one limit of each machine, and more of the common ones. The wide bucket counts in more
/// than 64 bits.
fn eight() -> [LimitBuilder; 8] {
    [
        Limit::per_minute("rpm", 10),
        Limit::per_minute("tpm", 1_000),
        Limit::fixed_window("fixed", 10, MINUTE),
        Limit::sliding_window("sliding", 10, MINUTE),
        Limit::quota("session", 10, MINUTE),
        Limit::resource("gauge", 10),
        Limit::rate("wide", AMOUNT_MAX - 1, Duration::from_secs(3_660 * 86_400)),
        Limit::calls(10, MINUTE),
    ]
}

fn demand(limits: &Limits, amount: u64) -> Costs {
    let parts = limits.iter().map(|limit| (limit.name().as_str(), amount));
    limits.costs(&parts.collect::<Demand>()).expect("it fits every limit")
}

/// Takes until it is denied, and settles at once: some limits with less than was taken, some with
/// more.
fn decide(limits: &Limits, bucket: &mut Bucket, costs: [&Costs; 2], window: u64) -> usize {
    let (mut denied, used) = (0, [0, 12, 1, 2, 3, 0, 5, 4]);
    for step in 0..12 {
        let now = Tick::from_secs(window * 60 + step);
        let costs = costs[step as usize % 2];
        match bucket.take(limits, now, &Take::of(costs)) {
            Ok(at) => {
                let usage = Usage { at, reserved: costs, used: &used[..limits.len()], holder: None };
                bucket.settle(limits, now, &usage);
            }
            Err(denial) => denied += usize::from(denial.wait().is_some()),
        }
    }
    denied
}

fn main() {
    taking_and_settling_up_to_eight_limits_allocates_nothing();
    println!("test taking_and_settling_up_to_eight_limits_allocates_nothing ... ok");
}

fn taking_and_settling_up_to_eight_limits_allocates_nothing() {
    let profiler = dhat::Profiler::builder().testing().build();
    let mut denied = 0;
    for count in 1..=8 {
        let limits = Limits::new(eight().into_iter().take(count)).expect("the limits are valid");
        let (few, many) = (demand(&limits, 2), demand(&limits, 4));
        let mut bucket = Bucket::fresh(&limits, Tick::ZERO);
        // Warms up: the log of the sliding window grows to its final size once.
        for window in 0..50 {
            decide(&limits, &mut bucket, [&few, &many], window);
        }
        let before = dhat::HeapStats::get().total_blocks;
        for window in 50..100 {
            denied += decide(&limits, &mut bucket, [&few, &many], window);
        }
        assert_eq!(dhat::HeapStats::get().total_blocks, before, "{count} limits");
    }
    assert!(denied > 100, "only {denied} were denied");
    // Checks that the counter counts.
    let before = dhat::HeapStats::get().total_blocks;
    drop(Box::new(denied));
    assert_eq!(dhat::HeapStats::get().total_blocks, before + 1);
    drop(profiler);
}
