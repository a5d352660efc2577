//! Builder of a store: settings, and opening it.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_dynamodb::config::{
    BehaviorVersion, Builder as ClientConfig, Credentials, HttpClient, ProvideCredentials, Region,
    SharedCredentialsProvider, SharedHttpClient, StalledStreamProtectionConfig,
};
use aws_sdk_dynamodb::types::TableStatus;
use aws_smithy_async::time::SharedTimeSource;
use aws_smithy_types::retry::RetryConfig;
use tollgate_store::prefetch::Prefetch;
use tollgate_store::usage::UsageRetention;
use tollgate_store::workers::{Reopened, Workers};
use tollgate_store::{Clock, Reply};

use crate::bucket::item_op::SHARDS_MAX;
use crate::bucket::{BucketSettings, Chains};
use crate::clock::ServiceTime;
use crate::inner::{DynamoInner, DynamoStore};
use crate::service::{Bounded, RetryPolicy, TableService};
use crate::{DynamoOpenError, ServiceError, endpoint, table};

/// The default region of a service outside of AWS.
const LOCAL_REGION: &str = "us-east-1";

/// The name of the threads of a store.
const NAME: &str = "tollgate-dynamo";

/// The default timeout of a call.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The default number of attempts of a call.
const ATTEMPTS: u32 = 5;

/// Settings of a [`DynamoStore`].
///
/// ```no_run
/// use std::time::Duration;
///
/// use tollgate_dynamo::{Chains, DynamoStore};
///
/// # async fn open() -> Result<(), tollgate_dynamo::DynamoOpenError> {
/// let store = DynamoStore::builder("limits")
///     .region("eu-west-1")
///     .timeout(Duration::from_secs(2))
///     .chains(Chains::Transaction)
///     .build()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct DynamoStoreBuilder {
    table: String,
    region: Option<String>,
    endpoint: Option<String>,
    http_client: Option<SharedHttpClient>,
    credentials: Option<SharedCredentialsProvider>,
    clock: Clock,
    timeout: Duration,
    tries: u32,
    creates: bool,
    settings: BucketSettings,
}

impl DynamoStoreBuilder {
    pub(crate) fn new(table: String) -> DynamoStoreBuilder {
        DynamoStoreBuilder {
            table,
            region: None,
            endpoint: None,
            http_client: None,
            credentials: None,
            clock: Clock::system(),
            timeout: TIMEOUT,
            tries: ATTEMPTS,
            creates: false,
            settings: BucketSettings::default(),
        }
    }

    /// Sets the region of the table; by default that of the environment or the profile.
    pub fn region(mut self, region: impl Into<String>) -> DynamoStoreBuilder {
        self.region = Some(region.into());
        self
    }

    /// Sets the endpoint of a service outside of AWS, such as `http://127.0.0.1:8000`.
    pub fn endpoint(mut self, endpoint: impl Into<String>) -> DynamoStoreBuilder {
        self.endpoint = Some(endpoint.into());
        self
    }

    /// Sets the HTTP client, such as an embedded engine; by default the SDK's own.
    pub fn http_client(mut self, http_client: impl HttpClient + 'static) -> DynamoStoreBuilder {
        self.http_client = Some(SharedHttpClient::new(http_client));
        self
    }

    /// Sets the credentials; by default the SDK finds them. With another HTTP client or an endpoint on this host only
    /// `AWS_ACCESS_KEY_ID` is read, and without it calls are signed with credentials that no real service accepts.
    pub fn credentials(mut self, credentials: SharedCredentialsProvider) -> DynamoStoreBuilder {
        self.credentials = Some(credentials);
        self
    }

    /// Sets the clock; by default the system's. It is corrected by the time of the service.
    pub fn clock(mut self, clock: Clock) -> DynamoStoreBuilder {
        self.clock = clock;
        self
    }

    /// Sets the timeout of a call with all its attempts; by default 5 seconds.
    pub fn timeout(mut self, timeout: Duration) -> DynamoStoreBuilder {
        self.timeout = timeout;
        self
    }

    /// Sets how often a call is attempted while the service fails; by default 5 times. 0 counts as 1.
    pub fn tries(mut self, tries: u32) -> DynamoStoreBuilder {
        self.tries = tries.max(1);
        self
    }

    /// Sets whether a missing table is created; by default it has to exist.
    pub fn create_table(mut self, creates: bool) -> DynamoStoreBuilder {
        self.creates = creates;
        self
    }

    /// Sets for how long a denial is cached before the table is read again; by default a second. What this process gives
    /// back counts at once, what others give back after this time at the latest.
    pub fn refusals_kept(mut self, time: Duration) -> DynamoStoreBuilder {
        self.settings.denial_cached = tollgate_core::Span::covering(time);
        self
    }

    /// Sets whether writes may be relative, so that clients that write at once do not conflict; by default they may. Without
    /// it every write sets what the bucket will be, and is made again whenever another client was quicker.
    pub fn fast_path(mut self, is_on: bool) -> DynamoStoreBuilder {
        self.settings.fast_path = is_on;
        self
    }

    /// Sets in how many items a new bucket is, by default 1, and the most items, by default 32. A bucket that is written to
    /// more often than an item bears is split into twice as many. Both are rounded to powers of two. Only meters can be
    /// split.
    pub fn shards(mut self, first: u32, most: u32) -> DynamoStoreBuilder {
        let power = |count: u32| count.clamp(1, SHARDS_MAX).next_power_of_two();
        (self.settings.shards_min, self.settings.shards_max) = (power(first), power(most).max(power(first)));
        self
    }

    /// Sets how a call that takes from several buckets is written; by default in parallel.
    pub fn chains(mut self, chains: Chains) -> DynamoStoreBuilder {
        self.settings.chains = chains;
        self
    }

    /// Switches prefetch on: a process holds up to so many percent of each capacity of a bucket that it takes from often,
    /// so that most takes need no call. What no caller takes for `idle` is given back. What one process holds cannot be
    /// taken by another, and is lost until it is refilled if the process dies. Only for buckets that have meters only. By
    /// default it is off.
    pub fn prefetch(mut self, percent: u8, idle: Duration) -> DynamoStoreBuilder {
        self.settings.prefetch = Prefetch::new(percent, idle);
        self
    }

    /// Sets how long records of usage are kept that this process writes to; by default [`UsageRetention::default`]. An
    /// aggregator writes to them as well, with the setting of its store.
    pub fn usage_retention(mut self, usage_retention: UsageRetention) -> DynamoStoreBuilder {
        self.settings.usage_retention = usage_retention;
        self
    }

    /// Opens the table: checks that it exists and has our keys and indexes, and learns the service's time.
    ///
    /// # Cancel safety
    ///
    /// A table that is being created may be created.
    ///
    /// # Errors
    ///
    /// [`DynamoOpenError`] with what is wrong and what to do. A table that is not ours is left as it is.
    pub fn build(self) -> Reply<'static, Result<DynamoStore, DynamoOpenError>> {
        let workers = match Workers::start(NAME) {
            Ok(workers) => workers,
            Err(error) => return Reply::ready(Err(DynamoOpenError::Host(error.to_string()))),
        };
        let handle = workers.handle().clone();
        let opening = handle.spawn(self.open(workers));
        Reply::later(async {
            match opening.await {
                Ok(opened) => opened,
                Err(error) => Err(DynamoOpenError::Host(error.to_string())),
            }
        })
    }

    async fn open(mut self, workers: Workers) -> Result<DynamoStore, DynamoOpenError> {
        if self.table.is_empty() {
            return Err(DynamoOpenError::BadSetting("the table has no name; name it".into()));
        }
        if self.settings.chains == Chains::Transaction {
            if self.settings.shards_min > 1 {
                let why = "chains in a transaction need buckets of one item; leave `shards` at 1";
                return Err(DynamoOpenError::BadSetting(why.into()));
            }
            self.settings.shards_max = 1;
        }
        let time = ServiceTime::new(self.clock.clone());
        let config = self.client_config().await?;
        let location = self.location(&config);
        let service = self.service(&config, &time, workers);
        self.prepare(&service, &location).await?;
        let again = {
            let (builder, config) = (self.clone(), config.clone());
            move || builder.open_again(&config, &time)
        };
        let inner = DynamoInner::new(service, self.settings);
        let inner = inner.map_err(|why| DynamoOpenError::Host(why.to_string()))?;
        Ok(DynamoStore(Reopened::new(inner, again)))
    }

    /// Opens the store in a forked process: with its own connections and threads, and another name for its writes.
    /// Credentials are read anew, because their provider may be a thread of the parent.
    fn open_again(&self, config: &SdkConfig, time: &ServiceTime) -> Arc<DynamoInner> {
        let workers = Workers::start_again(NAME);
        let (handle, time) = (workers.handle().clone(), time.of_a_fork());
        // In a thread of its own, because the caller may be a task of another runtime.
        let found = thread::scope(|scope| {
            let found = scope.spawn(|| handle.block_on(self.client_config()));
            found.join().ok().and_then(Result::ok)
        });
        let service = self.service(found.as_ref().unwrap_or(config), &time, workers);
        let inner = DynamoInner::new(service, self.settings.clone());
        inner.expect("there was randomness when the store was opened")
    }

    fn service(&self, config: &SdkConfig, time: &ServiceTime, workers: Workers) -> TableService {
        #[cfg(feature = "aggregate")]
        let streams = {
            let config = aws_sdk_dynamodbstreams::config::Builder::from(config);
            config.time_source(SharedTimeSource::new(time.clone())).interceptor(Bounded).build()
        };
        let config = ClientConfig::from(config)
            .retry_config(RetryConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .time_source(SharedTimeSource::new(time.clone()))
            // The SDK would correct a time that is corrected already.
            .disable_clock_skew_correction(true)
            .interceptor(time.clone())
            .interceptor(Bounded);
        TableService {
            client: aws_sdk_dynamodb::Client::from_conf(config.build()),
            #[cfg(feature = "aggregate")]
            streams,
            table: self.table.clone(),
            clock: time.clock().clone(),
            timeout: self.timeout,
            retry: RetryPolicy { attempts: self.tries },
            counts: Default::default(),
            workers,
        }
    }

    /// Makes sure that there is a table with our keys and indexes.
    async fn prepare(&self, service: &TableService, location: &str) -> Result<(), DynamoOpenError> {
        let described = table::describe(service).await;
        let open_error = |failure| DynamoOpenError::of(failure, &self.table, location);
        let found = match described.map_err(open_error) {
            Err(DynamoOpenError::NoTable(..)) if self.creates => table::create(service, location).await?,
            Ok(found) if found.table_status == Some(TableStatus::Creating) => {
                table::active(service, location).await?
            }
            found => found?,
        };
        table::check(&found)
    }

    /// Returns the endpoint, the region and the credentials.
    async fn client_config(&self) -> Result<SdkConfig, DynamoOpenError> {
        let config = if self.is_local() { self.local_config() } else { self.aws_config().await? };
        let mut config = config.into_builder();
        if let Some(http_client) = &self.http_client {
            config = config.http_client(http_client.clone());
        }
        if let Some(endpoint) = &self.endpoint {
            endpoint::check(endpoint)?;
            config = config.endpoint_url(endpoint);
        }
        Ok(config.build())
    }

    fn is_local(&self) -> bool {
        self.http_client.is_some() || self.endpoint.as_deref().is_some_and(endpoint::is_on_this_host)
    }

    fn local_config(&self) -> SdkConfig {
        let region = self.region.clone().or_else(|| variable("AWS_REGION"));
        let region = region.unwrap_or_else(|| LOCAL_REGION.into());
        let credentials = self.credentials.clone();
        let credentials = credentials.unwrap_or_else(|| SharedCredentialsProvider::new(local_credentials()));
        SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(region))
            .credentials_provider(credentials)
            .build()
    }

    async fn aws_config(&self) -> Result<SdkConfig, DynamoOpenError> {
        let mut loader = aws_config::defaults(aws_config::BehaviorVersion::latest());
        if let Some(region) = &self.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(credentials) = &self.credentials {
            loader = loader.credentials_provider(credentials.clone());
        }
        let config = loader.load().await;
        if config.region().is_none() {
            let message = "no region is set; name one with `region`, in AWS_REGION or in the profile";
            return Err(DynamoOpenError::BadSetting(message.into()));
        }
        self.find_credentials(&config).await?;
        Ok(config)
    }

    /// Checks that there are credentials. Without any, the SDK waits for the metadata service of an instance, and a call would
    /// time out.
    async fn find_credentials(&self, config: &SdkConfig) -> Result<(), DynamoOpenError> {
        let nothing = || DynamoOpenError::Refused(self.table.clone(), ServiceError::NoCredentials);
        let provider = config.credentials_provider().ok_or_else(nothing)?;
        let found = tokio::time::timeout(self.timeout, provider.provide_credentials()).await;
        found.map_err(|_| nothing())?.map_err(|_| nothing()).map(drop)
    }

    /// Returns the location of the table, for error messages.
    fn location(&self, config: &SdkConfig) -> String {
        let region = config.region().map(|region| region.to_string()).unwrap_or_default();
        match &self.endpoint {
            Some(endpoint) => format!("{region} at {endpoint}"),
            None => region,
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the credentials of the environment, or such as only a service without accounts accepts.
fn local_credentials() -> Credentials {
    match (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")) {
        (Some(id), Some(secret)) => {
            Credentials::new(id, secret, variable("AWS_SESSION_TOKEN"), None, "environment")
        }
        _ => Credentials::new("local", "local", None, None, "tollgate"),
    }
}
