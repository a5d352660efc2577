//! Faults on demand, between the SDK and any client.

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

/// A client for the SDK that lets things go wrong on the way to another one. Clones are one.
///
/// What was asked for with [`Faults::next`] comes first; then faults come at random, the same for the same seed as
/// long as the calls are the same.
#[derive(Clone, Debug)]
pub struct Faults {
    client: SharedHttpClient,
    plan: Arc<Mutex<FaultSchedule>>,
}

impl Faults {
    /// No faults yet, on the way to `client`.
    pub fn new(client: SharedHttpClient) -> Faults {
        Faults { client, plan: Arc::default() }
    }

    /// With faults at random.
    #[must_use]
    pub fn seeded(self, seed: u64, rates: FaultRates) -> Faults {
        self.plan.lock().seed(seed, rates);
        self
    }

    /// With a fault at the next call that can have it: not every operation can have every fault.
    pub fn next(&self, fault: CallFault) {
        self.plan.lock().add(Script { operation: None, fault });
    }

    /// With a fault at the next call of an operation, such as `UpdateItem`.
    pub fn next_of(&self, operation: &'static str, fault: CallFault) {
        self.plan.lock().add(Script { operation: Some(operation), fault });
    }

    /// How many faults there were.
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
