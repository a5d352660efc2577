//! Completions, manual and reference, generated from the command line.

mod completions;
mod man;
mod reference;

pub(super) use completions::completions;
pub(super) use man::man;
pub(super) use reference::reference;
