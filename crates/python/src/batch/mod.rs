//! Batches: the driver of `tollgate-batch`, whose calls are made by tasks of an event loop.
//!
//! The driver runs in a thread of its own, which needs no GIL: it knows ids and numbers, and outputs as JSON if there is a journal. It
//! sends a call to the event loop ([`call::BatchCall`]), and gets the reply back; items are sent to it as it asks for them.

mod call;
mod run;

pub(crate) use call::BatchCall;
pub(crate) use run::BatchRun;
