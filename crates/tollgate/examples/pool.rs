//! Several accounts of one provider, used as one: a pool goes round, and passes over who cannot.
//!
//! `cargo run --release -p tollgate --example pool`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use tollgate::{Attempt, Limit, LimitPool, LimitSet, LimitsError, demand};

/// An account: its limits, and what a caller must know to use it.
fn account(name: &str, rpm: u64) -> Result<LimitSet, LimitsError> {
    LimitSet::builder()
        .limits([Limit::per_minute("rpm", rpm), Limit::resource("connections", 2)])
        .config("account", name)
        .config("endpoint", format!("https://{name}.example.com/v1"))
        .build()
}

fn main() -> Result<(), Box<dyn Error>> {
    let pool = LimitPool::new([account("blue", 2)?, account("green", 3)?, account("red", 2)?])?;

    // Each worker has a turn of its own over the same accounts; this one begins with the second.
    let worker = pool.for_worker(1);
    for request in 1..=4 {
        call(&worker, request)?;
    }

    // The provider answers 429: the account of that call gets a cooldown, and the pool uses the others.
    if let Attempt::Admitted(lease) = worker.try_acquire(demand! { rpm: 1 }).wait()? {
        println!("\n{} answers 429, so it is not used for a while", lease.config()["account"]);
        lease.set().cool_down(Duration::from_secs(30)).wait()?;
        lease.commit().wait()?;
    }
    for request in 5..=8 {
        call(&worker, request)?;
    }

    println!("\nwhat is left");
    for set in pool.sets() {
        let status = set.peek().wait()?;
        let cooling = if status.cooling_until.is_some() { ", cooling down" } else { "" };
        let left = status.limit("rpm").map_or(0, |rpm| rpm.available());
        println!("  {:<6} {left} requests{cooling}", set.config()["account"]);
    }
    Ok(())
}

/// Takes the first account that admits the request, or says when one will.
fn call(pool: &LimitPool, request: u32) -> Result<(), Box<dyn Error>> {
    match pool.try_acquire(demand! { rpm: 1 }).wait()? {
        Attempt::Admitted(lease) => {
            println!(
                "request {request}: by {:<6} at {}",
                lease.config()["account"],
                lease.config()["endpoint"]
            );
            // The API is called here.
            lease.settle(demand! { rpm: 1 }).wait()?;
        }
        // `pool.acquire` would wait for it instead, in the queue of the account that is ready soonest.
        Attempt::Denied(denial) => println!("request {request}: none can; {denial}"),
    }
    Ok(())
}
