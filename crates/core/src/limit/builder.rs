use std::time::Duration;

use super::{Algorithm, CustomLimit, Enforcement, Kind, Limit, LimitError, PERIOD_MAX, Resets};
use crate::amount::{AMOUNT_MAX, BadAmount, IntoAmount, UNBOUNDED};
use crate::machine::{Custom, FixedWindow, Machine, Meter, Quota, SlidingWindow};
use crate::name::{Name, VALID_NAME};
use crate::{Span, Unit};

/// Builds a [`Limit`]. [`build`](LimitBuilder::build) validates everything, and so does any
/// function that takes a builder.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Algorithm, Limit};
///
/// let limit = Limit::rate("tpm", 100_000, Duration::from_secs(60))
///     .algorithm(Algorithm::Gcra)
///     .burst(20_000)
///     .soft(15_000)
///     .build()?;
/// assert_eq!(limit.to_string(), "tpm: 100000 per 60s, burst 20000 (GCRA), soft 15000");
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built or given to a set"]
pub struct LimitBuilder {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) amount: Result<u64, BadAmount>,
    pub(super) burst: Option<Result<u64, BadAmount>>,
    pub(super) period: Option<Duration>,
    pub(super) resolution: Option<Duration>,
    pub(super) resets: Option<Resets>,
    pub(super) custom: Option<Custom>,
    pub(super) unit: Option<Unit>,
    pub(super) enforcement: Enforcement,
    pub(super) soft: Option<Result<u64, BadAmount>>,
}

const ONE_DAY: Duration = Duration::from_secs(86_400);

impl Limit {
    /// Limits to `amount` per second, as a token bucket.
    pub fn per_second(name: impl Into<String>, amount: impl IntoAmount) -> LimitBuilder {
        Limit::rate(name, amount, Duration::from_secs(1))
    }

    /// Limits to `amount` per minute, as a token bucket.
    pub fn per_minute(name: impl Into<String>, amount: impl IntoAmount) -> LimitBuilder {
        Limit::rate(name, amount, Duration::from_secs(60))
    }

    /// Limits to `amount` per hour, as a token bucket.
    pub fn per_hour(name: impl Into<String>, amount: impl IntoAmount) -> LimitBuilder {
        Limit::rate(name, amount, Duration::from_secs(3_600))
    }

    /// Limits to `amount` per day, as a token bucket.
    pub fn per_day(name: impl Into<String>, amount: impl IntoAmount) -> LimitBuilder {
        Limit::rate(name, amount, ONE_DAY)
    }

    /// Limits to `amount` per `period`, as a token bucket unless
    /// [`algorithm`](LimitBuilder::algorithm) sets another one.
    pub fn rate(name: impl Into<String>, amount: impl IntoAmount, period: Duration) -> LimitBuilder {
        let kind = Kind::Rate(Algorithm::TokenBucket);
        LimitBuilder { period: Some(period), ..LimitBuilder::new(name.into(), kind, amount) }
    }

    /// Limits to `amount` in each window of `period`; windows are counted from the epoch.
    pub fn fixed_window(name: impl Into<String>, amount: impl IntoAmount, period: Duration) -> LimitBuilder {
        Limit::rate(name, amount, period).algorithm(Algorithm::FixedWindow)
    }

    /// Limits to `amount` in every window of `period`, wherever it starts.
    pub fn sliding_window(
        name: impl Into<String>,
        amount: impl IntoAmount,
        period: Duration,
    ) -> LimitBuilder {
        Limit::rate(name, amount, period).algorithm(Algorithm::SlidingWindow)
    }

    /// Limits to `amount` calls per `period`: a rate limit named `call_count` that every demand
    /// takes 1 of.
    pub fn calls(amount: impl IntoAmount, period: Duration) -> LimitBuilder {
        let kind = Kind::Calls(Algorithm::TokenBucket);
        LimitBuilder { period: Some(period), ..LimitBuilder::new("call_count".into(), kind, amount) }
    }

    /// Limits to `capacity` at once: connections, permits, jobs. Every demand takes 1 unless it
    /// names another amount.
    pub fn resource(name: impl Into<String>, capacity: impl IntoAmount) -> LimitBuilder {
        LimitBuilder::new(name.into(), Kind::Resource, capacity)
    }

    /// Limits to `amount` until the quota resets: at an edge of a calendar, or a duration after the
    /// first use.
    pub fn quota(
        name: impl Into<String>,
        amount: impl IntoAmount,
        resets: impl Into<Resets>,
    ) -> LimitBuilder {
        let resets = resets.into();
        LimitBuilder { resets: Some(resets), ..LimitBuilder::new(name.into(), Kind::Quota, amount) }
    }

    /// Limits by a rule of the caller, beside other limits of a set in this process. A demand names
    /// how much it wants, as of a rate.
    pub fn custom(name: impl Into<String>, rule: impl CustomLimit) -> LimitBuilder {
        let capacity = rule.capacity();
        let custom = Some(Custom::new(rule));
        LimitBuilder { custom, ..LimitBuilder::new(name.into(), Kind::Custom, capacity) }
    }
}

impl LimitBuilder {
    /// Starts a limit of this kind with default settings.
    pub(super) fn of(name: &str, kind: Kind, amount: u64) -> LimitBuilder {
        LimitBuilder::new(name.into(), kind, amount)
    }

    fn new(name: String, kind: Kind, amount: impl IntoAmount) -> LimitBuilder {
        let amount = amount.into_amount();
        LimitBuilder {
            name,
            kind,
            amount,
            burst: None,
            period: None,
            resolution: None,
            resets: None,
            custom: None,
            unit: None,
            enforcement: Enforcement::Deny,
            soft: None,
        }
    }

    /// Sets another name: for a second limit on calls, for example.
    pub fn named(self, name: impl Into<String>) -> LimitBuilder {
        LimitBuilder { name: name.into(), ..self }
    }

    /// Sets the maximum that is available at once, if it is not the amount. Only the bucket
    /// algorithms accept it.
    pub fn burst(self, burst: impl IntoAmount) -> LimitBuilder {
        LimitBuilder { burst: Some(burst.into_amount()), ..self }
    }

    /// Sets how a rate is measured. [`build`](LimitBuilder::build) rejects it for resources and
    /// quotas.
    pub fn algorithm(self, algorithm: Algorithm) -> LimitBuilder {
        let kind = match self.kind {
            Kind::Calls(_) => Kind::Calls(algorithm),
            _ => Kind::Rate(algorithm),
        };
        LimitBuilder { kind, ..self }
    }

    /// Sets the resolution of a sliding window; the default is a thousandth of the window.
    ///
    /// Calls within one step are counted as of the last of them, so that no window ever holds more
    /// than the amount. A finer step costs memory: one entry of 16 bytes for each step in the
    /// window.
    pub fn resolution(self, step: Duration) -> LimitBuilder {
        LimitBuilder { resolution: Some(step), ..self }
    }

    /// Sets the unit that amounts are shown in.
    pub fn unit(self, unit: Unit) -> LimitBuilder {
        LimitBuilder { unit: Some(unit), ..self }
    }

    /// Makes a shadow limit, which counts and never denies: for trying out a limit before it is
    /// enforced.
    ///
    /// What is taken beyond the capacity is debt, like the excess of a settlement, and
    /// [`Bucket::warnings`](crate::Bucket::warnings) reports it.
    pub fn shadow(self) -> LimitBuilder {
        LimitBuilder { enforcement: Enforcement::Shadow, ..self }
    }

    /// Sets a warning level below the capacity. While more than `level` is in use,
    /// [`Bucket::warnings`](crate::Bucket::warnings) reports it; verdicts do not change.
    pub fn soft(self, level: impl IntoAmount) -> LimitBuilder {
        LimitBuilder { soft: Some(level.into_amount()), ..self }
    }

    /// Validates everything and creates the limit.
    ///
    /// # Errors
    ///
    /// Returns [`LimitError`] with the field, its value and the valid values.
    pub fn build(self) -> Result<Limit, LimitError> {
        let name = Name::new(&self.name)
            .ok_or_else(|| self.refuse("name", format!("{:?}", self.name), VALID_NAME))?;
        let amount = self.amount_of("amount", self.amount)?;
        let period = self.period.map(|period| self.span_of("period", period)).transpose()?;
        let burst = self.burst.map(|burst| self.amount_of("burst", burst)).transpose()?;
        if let (UNBOUNDED, Some(burst)) = (amount, burst) {
            return Err(self.refuse("burst", burst.to_string(), "left out: the amount is unbounded"));
        }
        let capacity = burst.unwrap_or(amount);
        let soft = self.soft.map(|level| self.level_of(level, capacity)).transpose()?;
        let machine = self.machine(amount, capacity, period)?;
        let resolution = self.resolution.map(Span::covering);
        let period = match self.resets {
            Some(Resets::AfterFirstUse(session)) => Some(session),
            _ => period,
        };
        let LimitBuilder { kind, resets, unit, enforcement, .. } = self;
        Ok(Limit {
            name,
            kind,
            amount,
            capacity,
            period,
            resolution,
            resets,
            unit,
            enforcement,
            soft,
            machine,
        })
    }

    fn machine(&self, amount: u64, capacity: u64, period: Option<Span>) -> Result<Machine, LimitError> {
        let algorithm = match self.kind {
            Kind::Rate(algorithm) | Kind::Calls(algorithm) => Some(algorithm),
            Kind::Resource | Kind::Quota | Kind::Cooldown | Kind::Custom => None,
        };
        let bucket =
            matches!(algorithm, Some(Algorithm::TokenBucket | Algorithm::LeakyBucket | Algorithm::Gcra));
        if let (Some(Ok(burst)), false) = (self.burst, bucket) {
            return Err(self.refuse(
                "burst",
                burst.to_string(),
                "left out: only the bucket algorithms have one",
            ));
        }
        if let (Some(step), true) = (self.resolution, algorithm != Some(Algorithm::SlidingWindow)) {
            let valid = "left out: only a sliding window has one";
            return Err(self.refuse("resolution", format!("{step:?}"), valid));
        }
        let machine = match (algorithm, period, &self.resets) {
            (None, None, Some(resets)) => {
                if let Resets::AfterFirstUse(span) = resets {
                    self.span_of("duration", span.to_duration())?;
                }
                Machine::Quota(Quota::new(amount, resets.clone()))
            }
            (None, None, None) => self.custom.clone().map_or(Machine::Gauge, Machine::Custom),
            (Some(algorithm), Some(period), None) => match algorithm {
                Algorithm::FixedWindow => Machine::Fixed(FixedWindow::new(amount, period)),
                Algorithm::SlidingWindow => {
                    let step = self.resolution.map(|step| self.step_of(step, period)).transpose()?;
                    Machine::Sliding(SlidingWindow::new(amount, period, step))
                }
                _ => Machine::Meter(Meter::new(amount, capacity, period)),
            },
            _ => {
                let shown = algorithm.unwrap_or_default().to_string();
                return Err(self.refuse("algorithm", shown, "left out: only rates and calls have one"));
            }
        };
        Ok(if capacity == UNBOUNDED && !self.kind_is_resource() { Machine::Unbounded } else { machine })
    }

    fn kind_is_resource(&self) -> bool {
        self.kind == Kind::Resource
    }

    fn amount_of(&self, field: &'static str, amount: Result<u64, BadAmount>) -> Result<u64, LimitError> {
        let valid = || format!("1 to {AMOUNT_MAX}, or UNBOUNDED");
        match amount {
            Ok(0) => Err(self.refuse(field, "0".into(), valid())),
            Ok(amount) => Ok(amount),
            Err(BadAmount::Negative(value)) => Err(self.refuse(field, value.to_string(), valid())),
            Err(BadAmount::TooLarge(value)) => Err(self.refuse(field, value.to_string(), valid())),
            Err(BadAmount::NotWhole(value)) => {
                Err(self.refuse(field, value.to_string(), format!("a whole number, {}", valid())))
            }
        }
    }

    fn level_of(&self, level: Result<u64, BadAmount>, capacity: u64) -> Result<u64, LimitError> {
        let level = self.amount_of("soft", level)?;
        if capacity == UNBOUNDED {
            return Err(self.refuse("soft", level.to_string(), "left out: the limit is unbounded"));
        }
        if level >= capacity {
            let valid = format!("below the capacity, which is {capacity}");
            return Err(self.refuse("soft", level.to_string(), valid));
        }
        Ok(level)
    }

    fn span_of(&self, field: &'static str, duration: Duration) -> Result<Span, LimitError> {
        let span = Span::covering(duration);
        let whole = span.to_duration() == duration;
        if whole && span > Span::ZERO && span <= PERIOD_MAX {
            return Ok(span);
        }
        let valid = "a whole number of microseconds, from 1 microsecond to 3660 days (ten years)";
        Err(self.refuse(field, format!("{duration:?}"), valid))
    }

    fn step_of(&self, step: Duration, period: Span) -> Result<Span, LimitError> {
        let span = self.span_of("resolution", step)?;
        let entries = period.as_micros() / span.as_micros();
        if span > period || entries > SlidingWindow::ENTRIES_MAX {
            let valid = format!("at most the period and at least 1/{} of it", SlidingWindow::ENTRIES_MAX);
            return Err(self.refuse("resolution", format!("{step:?}"), valid));
        }
        Ok(span)
    }

    fn refuse(&self, field: &'static str, value: String, valid: impl Into<String>) -> LimitError {
        LimitError::new(&self.name, field, value, valid)
    }
}

impl TryFrom<LimitBuilder> for Limit {
    type Error = LimitError;

    fn try_from(builder: LimitBuilder) -> Result<Limit, LimitError> {
        builder.build()
    }
}
