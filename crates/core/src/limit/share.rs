//! Shares of limits, for processes that enforce them separately.

use super::{Kind, Limit, LimitBuilder};
use crate::machine::Machine;
use crate::{Limits, UNBOUNDED};

impl Limit {
    /// Returns the limit with `percent` of its amount and burst, but at least 1. A share has no
    /// soft level. A [custom](Limit::custom) limit is returned unchanged.
    ///
    /// # Panics
    ///
    /// Never: a share of a valid limit is valid.
    #[must_use]
    pub fn scaled(&self, percent: u8) -> Limit {
        if self.is_cooldown() || self.is_custom() {
            return self.clone();
        }
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
        let builder = if self.is_shadow() { builder.shadow() } else { builder };
        builder.build().expect("a share of a valid limit is valid")
    }
}

impl Limit {
    /// Removes the bound: for a limit that was removed from a set and keeps its index.
    #[must_use]
    pub fn without_bound(&self) -> Limit {
        let machine = if self.is_resource() { Machine::Gauge } else { Machine::Unbounded };
        Limit { amount: UNBOUNDED, capacity: UNBOUNDED, soft: None, machine, ..self.clone() }
    }
}

impl Limits {
    /// Returns a share of each limit; see [`Limit::scaled`].
    ///
    /// # Panics
    ///
    /// Never: scaling keeps the names.
    #[must_use]
    pub fn scaled(&self, percent: u8) -> Limits {
        Limits::new(self.iter().map(|limit| limit.scaled(percent))).expect("scaling keeps the names")
    }
}

impl Limits {
    /// Returns the limits of one of `of` partitions of a bucket, so that all partitions together
    /// enforce these limits exactly: the capacities add up, and each partition refills at the same
    /// fraction of the rate. Returns `None` if the limits cannot be partitioned: only meters can,
    /// with a capacity of at least 1 for each partition.
    #[must_use]
    pub fn part(&self, index: u64, of: u64) -> Option<Limits> {
        if of == 1 {
            return Some(self.clone());
        }
        let part = |limit: &Limit| limit.part(index, of);
        let limits = Limits::new(self.iter().map(part).collect::<Option<Vec<_>>>()?).ok()?;
        let limits = limits.at_version(self.version());
        Some(if self.are_defaults() { limits.of_defaults() } else { limits })
    }
}

impl Limit {
    fn part(&self, index: u64, of: u64) -> Option<Limit> {
        self.meter()?;
        if self.is_unbounded() || self.may_warn() || index >= of {
            return None;
        }
        // Cumulative rounding: the differences of neighbours sum up to the capacity.
        let up_to = |index: u64| u128::from(self.capacity) * u128::from(index) / u128::from(of);
        let capacity =
            u64::try_from(up_to(index + 1) - up_to(index)).ok().filter(|capacity| *capacity > 0)?;
        let builder = LimitBuilder {
            burst: Some(Ok(capacity)),
            period: Some(self.period?.to_duration().checked_mul(u32::try_from(of).ok()?)?),
            unit: self.unit.clone(),
            ..LimitBuilder::of(self.name.as_str(), self.kind, self.amount)
        };
        builder.build().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn parts_add_up_to_the_whole() {
        let whole = Limits::new([Limit::per_minute("rpm", 1_000).burst(1_003), Limit::per_second("tpm", 37)]);
        let whole = whole.expect("they are valid").at_version(7).of_defaults();
        for of in [1, 2, 4, 8, 16, 32] {
            let parts: Vec<Limits> =
                (0..of).map(|index| whole.part(index, of).expect("it is a part")).collect();
            assert!(parts.iter().all(|part| part.version() == 7 && part.are_defaults()));
            for (index, limit) in whole.iter().enumerate() {
                let capacity: u64 = parts.iter().map(|part| part[index].capacity()).sum();
                assert_eq!(capacity, limit.capacity());
                let rate = limit.meter().expect("it is a meter");
                let gained = |part: &Limits| {
                    let part = part[index].meter().expect("it is a meter");
                    // Converted to the units of the whole, times the number of parts.
                    u128::from(part.gain) * u128::from(rate.unit) * u128::from(of) / u128::from(part.unit)
                };
                assert!(
                    parts.iter().all(|part| gained(part) == u128::from(rate.gain)),
                    "{of} parts of {limit}"
                );
            }
        }
        assert_eq!(whole.part(0, 64), None, "tpm has less than 1 for each");
        assert_eq!(whole.part(4, 4), None);
        let slots = Limits::new([Limit::resource("slots", 8)]).expect("it is valid");
        assert_eq!(slots.part(0, 2), None);
    }

    #[test]
    fn every_kind_of_limit_can_be_scaled() {
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
