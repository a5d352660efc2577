//! The simulated fleet: API keys of two projects, their limits, and the workers that use them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use tollgate::limiter::{LimiterError, LimiterLease};
use tollgate::store::{Backend, SplitMix64};
use tollgate::{Level, Limit, Limiter, Limits, NewEntity, Unit, demand};
use tollgate_provider::Estimator;

use super::accounts::{DemoAccounts, NotAnswered};
use super::events::DemoEvents;
use super::pause;
use super::tally::DemoTally;
use super::view::amount_text;

/// The resource that every worker calls.
pub(super) const RESOURCE: &str = "gpt-4";

/// The timeout of workers that wait.
const TIMEOUT: Duration = Duration::from_millis(1_500);

/// The minimum and the maximum pause of workers after a denial.
const PAUSE: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];

/// How many workers each key has.
const WORKERS: u64 = 3;

/// The price of a token in millionths of a dollar.
pub(super) const PRICE: u64 = 30;

/// The millionths of a dollar that are a cent.
const CENT: u64 = 10_000;

/// The budget of the project that runs out of it, in cents a day.
const BUDGET: u64 = 150;

/// What workers expect of the length of an answer, in tokens. Some answers are longer.
const ANSWER: u64 = 150;

/// A key, and the workers that use it.
pub(super) struct DemoKey {
    pub(super) name: &'static str,
    pub(super) project: &'static str,
    /// Whether they wait, or are denied at once.
    pub(super) waits: bool,
    pub(super) tally: DemoTally,
}

/// The keys, the projects they belong to, and the accounts they call with.
pub(super) struct Fleet {
    pub(super) projects: [&'static str; 2],
    pub(super) keys: Vec<DemoKey>,
    pub(super) accounts: DemoAccounts,
    pub(super) events: DemoEvents,
}

/// A worker: it calls until the demo is over.
struct DemoWorker<'a> {
    fleet: &'a Fleet,
    key: &'a DemoKey,
    limiter: &'a Limiter,
    random: SplitMix64,
}

impl Fleet {
    /// Creates two projects with two keys each. The workers of one project wait, those of the other are denied at once.
    pub(super) fn open(store: &Arc<dyn Backend>, seed: u64) -> Result<Fleet> {
        let key = |name, project, waits| DemoKey { name, project, waits, tally: DemoTally::default() };
        Ok(Fleet {
            projects: ["acme", "globex"],
            keys: vec![
                key("acme-web", "acme", true),
                key("acme-batch", "acme", true),
                key("globex-app", "globex", false),
                key("globex-cron", "globex", false),
            ],
            accounts: DemoAccounts::open(store, seed)?,
            events: DemoEvents::new(store.clock().clone()),
        })
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
        let usd = Unit::new("USD", 6)?;
        let limits = |(rpm, burst), (tpm, tokens), slots, cents: u64| {
            Limits::new([
                Limit::per_minute("rpm", rpm).burst(burst),
                Limit::per_minute("tpm", tpm).burst(tokens),
                Limit::resource("slots", slots),
                Limit::per_day("spend", cents * CENT).unit(usd.clone()),
            ])
        };
        let set = |level, limits| catalog.set_limits(level, &limits).wait();
        set(Level::Resource(RESOURCE), limits((300, 12), (240_000, 6_000), 3, 100)?)?;
        // One project is limited by tokens, the other by concurrency, and soon by its budget.
        set(Level::Entity("acme"), limits((900, 20), (120_000, 8_000), 6, 500)?)?;
        set(Level::Entity("globex"), limits((900, 20), (600_000, 12_000), 4, BUDGET)?)?;
        Ok(())
    }

    /// Runs all workers until `watch` returns.
    pub(super) fn work<T>(&self, limiter: &Limiter, seed: u64, watch: impl FnOnce() -> T) -> T {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (number, key) in (0..WORKERS).flat_map(|_| &self.keys).enumerate() {
                let random = SplitMix64::new(seed.wrapping_mul(1_000).wrapping_add(number as u64));
                let (is_over, mut worker) = (&is_over, DemoWorker { fleet: self, key, limiter, random });
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        worker.call();
                    }
                });
            }
            let seen = watch();
            is_over.store(true, Ordering::Relaxed);
            seen
        })
    }
}

impl DemoWorker<'_> {
    /// Acquires what a request is estimated to use, sends it, and settles what it used. Then pauses.
    fn call(&mut self) {
        let question = "word ".repeat(usize::try_from(self.random.between(100, 700)).unwrap_or(0));
        let request = json!({
            "model": RESOURCE,
            "messages": [{"role": "user", "content": question}],
            "user": self.random.between(0, u64::MAX - 1).to_string(),
        });
        let estimate = Estimator::new().estimate(&request).input + ANSWER;
        let lease = match self.acquire(estimate) {
            Ok(lease) => lease,
            Err(error) => return self.deny(&error),
        };
        self.key.tally.admit(lease.waited());
        let body = request.to_string();
        // Errors are ignored: the numbers at the end show them.
        match self.fleet.accounts.send(body.as_bytes(), TIMEOUT, &self.fleet.events) {
            Ok(used) => {
                self.key.tally.over_use(used.total.saturating_sub(estimate));
                let _ = lease.settle(demand! { tpm: used.total, spend: used.total * PRICE }).wait();
                pause(Duration::from_millis(self.random.between(20, 150)));
            }
            Err(why) => {
                let _ = lease.cancel().wait();
                match why {
                    NotAnswered::Throttled => self.key.tally.throttle(),
                    NotAnswered::NoAccount => self.key.tally.find_no_account(),
                }
                pause(PAUSE[0]);
            }
        }
    }

    fn acquire(&self, tokens: u64) -> Result<LimiterLease<'_>, LimiterError> {
        let demand = demand! { rpm: 1, tpm: tokens, spend: tokens * PRICE };
        if !self.key.waits {
            let attempt = self.limiter.try_acquire(self.key.name, RESOURCE, demand).wait()?;
            return attempt.into_result().map_err(LimiterError::Denied);
        }
        self.key.tally.begin_to_wait();
        let lease = self.limiter.acquire(self.key.name, RESOURCE, demand).timeout(TIMEOUT).wait();
        self.key.tally.end_waiting();
        lease
    }

    fn deny(&self, error: &LimiterError) {
        self.key.tally.deny();
        let denial = error.denial();
        if let Some((part, status)) = denial.and_then(|denial| denial.limited_by()) {
            let limit = format!("{} of {}", status.limit().name(), part.entity);
            let left = amount_text(status.limit(), status.available());
            // A fraction of a cent that is asked is a cent: what is left is rounded down.
            let cent = if status.limit().unit().is_some() { CENT } else { 1 };
            let asked = i64::try_from(status.requested().next_multiple_of(cent)).unwrap_or(i64::MAX);
            let asked = amount_text(status.limit(), asked);
            self.fleet.events.deny(self.key.name, &limit, &format!("{left} left, {asked} asked"));
        }
        let wait = denial.and_then(|denial| denial.retry_after());
        pause(wait.unwrap_or(PAUSE[1]).clamp(PAUSE[0], PAUSE[1]));
    }
}
