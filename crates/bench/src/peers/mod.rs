//! The other programs, each behind functions that set one side of a row up.
//!
//! Every limit is so large that no call is refused: the rows compare the price of being admitted.

pub(crate) mod governor;
pub(crate) mod limitador;
