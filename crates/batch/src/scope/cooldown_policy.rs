//! The policy for the cooldowns of a scope.

use std::time::Duration;

use tollgate::Span;

/// The time for which every call was refused, divided by this, is a lower bound of the cooldown:
/// the longer it lasts, the rarer the probes.
const REFUSED_PART: u64 = 8;

/// How long a scope cools down.
///
/// ```
/// use std::time::Duration;
/// use tollgate_batch::{Batch, CooldownPolicy};
///
/// let policy = CooldownPolicy::default().cap(Duration::from_secs(120)).jitter(100);
/// let batch = Batch::new().cooldown(policy);
/// # let _ = batch;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CooldownPolicy {
    default: Option<Span>,
    cap: Span,
    jitter: u64,
    outage_max: Span,
}

impl Default for CooldownPolicy {
    fn default() -> CooldownPolicy {
        CooldownPolicy {
            default: None,
            cap: CooldownPolicy::CAP,
            jitter: CooldownPolicy::JITTER,
            outage_max: CooldownPolicy::OUTAGE_MAX,
        }
    }
}

impl CooldownPolicy {
    /// The default of the longest cooldown.
    pub const CAP: Span = Span::from_secs(600);

    /// The first cooldown without advice, before the rate is known.
    pub const FIRST: Span = Span::from_secs(1);

    /// The longest cooldown without advice.
    pub const UNADVISED_MAX: Span = Span::from_secs(60);

    /// The default of the longest outage.
    pub const OUTAGE_MAX: Span = Span::from_secs(30 * 60);

    /// The default of the most that jitter adds to a cooldown, in thousandths of it.
    pub const JITTER: u64 = 50;

    /// Sets how long to cool down if the provider gives no advice. By default that is learned: a
    /// second at first, the time of a few calls once the rate is known, and twice as long each time
    /// no call has passed since.
    #[must_use]
    pub fn default_cooldown(self, default: Duration) -> CooldownPolicy {
        CooldownPolicy { default: Some(Span::covering(default)), ..self }
    }

    /// Sets the longest cooldown, whatever the provider advises.
    #[must_use]
    pub fn cap(self, cap: Duration) -> CooldownPolicy {
        CooldownPolicy { cap: Span::covering(cap), ..self }
    }

    /// Sets the most that jitter adds to a cooldown, in thousandths of it. Jitter never shortens a
    /// cooldown.
    #[must_use]
    pub fn jitter(self, thousandths: u64) -> CooldownPolicy {
        CooldownPolicy { jitter: thousandths.min(1_000), ..self }
    }

    /// Sets for how long every call may fail before the scope is closed.
    #[must_use]
    pub fn outage_max(self, longest: Duration) -> CooldownPolicy {
        CooldownPolicy { outage_max: Span::covering(longest), ..self }
    }

    pub(super) fn longest_outage(&self) -> Span {
        self.outage_max
    }

    pub(super) fn cap_span(&self) -> Span {
        self.cap
    }

    /// Returns the length of a cooldown without jitter. `learned` is the length without advice, and
    /// `streak` the number of cooldowns in a row without a call passing.
    pub(super) fn length(
        &self,
        advice: Option<Duration>,
        learned: Span,
        streak: u32,
        refused_for: Span,
    ) -> Span {
        let length = match (advice, self.default) {
            (Some(advice), _) => Span::covering(advice),
            (None, Some(default)) => doubled(default, streak, self.cap),
            (None, None) => {
                let part = Span::from_micros(refused_for.as_micros() / REFUSED_PART);
                doubled(learned, streak.min(1), CooldownPolicy::UNADVISED_MAX)
                    .max(part.min(CooldownPolicy::UNADVISED_MAX))
            }
        };
        length.min(self.cap)
    }

    /// Returns the jitter of a cooldown, from a random number.
    pub(super) fn added(&self, length: Span, random: u64) -> Span {
        let most = u128::from(length.as_micros()) * u128::from(self.jitter) / 1_000;
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        Span::from_micros(random % most.saturating_add(1).max(1))
    }
}

fn doubled(first: Span, times: u32, most: Span) -> Span {
    let factor = 1_u64.checked_shl(times).unwrap_or(u64::MAX);
    Span::from_micros(first.as_micros().saturating_mul(factor)).min(most.max(first))
}
