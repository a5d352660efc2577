//! The store itself: whether it answers, what is in it, and whether that is as it should be.

mod check;
mod status;
mod upgrade;
mod version;

pub(super) use check::check;
pub(super) use status::status;
pub(super) use upgrade::upgrade;
pub(super) use version::version;
