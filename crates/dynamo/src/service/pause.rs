//! How long to wait before another try.

use std::time::Duration;

use crate::Trouble;

/// What the first pause is at most.
const FIRST: Duration = Duration::from_millis(10);

/// What any pause is at most.
const LONGEST: Duration = Duration::from_secs(1);

/// How often a transaction that met another one is tried: that other one is over in milliseconds, so this says
/// nothing about the service.
const CONFLICT_TRIES: u32 = 40;

/// How often to try.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// How often at most, when the service is in trouble.
    pub(crate) tries: u32,
}

/// How often was tried, and what for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tried {
    troubles: u32,
    conflicts: u32,
}

impl Tried {
    /// How long to wait after another try that failed like this; `None` if that was the last.
    pub(crate) fn pause(&mut self, trouble: &Trouble, patience: Patience) -> Option<Duration> {
        if !trouble.is_passing() {
            return None;
        }
        let (tried, tries) = match trouble {
            Trouble::Conflict | Trouble::InProgress => {
                (&mut self.conflicts, CONFLICT_TRIES.max(patience.tries))
            }
            _ => (&mut self.troubles, patience.tries),
        };
        *tried += 1;
        (*tried < tries).then(|| longest(*tried - 1).mul_f64(fraction()))
    }
}

/// Twice as long each time.
fn longest(round: u32) -> Duration {
    FIRST.saturating_mul(1 << round.min(16)).min(LONGEST)
}

/// Anything from 0 to 1: those who failed together must not come back together.
fn fraction() -> f64 {
    // Without randomness half of the pause is as good as any.
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    f64::from(random) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience { tries: 5 };

    #[test]
    fn tries_are_bounded_and_pauses_grow() {
        let mut tried = Tried::default();
        let pauses: Vec<_> = std::iter::from_fn(|| tried.pause(&Trouble::Throttled, PATIENCE)).collect();
        assert_eq!(pauses.len(), 4);
        for (round, pause) in pauses.into_iter().enumerate() {
            assert!(pause <= FIRST * 2_u32.pow(round as u32), "{pause:?}");
        }
        assert_eq!(longest(40), LONGEST);
    }

    #[test]
    fn a_conflict_is_no_trouble_of_the_service() {
        let mut tried = Tried::default();
        let conflicts = std::iter::from_fn(|| tried.pause(&Trouble::Conflict, PATIENCE)).count();
        assert_eq!(conflicts, CONFLICT_TRIES as usize - 1);
        assert!(tried.pause(&Trouble::Server(500), PATIENCE).is_some());
    }

    #[test]
    fn what_does_not_pass_is_not_tried_again() {
        assert_eq!(Tried::default().pause(&Trouble::NoCredentials, PATIENCE), None);
    }
}
