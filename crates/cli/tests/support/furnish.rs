//! A store that was used before, as only time can make one.

use std::path::Path;
use std::sync::Arc;

use tollgate::catalog::{UsageQuery, Window};
use tollgate::{Level, Limit, Limiter, Limits, ManualClock, Span, Tick, demand};
use tollgate_file::FileStore;

/// 2026-01-15T12:00:00Z.
const JANUARY: Tick = Tick::from_secs(1_768_478_400);

/// Uses `user-1` and `user-2` from January to June 2026, and a little now.
pub fn used_for_half_a_year(path: &Path) {
    let hands = ManualClock::at(JANUARY);
    let limiter = open(FileStore::builder(path).clock(hands.clock()).build().expect("the file can be made"));
    let limits = Limits::new([
        Limit::per_day("rpm", 1_000),
        Limit::per_day("tpm", 2_000_000),
        Limit::resource("slots", 4),
    ]);
    limiter.catalog().set_limits(Level::System, &limits.expect("they are valid")).wait().expect("stored");
    for (month, tokens) in [120_000_u64, 80_000, 0, 310_000, 455_000, 20_000].into_iter().enumerate() {
        for (entity, share) in [("user-1", 4), ("user-2", 1)] {
            if tokens > 0 {
                let demand = demand! { rpm: 1 + month as u64, tpm: tokens * share / 5 };
                let lease = limiter.acquire(entity, "gpt-4", demand).wait().expect("it is admitted");
                lease.commit().wait().expect("it is written");
            }
        }
        hands.advance(Span::from_secs(30 * 86_400));
    }
    // Usage is written down when somebody asks, and the clock goes on from another year then.
    limiter.catalog().usage(UsageQuery::of_everybody(Window::Month)).wait().expect("it is counted");
}

/// Takes 1,500,000 tokens of `user-1`, now.
pub fn used_now(path: &Path) {
    let limiter = open(FileStore::open(path).expect("the file can be opened"));
    let lease = limiter.acquire("user-1", "gpt-4", demand! { rpm: 1, tpm: 1_500_000 }).wait();
    lease.expect("it is admitted").commit().wait().expect("it is written");
}

fn open(store: FileStore) -> Limiter {
    Limiter::open(Arc::new(store), "default").wait().expect("the namespace can be opened")
}
