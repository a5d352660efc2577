//! Builder of a store: settings, and opening it.

use std::time::Duration;

use tollgate_store::prefetch::Prefetch;
use tollgate_store::usage::UsageRetention;
use tollgate_store::workers::{CallTimer, Reopened, Workers};
use tollgate_store::{Clock, Reply};

use crate::apply::remembered_by;
use crate::inner::{RedisInner, RedisStore};
use crate::layout::Layout;
use crate::service::{PAUSES, RedisConnection, RedisService, ScriptClock, Scripts, SeenValues, TimedError};
use crate::time::ServerTime;
use crate::url::check_prefix;
use crate::{RedisOpenError, RedisUrl, ServerError, UrlError};

/// The name of the threads of a store.
const NAME: &str = "tollgate-redis";

/// The default timeout of a call.
const TIMEOUT: Duration = Duration::from_secs(5);

/// By default, how long what is held ahead is kept when no caller takes it.
const PREFETCH_IDLE: Duration = Duration::from_secs(1);

/// The oldest version of Redis, and of Valkey, that has all commands that scripts use.
const OLDEST: u32 = 7;

/// Settings of a [`RedisStore`].
///
/// ```no_run
/// use std::time::Duration;
///
/// use tollgate_redis::RedisStore;
///
/// # async fn open() -> Result<(), tollgate_redis::RedisOpenError> {
/// let store = RedisStore::builder("redis+sentinel://10.0.0.1,10.0.0.2/main")
///     .prefix("limits")
///     .timeout(Duration::from_secs(2))
///     .prefetch(5, Duration::from_secs(1))
///     .build()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct RedisStoreBuilder {
    url: Result<RedisUrl, UrlError>,
    clock: Option<Clock>,
    timeout: Option<Duration>,
    prefix: Option<String>,
    accepts_eviction: Option<bool>,
    prefetch: Option<(u8, Duration)>,
    connect_within: Option<Duration>,
    usage_retention: UsageRetention,
}

impl RedisStoreBuilder {
    pub(crate) fn new(url: &str) -> RedisStoreBuilder {
        RedisStoreBuilder {
            url: url.parse(),
            clock: None,
            timeout: None,
            prefix: None,
            accepts_eviction: None,
            prefetch: None,
            connect_within: None,
            usage_retention: UsageRetention::default(),
        }
    }

    /// Sets the clock, for tests with a manual clock; by default it is the server's own. With another clock nothing
    /// expires on the server.
    pub fn clock(mut self, clock: Clock) -> RedisStoreBuilder {
        self.clock = Some(clock);
        self
    }

    /// Sets the timeout of a call with all its attempts; by default the address has it (`timeout=`), or it is 5 seconds.
    pub fn timeout(mut self, timeout: Duration) -> RedisStoreBuilder {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the prefix of all keys; by default the address has it (`prefix=`), or it is `tollgate`. Stores with different
    /// prefixes have nothing in common, and may be in different slots of a cluster.
    pub fn prefix(mut self, prefix: impl Into<String>) -> RedisStoreBuilder {
        self.prefix = Some(prefix.into());
        self
    }

    /// Sets whether a server is accepted that evicts keys when its memory is full; by default the address has it
    /// (`evicting=`), or it is refused.
    pub fn accept_eviction(mut self, accepts: bool) -> RedisStoreBuilder {
        self.accepts_eviction = Some(accepts);
        self
    }

    /// Switches prefetch on: a process holds up to so many percent of each capacity of a bucket that it takes from often,
    /// so that most takes need no call. What no caller takes for `idle` is given back. What one process holds cannot be
    /// taken by another, and is lost until it is refilled if the process dies, as is the count of what it used of that.
    /// Only for calls whose buckets have meters only. By default the address has it (`prefetch=`, with an idle time of a
    /// second), or it is off.
    pub fn prefetch(mut self, percent: u8, idle: Duration) -> RedisStoreBuilder {
        self.prefetch = Some((percent, idle));
        self
    }

    /// Sets for how long opening is retried while no host accepts a connection; by default for the timeout of a call, so
    /// that a service may be started before its server. A command should report a refused connection at once. At least
    /// two attempts are made.
    pub fn connect_within(mut self, time: Duration) -> RedisStoreBuilder {
        self.connect_within = Some(time);
        self
    }

    /// Sets how long records of usage are kept that this process writes to; by default [`UsageRetention::default`].
    pub fn usage_retention(mut self, usage_retention: UsageRetention) -> RedisStoreBuilder {
        self.usage_retention = usage_retention;
        self
    }

    /// Opens the store: connects, checks the version and the memory policy of the server, and reads its time.
    ///
    /// # Cancel safety
    ///
    /// Nothing is left behind.
    ///
    /// # Errors
    ///
    /// [`RedisOpenError`] with what is wrong and what to do.
    pub fn build(self) -> Reply<'static, Result<RedisStore, RedisOpenError>> {
        let workers = match Workers::start(NAME) {
            Ok(workers) => workers,
            Err(error) => return Reply::ready(Err(RedisOpenError::Host(error.to_string()))),
        };
        let opening = workers.handle().clone().spawn(self.open(workers));
        Reply::later(async {
            match opening.await {
                Ok(opened) => opened,
                Err(error) => Err(RedisOpenError::Host(error.to_string())),
            }
        })
    }

    async fn open(self, workers: Workers) -> Result<RedisStore, RedisOpenError> {
        let mut url = self.url?;
        if url.is_encrypted && !cfg!(feature = "tls") {
            return Err(RedisOpenError::BadSetting(
                "rediss:// needs the feature `tls`, which is off here".into(),
            ));
        }
        #[cfg(feature = "tls")]
        if url.is_encrypted {
            // Rustls needs a provider by name. It fails if the program has named another one, which is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let read = |path: &String| {
            let why = |why| RedisOpenError::BadSetting(format!("{path} cannot be read: {why}"));
            std::fs::read(path).map_err(why)
        };
        let roots = url.ca.as_ref().map(read).transpose()?;
        if let Some(prefix) = self.prefix {
            check_prefix(&prefix)?;
            url.prefix = prefix;
        }
        let timeout = self.timeout.or(url.timeout).unwrap_or(TIMEOUT).max(Duration::from_millis(1));
        let time = self.clock.map_or_else(ServerTime::learned, ServerTime::Given);
        let plan = ConnectionPlan { url: url.clone(), roots, time, timeout };
        let service = plan.service(workers);
        let accepts_eviction = self.accepts_eviction.unwrap_or(url.accepts_eviction);
        connect(&service, &url, self.connect_within.unwrap_or(timeout)).await?;
        check_server(&service, &url, accepts_eviction).await?;
        learn_time(&service, &url).await?;
        let (percent, idle) = self.prefetch.unwrap_or((url.prefetch.unwrap_or(0), PREFETCH_IDLE));
        let usage_retention = self.usage_retention;
        let inner = move |service| RedisInner::new(service, Prefetch::new(percent, idle), usage_retention);
        let again = move || inner(plan.service(Workers::start_again(NAME)));
        Ok(RedisStore(Reopened::new(inner(service), again)))
    }
}

/// What is needed to connect to a server, in this process or a forked one.
struct ConnectionPlan {
    url: RedisUrl,
    roots: Option<Vec<u8>>,
    time: ServerTime,
    timeout: Duration,
}

impl ConnectionPlan {
    fn service(&self, workers: Workers) -> RedisService {
        let teller = if self.time.given().is_some() { ScriptClock::Given } else { ScriptClock::OfServer };
        RedisService {
            layout: Layout::new(&self.url.prefix),
            link: RedisConnection::new(self.url.clone(), self.roots.clone(), self.timeout / 2),
            scripts: Scripts::new(teller, remembered_by(self.timeout).as_millis().to_string()),
            time: self.time.clone(),
            timeout: self.timeout,
            counts: Default::default(),
            workers,
        }
    }
}

/// Connects, and retries for `time` while hosts refuse the connection. Other errors are left to the first call.
async fn connect(service: &RedisService, url: &RedisUrl, time: Duration) -> Result<(), RedisOpenError> {
    const ATTEMPTS_MIN: u32 = 2;
    let timer = CallTimer::start();
    for attempts in 1.. {
        let connected = tokio::time::timeout(service.timeout / 2, service.link.connected()).await;
        let Ok(Err(error @ ServerError::NoConnection(..))) = connected else { break };
        let pause = PAUSES.random_after(attempts).min(time / ATTEMPTS_MIN);
        if attempts >= ATTEMPTS_MIN && timer.elapsed() + pause >= time {
            return Err(open_error(url, TimedError { error, waited: timer.elapsed() }));
        }
        service.counts.record(&error);
        tokio::time::sleep(pause).await;
    }
    Ok(())
}

async fn check_server(
    service: &RedisService,
    url: &RedisUrl,
    accepts_eviction: bool,
) -> Result<(), RedisOpenError> {
    let mut ask = redis::cmd("INFO");
    ask.arg("server").arg("memory");
    let answer = service.with_retries(CallTimer::start(), &ask, None).await;
    let info: String = match answer {
        Ok(value) => redis::from_redis_value(value).unwrap_or_default(),
        // A user without the right to `INFO` may have all others; a user without any fails at the first script.
        Err(TimedError { error: ServerError::AccessDenied(why), .. }) if why.contains("NOPERM") => {
            String::new()
        }
        Err(failure) => return Err(open_error(url, failure)),
    };
    let field = |name: &str| {
        info.lines()
            .filter_map(|line| line.trim_end().split_once(':'))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    };
    // Valkey reports the version of Redis that it is compatible with, beside its own.
    if let Some(version) = field("redis_version")
        && version
            .split('.')
            .next()
            .and_then(|major| major.parse::<u32>().ok())
            .is_some_and(|major| major < OLDEST)
    {
        return Err(RedisOpenError::TooOld(url.to_string(), version.into()));
    }
    let (Some(most), Some(policy)) = (field("maxmemory"), field("maxmemory_policy")) else {
        tracing::warn!(
            store = %url,
            "the server does not report its maxmemory-policy; if it evicts, debts and leases may be forgotten"
        );
        return Ok(());
    };
    match policy != "noeviction" {
        true if most == "0" => Ok(()),
        true if accepts_eviction => {
            tracing::warn!(store = %url, policy, "the server evicts; debts and leases may be forgotten");
            Ok(())
        }
        true => Err(RedisOpenError::Evicting(url.to_string(), most.into(), policy.into())),
        false => Ok(()),
    }
}

/// Runs a script that reads no key, which returns the time, and shows whether scripts may be run.
async fn learn_time(service: &RedisService, url: &RedisUrl) -> Result<(), RedisOpenError> {
    let (script, asked) = (&service.scripts.look, Clock::system().now());
    let command = script.run(&[service.layout.outcome(0)], &[service.now()]);
    let value = service.with_retries(CallTimer::start(), &command, Some(script)).await;
    let seen = SeenValues::of(value.map_err(|failure| open_error(url, failure))?);
    let garbage = |_| {
        RedisOpenError::Refused(url.to_string(), ServerError::Garbage("a script returned no time".into()))
    };
    service.time.learn(asked, seen.map_err(garbage)?.now);
    Ok(())
}

fn open_error(url: &RedisUrl, TimedError { error, waited }: TimedError) -> RedisOpenError {
    match error.is_passing() {
        true => RedisOpenError::Unavailable { url: url.to_string(), waited, error },
        false => RedisOpenError::Refused(url.to_string(), error),
    }
}
