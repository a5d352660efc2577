//! Two accounts of a provider: what the fleet knows of their limits, and a mock provider for each.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use tollgate::store::{Backend, Reply};
use tollgate::{Clock, Lease, Limit, LimitPool, LimitSet, SetStatus, Spread, demand};
use tollgate_mock_provider::{MockProvider, Stats, Style};
use tollgate_provider::{Class, Response, Tokens, read};

use super::events::DemoEvents;
use crate::duration_text;

/// The names of the accounts.
const NAMES: [&str; 2] = ["blue", "green"];

/// The calls per minute that the fleet believes each account allows, and the calls at once.
const BELIEVED: (u64, u64) = (480, 8);

/// The calls per second that the provider really allows on each account. Blue has been lowered, and the fleet has not been
/// told: so the provider answers 429, and the account cools down.
const ALLOWED: [u64; 2] = [3, 12];

/// The calls at the same time on each account.
const CONNECTIONS: u64 = 6;

/// The pause of an account if the provider does not say how long.
const COOLDOWN: Duration = Duration::from_secs(1);

const PATH: &str = "/v1/chat/completions";

/// The accounts, each with its provider.
pub(super) struct DemoAccounts {
    clock: Clock,
    pool: LimitPool,
    providers: [MockProvider; 2],
}

/// The state of an account.
pub(super) struct AccountStatus {
    pub(super) name: &'static str,
    pub(super) limits: SetStatus,
    /// What the provider has counted.
    pub(super) stats: Stats,
}

/// Why a request was not answered.
pub(super) enum NotAnswered {
    /// No account admitted it.
    NoAccount,
    /// The provider answered 429.
    Throttled,
}

impl DemoAccounts {
    /// Opens the sets in the store.
    pub(super) fn open(store: &Arc<dyn Backend>, seed: u64) -> Result<DemoAccounts> {
        let set = |name: &str| {
            let limits = [
                Limit::per_minute("rpm", BELIEVED.0).burst(BELIEVED.1),
                Limit::resource("connections", CONNECTIONS),
            ];
            let set =
                LimitSet::builder().limits(limits).store(Arc::clone(store)).name(format!("openai/{name}"));
            set.config("account", name).build()
        };
        let provider = |allowed: u64| {
            let provider =
                MockProvider::builder().style(Style::Plain).requests_per_second(allowed).seed(seed);
            provider.latency(Duration::from_millis(60)..=Duration::from_millis(350)).build()
        };
        let pool = LimitPool::new([set(NAMES[0])?, set(NAMES[1])?])?.spread(Spread::Soonest);
        Ok(DemoAccounts {
            clock: store.clock().clone(),
            pool,
            providers: [provider(ALLOWED[0])?, provider(ALLOWED[1])?],
        })
    }

    /// Sends a request on the account that admits it soonest, after a wait if neither does, and returns what it used.
    pub(super) fn send(
        &self,
        body: &[u8],
        timeout: Duration,
        events: &DemoEvents,
    ) -> std::result::Result<Tokens, NotAnswered> {
        let demand = demand! { rpm: 1, connections: 1 };
        let lease = self.pool.acquire(demand).timeout(timeout).wait().map_err(|_| NotAnswered::NoAccount)?;
        let name = lease.config()["account"].clone();
        let provider = NAMES.iter().zip(&self.providers).find(|(account, _)| **account == name);
        let (_, provider) = provider.ok_or(NotAnswered::NoAccount)?;
        let reply = Reply::later(provider.call(PATH, &name, body)).wait();
        let reply = reply.ok_or(NotAnswered::NoAccount)?;
        let headers: Vec<(&str, &str)> =
            reply.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let now = SystemTime::UNIX_EPOCH + Duration::from_micros(self.clock.now().as_micros());
        let hint = read(&Response::new(reply.status, &headers, reply.body.as_bytes()), now);
        match (hint.class, hint.usage) {
            (Class::Ok, Some(used)) => {
                // An error is ignored: the numbers at the end show it.
                let _ = lease.commit().wait();
                Ok(used)
            }
            _ => {
                let wait = hint.advice.unwrap_or(COOLDOWN);
                events.add(format!(
                    "{name}: 429 from the provider, so no calls for {}",
                    duration_text::print(wait)
                ));
                refuse(lease, wait);
                Err(NotAnswered::Throttled)
            }
        }
    }

    /// Returns the state of both accounts.
    ///
    /// # Errors
    ///
    /// As the store.
    pub(super) fn status(&self) -> Result<Vec<AccountStatus>> {
        let limits = self.pool.peek().wait()?;
        let accounts = NAMES.into_iter().zip(limits).zip(&self.providers);
        let status = |((name, limits), provider): ((_, _), &MockProvider)| AccountStatus {
            name,
            limits,
            stats: provider.stats(),
        };
        Ok(accounts.map(status).collect())
    }
}

/// Pauses the account of a call that the provider refused, for all callers, and gives back what the call took.
fn refuse(lease: Lease<'_>, wait: Duration) {
    // Errors are ignored: the numbers at the end show them.
    let _ = lease.set().cool_down(wait).wait();
    let _ = lease.cancel().wait();
}
