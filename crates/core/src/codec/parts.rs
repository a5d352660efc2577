//! Parts: the state of each limit by itself, for a store whose service does some of the arithmetic.
//!
//! Such a service adds to numbers without reading them. So credit is given in thousandths of a
//! token, which do not depend on the rate, plus a remainder.

use super::CodecError;
use super::bucket::{put_state, state};
use super::bytes::ByteReader;
use crate::machine::{Credit, Machine};
use crate::state::StateInner;
use crate::{Bucket, Limit, Limits, State, Tick};

/// The number of thousandths in a token.
// Hidden: the representation for stores that add on the server.
#[doc(hidden)]
pub const MILLIS: i128 = 1_000;

/// The state of one limit.
// Hidden: the representation for stores that add on the server.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The credit of a meter.
    Credit {
        /// Thousandths of a token; a negative number is debt.
        millis: i128,
        /// The remainder, in 1 / [`unit`](Rate::unit) of a thousandth.
        rest: u64,
    },
    /// Any other state, as bytes.
    Other(Vec<u8>),
}

/// The constants of a meter: every tick adds `gain`, in 1 / `unit` of a token, up to `full`.
// Hidden: the representation for stores that compute on the server.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The credit that a tick adds.
    pub gain: u64,
    /// The credit that a token costs.
    pub unit: u64,
    /// The maximum credit.
    pub full: i128,
}

impl Limit {
    /// Returns the constants of a meter: a token bucket, a leaky bucket or GCRA.
    // Hidden: the representation for stores that compute on the server.
    #[doc(hidden)]
    pub fn meter(&self) -> Option<Rate> {
        let Machine::Meter(meter) = self.machine() else { return None };
        let (gain, unit) = meter.rate();
        Some(Rate { gain, unit, full: meter.full() })
    }
}

impl Bucket {
    /// Returns the state of each limit, in their order, as of [`stamp`](Bucket::stamp).
    // Hidden: the representation for stores that add on the server.
    #[doc(hidden)]
    pub fn parts(&self, limits: &Limits) -> Vec<Part> {
        let part = |(index, limit): (usize, &Limit)| {
            let state = self.state(limits, index);
            match (limit.meter(), &state.0) {
                (Some(rate), StateInner::Meter(credit)) => rate.part(credit.get()),
                _ => {
                    let mut bytes = Vec::new();
                    put_state(&mut bytes, &state);
                    Part::Other(bytes)
                }
            }
        };
        limits.iter().enumerate().map(part).collect()
    }

    /// Creates the bucket that has these [parts](Bucket::parts). Credit above full is clamped.
    ///
    /// # Errors
    ///
    /// Returns [`CodecError`] for parts that do not match these limits.
    // Hidden: the representation for stores that add on the server.
    #[doc(hidden)]
    pub fn of_parts(limits: &Limits, stamp: Tick, parts: &[Part]) -> Result<Bucket, CodecError> {
        if parts.len() != limits.len() {
            return Err(CodecError::TooShort);
        }
        let states = limits.iter().zip(parts).map(|(limit, part)| state_of(limit, stamp, part));
        Ok(Bucket::of_states(limits, stamp, states.collect::<Result<_, _>>()?))
    }
}

impl Rate {
    fn part(&self, credit: i128) -> Part {
        let (scaled, unit) = (credit.saturating_mul(MILLIS), i128::from(self.unit));
        Part::Credit { millis: scaled.div_euclid(unit), rest: scaled.rem_euclid(unit) as u64 }
    }

    /// Converts to credit, rounded down: a fraction of a unit mints nothing.
    fn credit(&self, millis: i128, rest: u64) -> i128 {
        let scaled = millis.saturating_mul(self.unit.into()).saturating_add(rest.into());
        scaled.div_euclid(MILLIS).min(self.full)
    }
}

fn state_of(limit: &Limit, stamp: Tick, part: &Part) -> Result<State, CodecError> {
    match (part, limit.meter()) {
        (Part::Credit { millis, rest }, Some(rate)) => {
            Ok(State(StateInner::Meter(Credit::new(rate.credit(*millis, *rest)))))
        }
        (Part::Other(bytes), None) => {
            let mut reader = ByteReader::new(bytes);
            let state = state(&mut reader, limit, stamp)?;
            reader.end()?;
            Ok(state)
        }
        _ => Err(CodecError::BadState(limit.name().to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Costs, Holder, Take, demand};

    fn limits() -> Limits {
        let day = Duration::from_secs(86_400);
        Limits::new([
            Limit::per_minute("rpm", 7),
            Limit::rate("slow", 10, day),
            Limit::resource("slots", 3),
            Limit::sliding_window("log", 9, day),
            Limit::quota("spend", 30, day),
        ])
        .expect("they are valid")
    }

    fn costs(limits: &Limits) -> Costs {
        limits.costs(&demand! { rpm: 1, slow: 2, slots: 1, log: 3, spend: 4 }).expect("it fits")
    }

    #[test]
    fn a_bucket_equals_the_one_made_of_its_parts() {
        let limits = limits();
        let costs = costs(&limits);
        let mut bucket = Bucket::fresh(&limits, Tick::ZERO);
        for step in 0..3 {
            let now = Tick::from_micros(1_000_003 * step);
            let holder = Some(Holder { id: step.into(), expires: now + crate::Span::from_secs(5) });
            bucket.take(&limits, now, &Take { costs: &costs, holder }).expect("it fits");
            let parts = bucket.parts(&limits);
            assert_eq!(Bucket::of_parts(&limits, bucket.stamp(), &parts), Ok(bucket.clone()));
        }
    }

    #[test]
    fn a_token_is_a_thousand_parts_at_every_rate() {
        let limits = limits();
        let mut bucket = Bucket::fresh(&limits, Tick::ZERO);
        let before = bucket.parts(&limits);
        bucket.take(&limits, Tick::ZERO, &Take::of(&costs(&limits))).expect("it fits");
        let after = bucket.parts(&limits);
        for (index, tokens) in [(0, 1), (1, 2)] {
            let (Part::Credit { millis: was, rest }, Part::Credit { millis: is, rest: still }) =
                (&before[index], &after[index])
            else {
                panic!("a meter has credit")
            };
            assert_eq!((was - is, rest), (tokens * MILLIS, still));
        }
    }

    #[test]
    fn parts_of_other_limits_are_refused_and_excess_credit_is_clamped() {
        let limits = Limits::new([Limit::per_minute("rpm", 7)]).expect("it is valid");
        assert!(Bucket::of_parts(&limits, Tick::ZERO, &[]).is_err());
        assert!(Bucket::of_parts(&limits, Tick::ZERO, &[Part::Other(vec![2, 0])]).is_err());
        let full = Bucket::of_parts(&limits, Tick::ZERO, &[Part::Credit { millis: 9_000, rest: 1 }]);
        assert_eq!(full, Ok(Bucket::fresh(&limits, Tick::ZERO)));
    }
}
