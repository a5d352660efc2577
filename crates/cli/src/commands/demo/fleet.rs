//! The simulated fleet: API keys of two projects, their limits, and the workers that use them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use tollgate::limiter::LimiterError;
use tollgate::{Level, Limit, Limiter, Limits, NewEntity, demand};

use super::pause;
use super::random::DemoRandom;
use super::tally::DemoTally;

/// The resource that every worker calls.
pub(super) const RESOURCE: &str = "gpt-4";

/// The timeout of workers that wait.
const TIMEOUT: Duration = Duration::from_millis(1_500);

/// The minimum and the maximum pause of workers after a denial.
const PAUSE: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];

/// How many workers each key has.
const WORKERS: u64 = 3;

/// A key, and the workers that use it.
pub(super) struct DemoKey {
    pub(super) name: &'static str,
    pub(super) project: &'static str,
    /// Whether they wait, or are denied at once.
    pub(super) waits: bool,
    pub(super) tally: DemoTally,
}

/// The keys and the projects they belong to.
pub(super) struct Fleet {
    pub(super) projects: [&'static str; 2],
    pub(super) keys: Vec<DemoKey>,
}

impl Fleet {
    /// Creates two projects with two keys each. The workers of one project wait, those of the other are denied at once.
    pub(super) fn new() -> Fleet {
        let key = |name, project, waits| DemoKey { name, project, waits, tally: DemoTally::default() };
        Fleet {
            projects: ["acme", "globex"],
            keys: vec![
                key("acme-web", "acme", true),
                key("acme-batch", "acme", true),
                key("globex-app", "globex", false),
                key("globex-cron", "globex", false),
            ],
        }
    }

    /// Stores entities and limits.
    pub(super) fn store_limits(&self, limiter: &Limiter) -> Result<()> {
        let catalog = limiter.catalog();
        for project in self.projects {
            catalog.create_entity(NewEntity::new(project)).wait()?;
        }
        for DemoKey { name, project, .. } in &self.keys {
            catalog.create_entity(NewEntity::new(*name).parent(*project).cascades(true)).wait()?;
        }
        let limits = |rpm, burst, tpm, tokens, slots| {
            Limits::new([
                Limit::per_minute("rpm", rpm).burst(burst),
                Limit::per_minute("tpm", tpm).burst(tokens),
                Limit::resource("slots", slots),
            ])
        };
        catalog.set_limits(Level::Resource(RESOURCE), &limits(600, 12, 240_000, 6_000, 3)?).wait()?;
        // One project is limited by tokens, the other by concurrency.
        catalog.set_limits(Level::Entity("acme"), &limits(900, 20, 240_000, 8_000, 6)?).wait()?;
        catalog.set_limits(Level::Entity("globex"), &limits(900, 20, 600_000, 12_000, 4)?).wait()?;
        Ok(())
    }

    /// Runs all workers until `watch` returns.
    pub(super) fn work<T>(&self, limiter: &Limiter, seed: u64, watch: impl FnOnce() -> T) -> T {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (number, key) in (0..WORKERS).flat_map(|_| &self.keys).enumerate() {
                let random = DemoRandom::from_seed(seed.wrapping_mul(1_000).wrapping_add(number as u64));
                let is_over = &is_over;
                scope.spawn(move || key.work(limiter, random, is_over));
            }
            let seen = watch();
            is_over.store(true, Ordering::Relaxed);
            seen
        })
    }
}

impl DemoKey {
    fn work(&self, limiter: &Limiter, mut random: DemoRandom, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            match self.call(limiter, &mut random) {
                Ok(()) => pause(Duration::from_millis(random.between(20, 150))),
                Err(error) => {
                    self.tally.deny();
                    let wait = error.denial().and_then(|denial| denial.retry_after());
                    pause(wait.unwrap_or(PAUSE[1]).clamp(PAUSE[0], PAUSE[1]));
                }
            }
        }
    }

    /// Acquires an estimate, simulates a call, and settles what it used.
    fn call(&self, limiter: &Limiter, random: &mut DemoRandom) -> Result<(), LimiterError> {
        let estimate = random.between(200, 1_200);
        let used = estimate * random.between(30, 140) / 100;
        let took_ms = random.between(60, 350);
        let demand = demand! { rpm: 1, tpm: estimate };
        let lease = if self.waits {
            self.tally.begin_to_wait();
            let lease = limiter.acquire(self.name, RESOURCE, demand).timeout(TIMEOUT).wait();
            self.tally.end_waiting();
            lease?
        } else {
            let attempt = limiter.try_acquire(self.name, RESOURCE, demand).wait()?;
            attempt.into_result().map_err(LimiterError::Denied)?
        };
        self.tally.admit(lease.waited());
        pause(Duration::from_millis(took_ms));
        self.tally.over_use(used.saturating_sub(estimate));
        // An error is ignored: the numbers at the end show it.
        let _ = lease.settle(demand! { tpm: used }).wait();
        Ok(())
    }
}
