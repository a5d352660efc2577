//! Meters: token bucket, leaky bucket and GCRA as one machine.
//!
//! A rate of `amount` per `period` ticks is reduced to `gain / unit` tokens per tick, and credit is
//! counted in `1 / unit` of a token. A tick then adds the whole number `gain`, a token costs the
//! whole number `unit`, and nothing is ever rounded: a slow limit beside a fast one loses no
//! fraction however often both are updated. The level of a leaky bucket is `full - credit`, and the
//! arrival time of GCRA is the instant at which the credit is full.

use crate::{Ready, Span, Tick};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meter {
    gain: u64,
    unit: u64,
    full: i128,
}

impl Meter {
    pub(crate) fn new(amount: u64, capacity: u64, period: Span) -> Meter {
        let divisor = gcd(amount, period.as_micros());
        let unit = period.as_micros() / divisor;
        let full = i128::from(capacity) * i128::from(unit);
        Meter { gain: amount / divisor, unit, full }
    }

    /// Returns the credit that a tick adds, and the credit that a token costs.
    pub(crate) fn rate(&self) -> (u64, u64) {
        (self.gain, self.unit)
    }

    pub(crate) fn full(&self) -> i128 {
        self.full
    }

    /// Returns the price of `cost` tokens, in credit.
    #[inline]
    pub(crate) fn price(&self, cost: u64) -> i128 {
        i128::from(cost) * i128::from(self.unit)
    }

    #[inline]
    pub(crate) fn refill(&self, credit: i128, elapsed: Span) -> i128 {
        let gained = i128::from(elapsed.as_micros()) * i128::from(self.gain);
        credit.saturating_add(gained).min(self.full)
    }

    /// Refunds `amount` tokens, up to full.
    pub(crate) fn refund(&self, credit: i128, amount: u64) -> i128 {
        credit.saturating_add(self.price(amount)).min(self.full)
    }

    /// Returns the whole tokens in `credit`, rounded down; a negative number is debt.
    pub(crate) fn tokens(&self, credit: i128) -> i128 {
        credit.div_euclid(i128::from(self.unit))
    }

    /// Returns the first tick at which `credit`, which is as of `now`, covers `cost`.
    pub(crate) fn ready(&self, credit: i128, now: Tick, cost: u64) -> Ready {
        let short = self.price(cost).saturating_sub(credit);
        if short <= 0 {
            return Ready::Now;
        }
        let ticks = (short - 1) / i128::from(self.gain) + 1;
        Ready::at(now + Span::from_micros(u64::try_from(ticks).unwrap_or(u64::MAX)))
    }

    /// Converts credit from the units of `old` to those of `self`, rounded down so that nothing is
    /// minted, and clamped to full.
    pub(crate) fn adopt(&self, old: &Meter, credit: i128) -> i128 {
        let (unit, old_unit) = (i128::from(self.unit), i128::from(old.unit));
        let (whole, part) = (credit.div_euclid(old_unit), credit.rem_euclid(old_unit));
        whole.saturating_mul(unit).saturating_add(part * unit / old_unit).min(self.full)
    }
}

/// Credit in 64 bits where it fits, which is nearly always, and on the heap otherwise.
#[derive(Clone, Debug)]
pub(crate) enum Credit {
    Narrow(i64),
    Wide(Box<i128>),
}

impl Credit {
    pub(crate) fn new(credit: i128) -> Credit {
        match i64::try_from(credit) {
            Ok(narrow) => Credit::Narrow(narrow),
            Err(_) => Credit::Wide(Box::new(credit)),
        }
    }

    #[inline]
    pub(crate) fn get(&self) -> i128 {
        match self {
            Credit::Narrow(credit) => i128::from(*credit),
            Credit::Wide(credit) => **credit,
        }
    }

    #[inline]
    pub(crate) fn set(&mut self, credit: i128) {
        match (self, i64::try_from(credit)) {
            (Credit::Narrow(old), Ok(narrow)) => *old = narrow,
            (Credit::Wide(old), _) => **old = credit,
            (this, Err(_)) => *this = Credit::Wide(Box::new(credit)),
        }
    }
}

impl PartialEq for Credit {
    fn eq(&self, other: &Credit) -> bool {
        self.get() == other.get()
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_reduced_so_that_a_tick_is_a_whole_number() {
        let rpm = Meter::new(100, 100, Span::from_secs(60));
        assert_eq!((rpm.gain, rpm.unit, rpm.full), (1, 600_000, 60_000_000));
        let odd = Meter::new(7, 7, Span::from_secs(3));
        assert_eq!((odd.gain, odd.unit), (7, 3_000_000));
    }

    #[test]
    fn the_largest_and_slowest_limit_fits() {
        let widest = Meter::new(999_999_999_999_999, crate::AMOUNT_MAX, crate::PERIOD_MAX);
        let debt = (0..1_000).fold(0, |credit: i128, _| credit - widest.price(crate::AMOUNT_MAX));
        assert_eq!(widest.tokens(debt), -1_000 * i128::from(crate::AMOUNT_MAX));
        assert_eq!(widest.refill(debt, Span::from_micros(u64::MAX)), widest.full());
    }

    #[test]
    fn changing_the_unit_mints_nothing() {
        let (old, new) = (Meter::new(7, 7, Span::from_secs(3)), Meter::new(1, 5, Span::from_secs(60)));
        for credit in [-7, -1, 0, 1, 2_999_999, 3_000_000, 20_999_999] {
            let adopted = new.adopt(&old, credit);
            assert!(adopted * i128::from(old.unit) <= credit * i128::from(new.unit));
            assert!(adopted <= new.full());
        }
        assert_eq!(new.adopt(&old, old.price(3)), new.price(3));
    }
}
