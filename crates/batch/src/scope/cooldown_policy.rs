//! What holds for the cooldown of a scope.

use std::time::Duration;

use tollgate::Span;

/// How long every call was refused, by this, is how long to cool down: what lasts longer is tried more rarely.
const REFUSED_PART: u64 = 8;

/// What holds for a cooldown.
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
    /// The longest cooldown, unless it is set.
    pub const CAP: Span = Span::from_secs(600);

    /// The first cooldown where nothing is advised and nothing is known.
    pub const FIRST: Span = Span::from_secs(1);

    /// The longest cooldown where nothing is advised.
    pub const UNADVISED_MAX: Span = Span::from_secs(60);

    /// The longest outage, unless it is set.
    pub const OUTAGE_MAX: Span = Span::from_secs(30 * 60);

    /// How much is added at most to a cooldown, of a thousand, unless it is set.
    pub const JITTER: u64 = 50;

    /// How long to cool down where the provider advises nothing. Unless it is set that is learned: a second at first, what
    /// gives back a few calls once the rate is known, and twice as long each time nothing has gone through since.
    #[must_use]
    pub fn default_cooldown(self, default: Duration) -> CooldownPolicy {
        CooldownPolicy { default: Some(Span::covering(default)), ..self }
    }

    /// How long to cool down at most, whatever is advised.
    #[must_use]
    pub fn cap(self, cap: Duration) -> CooldownPolicy {
        CooldownPolicy { cap: Span::covering(cap), ..self }
    }

    /// Up to how much is added to a cooldown by chance, in thousandths of it. Nothing is ever subtracted.
    #[must_use]
    pub fn jitter(self, thousandths: u64) -> CooldownPolicy {
        CooldownPolicy { jitter: thousandths.min(1_000), ..self }
    }

    /// For how long every call may fail before the scope is closed.
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

    /// How long to cool down for, before jitter. `learned` is how long it takes where nothing is advised, if that is known,
    /// and `streak` how many cooldowns nothing has gone through in.
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

    /// What is added to a cooldown, given any number.
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
