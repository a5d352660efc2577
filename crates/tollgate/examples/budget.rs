//! Money: a daily budget that is full again at midnight in Berlin, next to a limit on requests.
//!
//! `cargo run --release -p tollgate --example budget`. The clock is a manual one, so the night is short.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use tollgate::calendar::daily;
use tollgate::{Attempt, Limit, LimitSet, ManualClock, Tick, Unit, demand};

/// 2026-03-28 22:00 in Berlin. The next day has only 23 hours there, and the calendar knows.
const EVENING: Tick = Tick::from_secs(1_774_731_600);

fn main() -> Result<(), Box<dyn Error>> {
    // Amounts are whole numbers; with six decimals they are millionths of a dollar.
    let usd = Unit::new("USD", 6)?;
    let hands = ManualClock::at(EVENING);
    let set = LimitSet::builder()
        .limits([
            Limit::quota("spend", usd.parse("5.00")?, daily("Europe/Berlin")?).unit(usd.clone()),
            Limit::per_minute("rpm", 60),
        ])
        .clock(hands.clock())
        .build()?;
    for limit in set.limits().iter() {
        println!("{limit}");
    }

    // Each call asks for the most it may cost, and pays what it did cost.
    let (at_most, cost) = (usd.parse("1.25")?, usd.parse("0.9")?);
    let denial = loop {
        match set.try_acquire(demand! { spend: at_most, rpm: 1 }).wait()? {
            Attempt::Admitted(lease) => {
                lease.settle(demand! { spend: cost, rpm: 1 }).wait()?;
                println!("paid {}, {} left", usd.show(cost), left(&set, &usd));
            }
            Attempt::Denied(denial) => break denial,
        }
    };
    println!("refused: {denial}");

    // One call turns out dearer than the most it could cost: that is debt, and no midnight forgives it.
    let lease = set.acquire(demand! { spend: usd.parse("0.1")?, rpm: 1 }).wait()?;
    lease.settle(demand! { spend: usd.parse("0.75")?, rpm: 1 }).wait()?;
    println!("after a dear one, {} left", left(&set, &usd));

    let Some(wait) = denial.wait() else { return Err("a calendar has a next edge".into()) };
    hands.set(EVENING + tollgate::Span::covering(wait));
    println!("{wait:?} later it is midnight in Berlin: {} left", left(&set, &usd));
    let full = set.peek().wait()?.limit("spend").and_then(|spend| spend.full().wait(hands.now()));
    println!("the clocks go forward that night, so the next midnight is {:?} away", full.unwrap_or_default());
    Ok(())
}

fn left(set: &LimitSet, usd: &Unit) -> String {
    let status = set.peek().wait().expect("memory answers");
    let available = status.limit("spend").map_or(0, |spend| spend.available());
    let sign = if available < 0 { "-" } else { "" };
    format!("{sign}{}", usd.show(available.unsigned_abs()))
}
