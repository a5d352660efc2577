//! How a store is opened.

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

/// What the threads of a store are called.
const NAME: &str = "tollgate-redis";

/// How long a call may take unless the builder or the address says otherwise.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How long what is held ahead is kept when no caller wants it, unless the builder says otherwise.
const KEPT_AHEAD: Duration = Duration::from_secs(1);

/// The oldest version of Redis, and of Valkey, that knows all that scripts use.
const OLDEST: u32 = 7;

/// Settings of a [`RedisStore`].
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

    /// The clock to use, for tests with a manual clock; the server's own unless it says otherwise. Nothing expires on
    /// the server then.
    pub fn clock(mut self, clock: Clock) -> RedisStoreBuilder {
        self.clock = Some(clock);
        self
    }

    /// How long a call may take with all its tries; what the address says (`timeout=`), or 5 seconds.
    pub fn timeout(mut self, timeout: Duration) -> RedisStoreBuilder {
        self.timeout = Some(timeout);
        self
    }

    /// What all keys start with; what the address says (`prefix=`), or `tollgate`. Stores with different prefixes have nothing in
    /// common, and may be in different slots of a cluster.
    pub fn prefix(mut self, prefix: impl Into<String>) -> RedisStoreBuilder {
        self.prefix = Some(prefix.into());
        self
    }

    /// Whether a server is accepted that forgets what it likes when its memory is full; what the address says (`evicting=`), or
    /// not.
    pub fn accept_eviction(mut self, accepts: bool) -> RedisStoreBuilder {
        self.accepts_eviction = Some(accepts);
        self
    }

    /// Takes ahead: a process holds up to so many percent of each capacity of a bucket that it takes from often, so
    /// that most takes need no call. What no caller wants for `idle` is given back. What is held ahead by one process
    /// cannot be had by another, and is lost until it is refilled if the process dies, as is the count of what it used
    /// of that. Only for calls whose buckets have meters only. What the address says (`prefetch=`, kept for a second),
    /// or off.
    pub fn prefetch(mut self, percent: u8, idle: Duration) -> RedisStoreBuilder {
        self.prefetch = Some((percent, idle));
        self
    }

    /// How long opening goes on trying while no host accepts a connection: a refusal is an answer, and a command should report
    /// it at once. The timeout unless it says otherwise, so that a service may be started before its server. At least two tries are
    /// made.
    pub fn connect_within(mut self, patience: Duration) -> RedisStoreBuilder {
        self.connect_within = Some(patience);
        self
    }

    /// How long records of usage are kept that this process writes to; as [`UsageRetention::default`] unless it says otherwise.
    pub fn usage_retention(mut self, usage_retention: UsageRetention) -> RedisStoreBuilder {
        self.usage_retention = usage_retention;
        self
    }

    /// Opens the store: connects, looks at the version and the memory policy of the server, and learns its time.
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
            // Without one that is named rustls gives up. Should the program have named another one, that is as good.
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
        let time = self.clock.map_or_else(ServerTime::learnt, ServerTime::Given);
        let plan = ConnectionPlan { url: url.clone(), roots, time, timeout };
        let service = plan.service(workers);
        let accepts_eviction = self.accepts_eviction.unwrap_or(url.accepts_eviction);
        connect(&service, &url, self.connect_within.unwrap_or(timeout)).await?;
        check_server(&service, &url, accepts_eviction).await?;
        learn_time(&service, &url).await?;
        let (percent, idle) = self.prefetch.unwrap_or((url.prefetch.unwrap_or(0), KEPT_AHEAD));
        let usage_retention = self.usage_retention;
        let inner = move |service| RedisInner::new(service, Prefetch::new(percent, idle), usage_retention);
        let again = move || inner(plan.service(Workers::start_again(NAME)));
        Ok(RedisStore(Reopened::new(inner(service), again)))
    }
}

/// All that is needed to call a server, in whatever process.
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

/// Makes the connection, for as long as hosts that refuse it may take. Whatever else goes wrong is left to the first call.
async fn connect(service: &RedisService, url: &RedisUrl, patience: Duration) -> Result<(), RedisOpenError> {
    const TRIES_MIN: u32 = 2;
    let timer = CallTimer::start();
    for tried in 1.. {
        let connected = tokio::time::timeout(service.timeout / 2, service.link.connected()).await;
        let Ok(Err(trouble @ ServerError::NoConnection(..))) = connected else { break };
        let pause = PAUSES.random_after(tried).min(patience / TRIES_MIN);
        if tried >= TRIES_MIN && timer.elapsed() + pause >= patience {
            return Err(open_error(url, TimedError { trouble, waited: timer.elapsed() }));
        }
        service.counts.met(&trouble);
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
        // A user that may not ask this may well do all the rest; a user that may do nothing fails at the first script.
        Err(TimedError { trouble: ServerError::AccessDenied(why), .. }) if why.contains("NOPERM") => {
            String::new()
        }
        Err(failure) => return Err(open_error(url, failure)),
    };
    let field = |name: &str| {
        info.lines()
            .filter_map(|line| line.trim_end().split_once(':'))
            .find(|(it, _)| *it == name)
            .map(|(_, it)| it)
    };
    // Valkey reports the version of Redis that it is like as well as its own.
    if let Some(version) = field("redis_version")
        && version.split('.').next().and_then(|major| major.parse::<u32>().ok()).is_some_and(|it| it < OLDEST)
    {
        return Err(RedisOpenError::TooOld(url.to_string(), version.into()));
    }
    let (Some(most), Some(policy)) = (field("maxmemory"), field("maxmemory_policy")) else {
        tracing::warn!(
            store = %url,
            "the server does not tell its maxmemory-policy; if it evicts, debts and leases may be forgotten"
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

/// Runs a script that looks at nothing, which returns the time, and shows whether scripts may be run.
async fn learn_time(service: &RedisService, url: &RedisUrl) -> Result<(), RedisOpenError> {
    let (script, asked) = (&service.scripts.look, Clock::system().now());
    let command = script.run(&[service.layout.outcome(0)], &[service.now()]);
    let value = service.with_retries(CallTimer::start(), &command, Some(script)).await;
    let seen = SeenValues::of(value.map_err(|failure| open_error(url, failure))?);
    let garbage =
        |_| RedisOpenError::Refused(url.to_string(), ServerError::Garbage("a script told no time".into()));
    service.time.learn(asked, seen.map_err(garbage)?.now);
    Ok(())
}

fn open_error(url: &RedisUrl, TimedError { trouble, waited }: TimedError) -> RedisOpenError {
    match trouble.is_passing() {
        true => RedisOpenError::Unavailable { url: url.to_string(), waited, trouble },
        false => RedisOpenError::Refused(url.to_string(), trouble),
    }
}
