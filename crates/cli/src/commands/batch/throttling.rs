//! Cooldowns, slow start and time budgets of a batch, as the command line sets them.

use tollgate_batch::{Batch, CooldownPolicy};

use crate::args::BatchRetryArgs;

/// Applies the options to a batch. Options that are not given keep the defaults of the library.
pub(super) fn apply(mut batch: Batch, args: &BatchRetryArgs) -> Batch {
    let mut rules = CooldownPolicy::default();
    if let Some(cooldown) = args.cooldown {
        rules = rules.default_cooldown(cooldown);
    }
    if let Some(longest) = args.cooldown_max {
        rules = rules.cap(longest);
    }
    if let Some(longest) = args.outage_max {
        rules = rules.outage_max(longest);
    }
    batch = batch.cooldown(rules);
    if let Some(budget) = args.throttle_budget {
        batch = batch.throttle_budget(budget);
    }
    if let Some(deadline) = args.request_deadline {
        batch = batch.item_deadline(deadline);
    }
    if let Some(span) = args.slow_start {
        batch = batch.slow_start(span);
    }
    batch
}
