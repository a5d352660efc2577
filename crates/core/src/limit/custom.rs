//! Custom limits: rules that the caller writes.

use std::fmt;

use crate::{Ready, Tick};

/// A rule of the caller's own, beside the ones that [`Limit`](crate::Limit) has: a limit of a set in this process that is
/// taken together with all others, waited for, settled and shown like them. Made a limit by
/// [`Limit::custom`](crate::Limit::custom).
///
/// Every function is pure: the time is an argument and all that may change is the state. `now` never goes back from one
/// call to the next, also if the clock does. An amount is at least 1, and not more than the capacity unless a settlement
/// charges it.
///
/// A set calls it under its lock, so a rule is quick and does not use that set. If it panics, the caller of the set sees the
/// panic, and the set is as it was before.
///
/// Only a set in this process can have one. A store keeps limits and states as numbers that other programs read, so a set
/// [in a store](crate::LimitsError::Custom) refuses it when it is built.
///
/// ```
/// use tollgate_core::{CustomLimit, Limit, Limits, Ready, Span, Tick};
///
/// /// At least so long between two calls.
/// struct Spacing(Span);
///
/// impl CustomLimit for Spacing {
///     /// When the next call may come.
///     type State = Tick;
///
///     fn capacity(&self) -> u64 {
///         1
///     }
///
///     fn fresh(&self) -> Tick {
///         Tick::ZERO
///     }
///
///     fn ready(&self, next: &Tick, now: Tick, _: u64) -> Ready {
///         if now < *next { Ready::At(*next) } else { Ready::Now }
///     }
///
///     fn available(&self, next: &Tick, now: Tick) -> i64 {
///         (now >= *next).into()
///     }
///
///     fn charge(&self, next: &mut Tick, now: Tick, _: u64) {
///         *next = now + self.0;
///     }
///
///     fn refund(&self, next: &mut Tick, at: Tick, now: Tick, _: u64) {
///         // Unless another call has come since.
///         if *next == at + self.0 {
///             *next = now;
///         }
///     }
/// }
///
/// let limits = Limits::new([
///     Limit::custom("spacing", Spacing(Span::from_secs(2))),
///     Limit::per_minute("rpm", 10),
/// ])?;
/// assert_eq!(limits[0].to_string(), "spacing: 1 (custom)");
/// # Ok::<(), tollgate_core::LimitsError>(())
/// ```
pub trait CustomLimit: Send + Sync + 'static {
    /// What the rule remembers of the past.
    type State: Clone + PartialEq + fmt::Debug + Send + Sync + 'static;

    /// The most that one demand may ask; a larger one is refused at once. From 1 to [`AMOUNT_MAX`](crate::AMOUNT_MAX), or
    /// [`UNBOUNDED`](crate::UNBOUNDED) for a rule that never refuses, which then is not asked anything.
    fn capacity(&self) -> u64;

    /// The state of which nothing was used.
    fn fresh(&self) -> Self::State;

    /// When `amount` fits if no other caller takes or gives back until then. [`Ready::Now`] admits it; an instant that is not
    /// later than `now` means the same. Waiters are looked at again at the instant that this returns, and not before unless
    /// something is given back; [`Ready::Unknown`] is for what only that can change.
    fn ready(&self, state: &Self::State, now: Tick, amount: u64) -> Ready;

    /// How much is left at `now`, for statuses and denials; below zero it is debt.
    fn available(&self, state: &Self::State, now: Tick) -> i64;

    /// Takes `amount` at `now`: what was found to fit, or what a settlement adds, which may be any amount and is charged
    /// whether it fits or not.
    fn charge(&self, state: &mut Self::State, now: Tick, amount: u64);

    /// Gives back `amount` of what was taken at `at` and not used.
    fn refund(&self, state: &mut Self::State, at: Tick, now: Tick, amount: u64);

    /// The state under this rule that says the same as `state` under `old`, which this rule replaces. By default the state
    /// itself. A replacement of another type charges what is used of the old capacity to a fresh state.
    #[expect(unused_variables, reason = "the names are for those who write another one")]
    fn adopt(&self, old: &Self, state: &Self::State, now: Tick) -> Self::State {
        state.clone()
    }
}
