//! Runtime for stores across a network: threads, futures that use them wherever they are polled, background work.

mod background;
mod backoff;
mod call_timer;
mod ids;
mod pending;
mod reopened;
mod run_to_completion;
mod runtime;

pub use background::Background;
pub use backoff::RetryPauses;
pub use call_timer::CallTimer;
pub use ids::{time_ordered_id, unique_id};
pub use pending::{PendingCall, PendingCalls};
pub use reopened::Reopened;
pub use run_to_completion::RunToCompletion;
pub use runtime::{Within, Workers};
