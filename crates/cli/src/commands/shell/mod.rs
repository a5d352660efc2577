//! What is made from the command line itself: completions, the manual and the reference.

mod completions;
mod man;
mod reference;

pub(super) use completions::completions;
pub(super) use man::man;
pub(super) use reference::reference;
