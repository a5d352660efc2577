//! Custom limits: rules that the caller implements.

use std::fmt;

use crate::{Ready, Tick};

/// A rule of the caller, beside the ones that [`Limit`](crate::Limit) has.
/// [`Limit::custom`](crate::Limit::custom) makes a limit of it that is taken together with the
/// others of a set, waited for, settled and shown like them.
///
/// Every function is pure: the time is an argument, and only the state may change. `now` never goes
/// back from one call to the next, even if the clock does. An amount is at least 1, and at most the
/// capacity unless a settlement charges it.
///
/// A set calls the rule under its lock, so the rule must be quick and must not use that set. If the
/// rule panics, the caller of the set sees the panic, and the set is unchanged.
///
/// Only a set in this process can have a custom limit. A store holds limits and states as numbers
/// that other programs read, so a set [in a store](crate::LimitsError::Custom) rejects it when it
/// is built.
///
/// ```
/// use tollgate_core::{CustomLimit, Limit, Limits, Ready, Span, Tick};
///
/// /// A minimum time between two calls.
/// struct Spacing(Span);
///
/// impl CustomLimit for Spacing {
///     /// The instant from which the next call may start.
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
///         // Unless another call has started since.
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
    /// The state of the rule.
    type State: Clone + PartialEq + fmt::Debug + Send + Sync + 'static;

    /// Returns the maximum amount of one demand; a larger demand is refused at once. It is 1 to
    /// [`AMOUNT_MAX`](crate::AMOUNT_MAX), or [`UNBOUNDED`](crate::UNBOUNDED) for a rule that never
    /// denies, which is then never called.
    fn capacity(&self) -> u64;

    /// Returns the state of an unused limit.
    fn fresh(&self) -> Self::State;

    /// Returns when `amount` fits if no other caller takes or releases anything until then.
    /// [`Ready::Now`] admits it, and so does an instant that is not later than `now`. Waiters are
    /// checked again at the returned instant, and earlier only after a release; [`Ready::Unknown`]
    /// is for amounts that only a release can admit.
    fn ready(&self, state: &Self::State, now: Tick, amount: u64) -> Ready;

    /// Returns how much is left at `now`, for statuses and denials; a negative number is debt.
    fn available(&self, state: &Self::State, now: Tick) -> i64;

    /// Takes `amount` at `now`: an amount that fits, or the excess of a settlement, which may be
    /// any amount and is charged whether it fits or not.
    fn charge(&self, state: &mut Self::State, now: Tick, amount: u64);

    /// Refunds `amount` that was taken at `at` and not used.
    fn refund(&self, state: &mut Self::State, at: Tick, now: Tick, amount: u64);

    /// Converts `state` of the rule `old`, which this rule replaces, to a state of this rule. The
    /// default returns the state unchanged. If the new rule is of another type, the bucket charges
    /// what was used under the old rule to a fresh state instead.
    #[expect(unused_variables, reason = "implementations use the names in their documentation")]
    fn adopt(&self, old: &Self, state: &Self::State, now: Tick) -> Self::State {
        state.clone()
    }
}
