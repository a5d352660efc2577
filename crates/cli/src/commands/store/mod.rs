//! Commands for the store itself: `status`, `version`, `check` and `upgrade`.

mod check;
mod status;
mod upgrade;
mod version;

pub(super) use check::check;
pub(super) use status::status;
pub(super) use upgrade::upgrade;
pub(super) use version::version;
