//! Fault injection between the SDK and any HTTP client.

mod connector;
mod fault;
mod plan;
mod refusal;
mod unprocessed;

use std::sync::Arc;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use parking_lot::Mutex;

use connector::Faulty;
pub use fault::CallFault;
pub use plan::FaultRates;
use plan::{FaultSchedule, Script};

/// An HTTP client for the SDK that injects faults on the way to another client. Clones share their
/// state.
///
/// Faults requested with [`Faults::next`] come first; then come random faults, which are the same
/// for the same seed as long as the calls are the same.
///
/// ```
/// use tollgate_dynamo_local::{Engine, FaultRates, Faults};
///
/// let engine = Engine::in_memory()?;
/// let faults = Faults::new(engine.http_client()).seeded(7, FaultRates::survivable(50));
/// assert_eq!(faults.count(), 0);
/// # Ok::<(), tollgate_dynamo_local::EngineError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Faults {
    client: SharedHttpClient,
    plan: Arc<Mutex<FaultSchedule>>,
}

impl Faults {
    /// Creates a client that forwards to `client`, without faults.
    pub fn new(client: SharedHttpClient) -> Faults {
        Faults { client, plan: Arc::default() }
    }

    /// Adds random faults.
    #[must_use]
    pub fn seeded(self, seed: u64, rates: FaultRates) -> Faults {
        self.plan.lock().seed(seed, rates);
        self
    }

    /// Adds a fault at the next call that can have it: not every operation can have every fault.
    pub fn next(&self, fault: CallFault) {
        self.plan.lock().add(Script { operation: None, fault });
    }

    /// Adds a fault at the next call of an operation, such as `UpdateItem`.
    pub fn next_of(&self, operation: &'static str, fault: CallFault) {
        self.plan.lock().add(Script { operation: Some(operation), fault });
    }

    /// Returns how many faults were injected.
    pub fn count(&self) -> u64 {
        self.plan.lock().count()
    }
}

impl HttpClient for Faults {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let inner = self.client.http_connector(settings, components);
        SharedHttpConnector::new(Faulty { inner, plan: Arc::clone(&self.plan) })
    }
}
