//! DynamoDB with no AWS.
//!
//! An [`Engine`] is the service in this process, on SQLite, and gives the SDK a client that answers its real requests
//! with no socket in between: a table for each test, or for a laptop. [`Faults`] come between the SDK and any client,
//! to see what becomes of what is built on it when the service throttles, fails, or loses an answer.
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
