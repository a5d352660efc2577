//! Threads and no runtime: `.wait()` stands in the same queue as `.await`, and wakes without polling.
//!
//! `cargo run --release -p tollgate --example blocking`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::thread;
use std::time::Duration;

use tollgate::{AcquireError, Limit, LimitSet, Priority, demand};

fn main() -> Result<(), Box<dyn Error>> {
    // Four at once, then one every 50 ms.
    let set = LimitSet::new([Limit::per_second("rps", 20).burst(4), Limit::resource("connections", 2)])?;
    let began = set.clock().now();

    thread::scope(|scope| {
        for name in ["ann", "ben", "cem", "dot"] {
            let set = &set;
            scope.spawn(move || {
                for number in 1..=3 {
                    if let Err(error) = call(set, name, number) {
                        println!("{name} {number}: {error}");
                    }
                }
            });
        }
    });
    println!("twelve calls in {:?}", set.clock().now().since(began).to_duration());

    // A caller that cannot wait long gets its error at once, and not after the time is up.
    while set.try_acquire(demand! { rps: 1 }).wait()?.is_admitted() {}
    let patience = Duration::from_millis(10);
    match set.acquire(demand! { rps: 4 }).timeout(patience).priority(Priority::Interactive).wait() {
        Err(AcquireError::TimedOut { denial, waited }) => {
            println!("within {patience:?}? no, told after {waited:?}: {denial}");
        }
        Err(error) => return Err(error.into()),
        Ok(lease) => lease.cancel().wait()?,
    }
    Ok(())
}

fn call(set: &LimitSet, name: &str, number: u32) -> Result<(), Box<dyn Error>> {
    let lease = set.acquire(demand! { rps: 1 }).wait()?;
    // The API is called here; an error that returns early frees the connection.
    match lease.waited() {
        Some(waited) => println!("{name} {number}: admitted after {waited:.0?}"),
        None => println!("{name} {number}: admitted at once"),
    }
    lease.settle(demand! { rps: 1 }).wait()?;
    Ok(())
}
