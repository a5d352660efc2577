//! The peers, each behind functions that set up one side of a row.
//!
//! Every limit is so large that no call is denied: the rows compare the cost of an admission.

pub(crate) mod governor;
pub(crate) mod limitador;
