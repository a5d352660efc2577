//! Histories of use, and the bound they must keep. They involve no machine, only what a limit
//! promises.

use tollgate_core::Holder;

use super::Settled;
use super::spec::Spec;
use super::subject::{Answer, Observation};
use super::trace::Checker;

/// A use: at admission, or in excess of it later.
#[derive(Clone, Copy, Debug)]
struct Use {
    at: u64,
    amount: i128,
    holder: Option<Holder>,
}

/// Everything that was used and refunded, in order. Reports an admission that breaks the bound.
pub struct History {
    spec: Spec,
    uses: Vec<Use>,
    refunds: Vec<(u64, i128)>,
}

impl History {
    pub fn new(spec: &Spec) -> History {
        History { spec: spec.clone(), uses: Vec::new(), refunds: Vec::new() }
    }

    fn used_from(&self, start: u64) -> i128 {
        self.uses.iter().filter(|used| used.at >= start).map(|used| used.amount).sum()
    }

    /// Checks every interval that ends with the admission at `now`. Intervals that end elsewhere
    /// hold no more.
    fn check(&self, now: u64) -> Result<(), String> {
        match &self.spec {
            Spec::Bucket { amount, capacity, period, .. } => {
                self.check_rate(now, *amount, *capacity, *period)
            }
            Spec::Fixed { amount, period } => self.at_most(*amount, now - now % period),
            Spec::Sliding { amount, period, .. } => self.at_most(*amount, (now + 1).saturating_sub(*period)),
            Spec::Calendar { amount, edges } => {
                self.at_most(*amount, edges.0.iter().copied().filter(|edge| *edge <= now).max().unwrap_or(0))
            }
            Spec::Session { amount, span } => self.at_most(2 * amount, (now + 1).saturating_sub(*span)),
            Spec::Gauge { capacity } => self.check_holders(now, *capacity),
            // A cooldown bounds no amount; the oracle checks how long it lasts.
            Spec::Cooldown => Ok(()),
        }
    }

    /// Checks that any interval W has at most C + floor(rW), plus what was refunded in it.
    fn check_rate(&self, now: u64, amount: u64, capacity: u64, period: u64) -> Result<(), String> {
        for start in self.uses.iter().map(|used| used.at) {
            let refunded: i128 = self.refunds.iter().filter(|(at, _)| *at >= start).map(|(_, n)| n).sum();
            let beyond = self.used_from(start) - refunded - i128::from(capacity);
            if beyond * i128::from(period) > i128::from(amount) * i128::from(now - start) {
                return Err(format!("{beyond} beyond the capacity from {start} to {now}"));
            }
        }
        Ok(())
    }

    fn at_most(&self, amount: u64, start: u64) -> Result<(), String> {
        let used = self.used_from(start);
        if used <= amount.into() { Ok(()) } else { Err(format!("{used} of {amount} used since {start}")) }
    }

    fn check_holders(&self, now: u64, capacity: u64) -> Result<(), String> {
        let live = |used: &&Use| used.holder.is_none_or(|holder| holder.expires.as_micros() > now);
        let held: i128 = self.uses.iter().filter(live).map(|used| used.amount).sum();
        if held <= capacity.into() { Ok(()) } else { Err(format!("{held} of {capacity} held at {now}")) }
    }

    /// Reduces the use at `at`; for a bucket the refund counts from now on only.
    fn refund(&mut self, now: u64, settled: &Settled) {
        let unused = i128::from(settled.reserved) - i128::from(settled.used);
        if matches!(self.spec, Spec::Bucket { .. }) {
            self.refunds.push((now, unused));
            return;
        }
        let id = |used: &Use| used.holder.map(|holder| holder.id);
        let same = |used: &&mut Use| {
            used.at == settled.at && id(used) == settled.holder && used.amount == settled.reserved.into()
        };
        if let Some(used) = self.uses.iter_mut().find(same) {
            used.amount -= unused;
        }
    }
}

impl Checker for History {
    fn taken(&mut self, _: u64, cost: u64, holder: Option<Holder>, answer: &Answer) -> Result<(), String> {
        let Answer::Admitted(at) = *answer else { return Ok(()) };
        self.uses.push(Use { at, amount: cost.into(), holder });
        if cost == 0 { Ok(()) } else { self.check(at) }
    }

    fn settled(&mut self, now: u64, settled: &Settled) -> Result<(), String> {
        // A clock that stepped back is answered as of the last use.
        let now = self.uses.iter().map(|used| used.at).fold(now, u64::max);
        if settled.used > settled.reserved {
            let amount = i128::from(settled.used) - i128::from(settled.reserved);
            self.uses.push(Use { at: now, amount, holder: None });
        } else {
            self.refund(now, settled);
        }
        Ok(())
    }

    fn peeked(&mut self, _: u64, _: &Observation) -> Result<(), String> {
        Ok(())
    }
}
