//! DynamoDB without AWS: an embedded engine, and fault injection.
//!
//! An [`Engine`] is the service in this process, on SQLite. It provides an HTTP client for the SDK
//! that answers real requests without a socket: a table for each test, or for development.
//! [`Faults`] come between the SDK and any HTTP client, to test how its users behave when the
//! service throttles, fails, or loses an answer.
//!
//! ```
//! use tollgate_dynamo_local::Engine;
//!
//! let engine = Engine::in_memory()?;
//! let client = engine.http_client();
//! assert_eq!(engine.calls().all(), 0);
//! # Ok::<(), tollgate_dynamo_local::EngineError>(())
//! ```

mod answer;
mod calls;
mod connector;
mod dispatch;
mod engine;
mod faults;
mod operation;
#[cfg(feature = "server")]
mod server;
mod time;

pub use calls::Calls;
pub use engine::{Engine, EngineError};
pub use faults::{CallFault, FaultRates, Faults};
#[cfg(feature = "server")]
pub use server::serve;
