//! What a batch may use, and has used.

use crate::policy::Policy;

/// Tokens and money: used, and promised to calls under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Budget {
    pub(super) tokens: u64,
    pub(super) cost_micros: u64,
    promised_tokens: u64,
    promised_cost: u64,
}

/// Whether a call fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Fits,
    /// It may, when calls under way have used less than they might.
    Perhaps,
    Never,
}

impl Budget {
    pub(super) fn fit(&self, policy: &Policy, tokens: u64, cost: u64) -> Fit {
        let one = fit(policy.tokens_max, self.tokens, self.promised_tokens, tokens);
        let other = fit(policy.cost_micros_max, self.cost_micros, self.promised_cost, cost);
        match (one, other) {
            (Fit::Fits, other) => other,
            (Fit::Never, _) | (_, Fit::Never) => Fit::Never,
            _ => Fit::Perhaps,
        }
    }

    pub(super) fn promise(&mut self, tokens: u64, cost: u64) {
        self.promised_tokens = self.promised_tokens.saturating_add(tokens);
        self.promised_cost = self.promised_cost.saturating_add(cost);
    }

    /// Takes a promise back.
    pub(super) fn forget(&mut self, tokens: u64, cost: u64) {
        self.promised_tokens = self.promised_tokens.saturating_sub(tokens);
        self.promised_cost = self.promised_cost.saturating_sub(cost);
    }

    pub(super) fn spend(&mut self, tokens: u64, cost: u64) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.cost_micros = self.cost_micros.saturating_add(cost);
    }
}

fn fit(most: Option<u64>, used: u64, promised: u64, more: u64) -> Fit {
    let Some(most) = most else { return Fit::Fits };
    // With nothing left even what costs nothing by our estimate may cost something.
    if used >= most || used.saturating_add(more) > most {
        return Fit::Never;
    }
    if used.saturating_add(promised).saturating_add(more) > most { Fit::Perhaps } else { Fit::Fits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_promised_counts_until_it_is_settled() {
        let policy = Policy { tokens_max: Some(100), ..Policy::default() };
        let mut ledger = Budget::default();
        ledger.promise(60, 0);
        assert_eq!(ledger.fit(&policy, 41, 0), Fit::Perhaps);
        assert_eq!(ledger.fit(&policy, 40, 0), Fit::Fits);
        ledger.forget(60, 0);
        ledger.spend(10, 0);
        assert_eq!(ledger.fit(&policy, 90, 0), Fit::Fits);
        assert_eq!(ledger.fit(&policy, 91, 0), Fit::Never);
        ledger.spend(90, 0);
        assert_eq!(ledger.fit(&policy, 0, 0), Fit::Never);
    }
}
