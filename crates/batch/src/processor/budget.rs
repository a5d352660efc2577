//! The budget of a batch: tokens and money that it has used, and may use.

use crate::policy::Policy;

/// Tokens and money: used, and reserved for calls in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Budget {
    pub(super) tokens: u64,
    pub(super) cost_micros: u64,
    reserved_tokens: u64,
    reserved_cost: u64,
}

/// Whether a call fits into the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Fits,
    /// It fits if calls in flight use less than they have reserved.
    Perhaps,
    Never,
}

impl Budget {
    pub(super) fn fit(&self, policy: &Policy, tokens: u64, cost: u64) -> Fit {
        let one = fit(policy.tokens_max, self.tokens, self.reserved_tokens, tokens);
        let other = fit(policy.cost_micros_max, self.cost_micros, self.reserved_cost, cost);
        match (one, other) {
            (Fit::Fits, other) => other,
            (Fit::Never, _) | (_, Fit::Never) => Fit::Never,
            _ => Fit::Perhaps,
        }
    }

    pub(super) fn reserve(&mut self, tokens: u64, cost: u64) {
        self.reserved_tokens = self.reserved_tokens.saturating_add(tokens);
        self.reserved_cost = self.reserved_cost.saturating_add(cost);
    }

    /// Releases a reservation.
    pub(super) fn release(&mut self, tokens: u64, cost: u64) {
        self.reserved_tokens = self.reserved_tokens.saturating_sub(tokens);
        self.reserved_cost = self.reserved_cost.saturating_sub(cost);
    }

    pub(super) fn spend(&mut self, tokens: u64, cost: u64) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.cost_micros = self.cost_micros.saturating_add(cost);
    }
}

fn fit(most: Option<u64>, used: u64, reserved: u64, more: u64) -> Fit {
    let Some(most) = most else { return Fit::Fits };
    // Once the budget is used up, a call with an estimate of 0 does not start either: it may cost
    // something.
    if used >= most || used.saturating_add(more) > most {
        return Fit::Never;
    }
    if used.saturating_add(reserved).saturating_add(more) > most { Fit::Perhaps } else { Fit::Fits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_counts_until_it_is_settled() {
        let policy = Policy { tokens_max: Some(100), ..Policy::default() };
        let mut budget = Budget::default();
        budget.reserve(60, 0);
        assert_eq!(budget.fit(&policy, 41, 0), Fit::Perhaps);
        assert_eq!(budget.fit(&policy, 40, 0), Fit::Fits);
        budget.release(60, 0);
        budget.spend(10, 0);
        assert_eq!(budget.fit(&policy, 90, 0), Fit::Fits);
        assert_eq!(budget.fit(&policy, 91, 0), Fit::Never);
        budget.spend(90, 0);
        assert_eq!(budget.fit(&policy, 0, 0), Fit::Never);
    }
}
