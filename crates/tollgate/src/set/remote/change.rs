//! Changes to a set in a store that everybody sees who shares it.

use tollgate_core::{Costs, Limit, Limits, Span, Tick, Usage};
use tollgate_store::{Applied, Freed, Op, StoreError};

use super::{Remote, STALE_MAX, unsettled};
use crate::ReplaceError;

/// The bits of a version that say when limits were replaced, in milliseconds since the epoch. Together with the
/// version that they were built with a double can hold it, which is what some stores count in.
const REPLACED_BITS: u32 = 41;

/// The version of limits that were built as the set's `version`th.
pub(in crate::set) fn built_version(version: u16) -> u64 {
    u64::from(version) << REPLACED_BITS
}

/// The version of limits that take the place of some of `version` at `now`: later than those, and than any that others
/// replaced them with before, but not than those of a set that is built with the next version.
fn replacing_version(version: u64, now: Tick) -> u64 {
    let millis = (now.as_micros() / 1_000).min((1 << REPLACED_BITS) - 1);
    (version >> REPLACED_BITS << REPLACED_BITS | millis).max(version + 1)
}

impl Remote {
    /// Puts a limit in force in place of the one of the same name.
    pub(in crate::set) async fn replace(&self, limit: Limit) -> Result<(), ReplaceError> {
        for _ in 0..STALE_MAX {
            let old = self.in_force();
            let version = replacing_version(old.version(), self.clock().now());
            let new = old.replacing(limit.clone())?.at_version(version);
            let costs = Costs::none(new.len());
            // Taking nothing puts limits in force.
            match self.apply(self.step(&new, Op::Take { costs: &costs, term: None })).await? {
                Applied::Stale(_) => self.learn(&old).await?,
                _ => {
                    self.hear(&new);
                    self.backend.wait_queues().notify(&Freed::all(&self.namespace, &self.key));
                    return Ok(());
                }
            }
        }
        Err(unsettled().into())
    }

    /// Begins a cooldown, or extends one. Answers whether that is news here.
    pub(in crate::set) async fn cool_down(&self, span: Span) -> Result<bool, StoreError> {
        let limits = self.in_force();
        let (now, none) = (self.clock().now(), Costs::none(limits.len()));
        let charged =
            |limit: &Limit| if limit.is_cooldown() { span.as_micros().saturating_add(1) } else { 0 };
        let used: Vec<u64> = limits.iter().map(charged).collect();
        let usage = Usage { at: now, reserved: &none, used: &used, holder: None };
        self.apply(self.step(&limits, Op::Settle(usage))).await?;
        let until = (now + span).as_micros();
        Ok(self.cooling.fetch_max(until, std::sync::atomic::Ordering::Relaxed) < until)
    }

    /// Ends a cooldown before its time.
    pub(in crate::set) async fn end_cool_down(&self) -> Result<(), StoreError> {
        let limits = self.in_force();
        let credit = cooldown_only(&limits);
        self.apply(self.step(&limits, Op::TopUp(&credit))).await?;
        self.hear_cooling(None);
        Ok(())
    }
}

fn cooldown_only(limits: &Limits) -> Costs {
    Costs::none(limits.len()).of_cooldown(limits, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replacement_is_later_than_what_it_replaces_and_earlier_than_the_next_that_is_built() {
        let (first, next) = (built_version(1), built_version(2));
        let now = Tick::from_secs(1_800_000_000);
        let one = replacing_version(first, now);
        let two = replacing_version(one, now);
        assert!(first < one && one < two && two < next);
        assert!(replacing_version(first, now + Span::from_secs(1)) > two, "the later one wins");
        assert!(replacing_version(next, now) > next);
        assert!(built_version(crate::LimitSetBuilder::VERSION_MAX) < 1 << 53);
        assert!(replacing_version(first, Tick::MAX) < next);
    }
}
