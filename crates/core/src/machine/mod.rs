//! Machines: how each kind of limit counts.
//!
//! A machine holds the constants of a limit, computed once when the limit is built; what changes is
//! a [`State`](crate::State). Each file has one machine and the argument why it is exact.

pub(crate) mod cooldown;
mod custom;
mod fixed_window;
mod gauge;
mod meter;
mod quota;
mod sliding_window;

pub(crate) use custom::{Custom, CustomState};
pub(crate) use fixed_window::FixedWindow;
pub(crate) use gauge::Holders;
pub(crate) use meter::{Credit, Meter};
pub(crate) use quota::{Period, Quota};
pub use sliding_window::SLIDING_STEPS;
pub(crate) use sliding_window::{SlidingWindow, WindowLog};

/// The constants of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    Meter(Meter),
    Fixed(FixedWindow),
    Sliding(SlidingWindow),
    Gauge,
    Cooldown,
    Quota(Quota),
    Custom(Custom),
    Unbounded,
}
