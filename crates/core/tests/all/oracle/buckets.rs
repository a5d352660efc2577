//! Token bucket, leaky bucket and GCRA in their textbook forms, in rational numbers.

use num_bigint::BigInt;
use num_rational::BigRational;

use super::Machine;

fn whole(value: impl Into<BigInt>) -> BigRational {
    BigRational::from_integer(value.into())
}

fn floor(value: &BigRational) -> i128 {
    i128::try_from(value.floor().to_integer()).expect("test limits are small")
}

fn rate(amount: u64, period: u64) -> BigRational {
    BigRational::new(amount.into(), period.into())
}

/// Credit form: tokens refill at the rate up to the capacity.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate: BigRational,
    capacity: BigRational,
    tokens: BigRational,
    then: u64,
}

impl TokenBucket {
    pub fn new(amount: u64, capacity: u64, period: u64) -> TokenBucket {
        let capacity = whole(capacity);
        TokenBucket { rate: rate(amount, period), tokens: capacity.clone(), capacity, then: 0 }
    }

    fn tokens(&self, now: u64) -> BigRational {
        let refilled = &self.tokens + &self.rate * whole(now - self.then);
        refilled.min(self.capacity.clone())
    }
}

impl Machine for TokenBucket {
    fn left(&self, now: u64) -> i128 {
        floor(&self.tokens(now))
    }

    fn charge(&mut self, now: u64, amount: u64, _: Option<(u128, u64)>) {
        (self.tokens, self.then) = (self.tokens(now) - whole(amount), now);
    }

    fn refund(&mut self, now: u64, _: u64, amount: u64, _: Option<u128>) {
        let tokens = (self.tokens(now) + whole(amount)).min(self.capacity.clone());
        (self.tokens, self.then) = (tokens, now);
    }

    fn copy(&self) -> Box<dyn Machine> {
        Box::new(self.clone())
    }
}

/// Level form: calls fill a bucket that drains at the rate, never below empty.
#[derive(Clone, Debug)]
pub struct LeakyBucket {
    rate: BigRational,
    capacity: BigRational,
    level: BigRational,
    then: u64,
}

impl LeakyBucket {
    pub fn new(amount: u64, capacity: u64, period: u64) -> LeakyBucket {
        LeakyBucket { rate: rate(amount, period), capacity: whole(capacity), level: whole(0), then: 0 }
    }

    fn level(&self, now: u64) -> BigRational {
        let drained = &self.level - &self.rate * whole(now - self.then);
        drained.max(whole(0))
    }
}

impl Machine for LeakyBucket {
    fn left(&self, now: u64) -> i128 {
        floor(&(&self.capacity - self.level(now)))
    }

    fn charge(&mut self, now: u64, amount: u64, _: Option<(u128, u64)>) {
        (self.level, self.then) = (self.level(now) + whole(amount), now);
    }

    fn refund(&mut self, now: u64, _: u64, amount: u64, _: Option<u128>) {
        let level = (self.level(now) - whole(amount)).max(whole(0));
        (self.level, self.then) = (level, now);
    }

    fn copy(&self) -> Box<dyn Machine> {
        Box::new(self.clone())
    }
}

/// Arrival form: each unit advances the theoretical arrival time by the emission interval, and a
/// call conforms if that time is not further ahead than the tolerance.
#[derive(Clone, Debug)]
pub struct Gcra {
    interval: BigRational,
    tolerance: BigRational,
    arrival: BigRational,
}

impl Gcra {
    pub fn new(amount: u64, capacity: u64, period: u64) -> Gcra {
        let interval = rate(amount, period).recip();
        Gcra { tolerance: &interval * whole(capacity), interval, arrival: whole(0) }
    }

    fn arrival(&self, now: u64) -> BigRational {
        self.arrival.clone().max(whole(now))
    }
}

impl Machine for Gcra {
    fn left(&self, now: u64) -> i128 {
        let ahead = self.arrival(now) - whole(now);
        floor(&((&self.tolerance - ahead) / &self.interval))
    }

    fn charge(&mut self, now: u64, amount: u64, _: Option<(u128, u64)>) {
        self.arrival = self.arrival(now) + &self.interval * whole(amount);
    }

    fn refund(&mut self, now: u64, _: u64, amount: u64, _: Option<u128>) {
        self.arrival = self.arrival(now) - &self.interval * whole(amount);
    }

    fn copy(&self) -> Box<dyn Machine> {
        Box::new(self.clone())
    }
}
