//! A share of a limit, for one of several who keep to it apart.

use super::{Enforcement, Kind, Limit, LimitBuilder};
use crate::{Limits, UNBOUNDED};

impl Limit {
    /// The same limit with so many percent of its amount and burst, and at least 1. Nothing is remarked by a share.
    ///
    /// # Panics
    ///
    /// Never: a share of a valid limit is valid.
    #[must_use]
    pub fn scaled(&self, percent: u8) -> Limit {
        let share = |amount: u64| match amount {
            UNBOUNDED => UNBOUNDED,
            amount => u64::try_from(u128::from(amount) * u128::from(percent) / 100).unwrap_or(amount).max(1),
        };
        let is_session = self.kind == Kind::Quota;
        let builder = LimitBuilder::of(self.name.as_str(), self.kind, share(self.amount));
        let builder = LimitBuilder {
            burst: (self.capacity != self.amount).then(|| Ok(share(self.capacity))),
            period: self.period.filter(|_| !is_session).map(|period| period.to_duration()),
            resolution: self.resolution.map(|step| step.to_duration()),
            resets: self.resets.clone(),
            unit: self.unit.clone(),
            ..builder
        };
        let builder = if self.enforcement == Enforcement::Remarks { builder.shadow() } else { builder };
        builder.build().expect("a share of a valid limit is valid")
    }
}

impl Limits {
    /// A share of each limit; see [`Limit::scaled`].
    ///
    /// # Panics
    ///
    /// Never: what is scaled has the names it had.
    #[must_use]
    pub fn scaled(&self, percent: u8) -> Limits {
        Limits::new(self.iter().map(|limit| limit.scaled(percent))).expect("the names are as they were")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_share_of_every_kind_of_limit_is_valid_and_a_share() {
        let limits = [
            Limit::per_minute("rpm", 100).burst(10),
            Limit::fixed_window("fixed", 7, Duration::from_secs(10)),
            Limit::sliding_window("sliding", 9, Duration::from_secs(10)).resolution(Duration::from_secs(1)),
            Limit::calls(3, Duration::from_secs(1)),
            Limit::resource("slots", 1),
            Limit::quota("session", 1_000, Duration::from_secs(60)).shadow(),
            Limit::per_second("free", UNBOUNDED),
            Limit::per_second("soft", 10).soft(9),
        ];
        let limits = Limits::new(limits).expect("they are valid");
        let shares = limits.scaled(25);
        let amounts: Vec<(u64, u64)> =
            shares.iter().map(|limit| (limit.amount(), limit.capacity())).collect();
        let free = (UNBOUNDED, UNBOUNDED);
        assert_eq!(amounts, [(25, 2), (1, 1), (2, 2), (1, 1), (1, 1), (250, 250), free, (2, 2)]);
        assert!(
            shares
                .iter()
                .zip(limits.iter())
                .all(|(one, two)| one.kind() == two.kind() && one.period() == two.period())
        );
        assert!(shares[5].is_shadow());
    }
}
