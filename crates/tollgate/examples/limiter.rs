//! Keys of a project, each with its own share, and all of them together bound by the project's.
//!
//! Run it: `cargo run --release -p tollgate --example limiter`.
#![allow(clippy::print_stdout, reason = "an example talks to whoever runs it")]

use tollgate::catalog::{UsageQuery, Window};
use tollgate::{Attempt, Level, Limit, Limiter, Limits, NewEntity, demand};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = Limiter::in_memory()?;
    let catalog = limiter.catalog();
    catalog.create_entity(NewEntity::new("acme").name("Acme Ltd")).wait()?;
    for key in ["key-1", "key-2", "key-3"] {
        catalog.create_entity(NewEntity::new(key).parent("acme").cascades(true)).wait()?;
    }
    let tokens = |tpm| Limits::new([Limit::per_minute("rpm", 60), Limit::per_minute("tpm", tpm)]);
    catalog.set_limits(Level::Resource("gpt-4"), &tokens(5_000)?).wait()?;
    catalog.set_limits(Level::Entity("acme"), &tokens(9_000)?).wait()?;

    for (key, estimate, used) in
        [("key-1", 3_000, 2_400), ("key-2", 4_000, 4_500), ("key-3", 3_000, 0), ("key-1", 1_000, 900)]
    {
        match limiter.try_acquire(key, "gpt-4", demand! { rpm: 1, tpm: estimate }).wait()? {
            Attempt::Admitted(lease) => {
                lease.settle(demand! { tpm: used }).wait()?;
                println!("{key}: reserved {estimate}, used {used}");
            }
            Attempt::Denied(status) => println!("{key}: denied, {status}"),
        }
    }
    for entity in ["key-1", "key-2", "key-3", "acme"] {
        let left = limiter.available(entity, "gpt-4").wait()?.available("tpm").unwrap_or_default();
        let usage = catalog.usage_summary(UsageQuery::of_entity(entity, Window::Hour)).wait()?;
        let used = usage.limits.get("tpm").map_or(0, |limit| limit.total);
        println!("{entity}: {used} tokens used this hour, {left} left this minute");
    }
    Ok(())
}
