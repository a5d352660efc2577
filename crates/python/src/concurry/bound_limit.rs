//! One limit of a set: how its amounts are counted, and by which limit of the library.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};
use tollgate::{Algorithm, Limit, LimitError, UNBOUNDED};

use super::amount_scale::{AmountScale, Round, ShortestDecimal, float};
use crate::amount::shown;

/// What a demand for a limit has to be and what has to be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitKind {
    /// Asked by amount, and reported.
    Rate,
    /// 1 unless another amount is asked; only more than 1 is reported.
    Calls,
    /// 1 unless another amount is asked; never reported.
    Resource,
}

/// The description of a limit that Python passes: the limit, its key, its kind, its algorithm, its capacity, its rate per second or
/// its window in seconds.
pub(super) type LimitSpec<'py> =
    (Bound<'py, PyAny>, Bound<'py, PyString>, String, String, f64, Option<f64>, Option<f64>);

/// A limit of a set.
pub(super) struct BoundLimit {
    /// The limit in Python.
    pub(super) limit: Py<PyAny>,
    pub(super) key: Py<PyString>,
    pub(super) kind: LimitKind,
    capacity: f64,
    /// The capacity as a count; 0 for one that is unbounded.
    most: u64,
    scale: AmountScale,
    /// Whether fractions are refused.
    is_whole: bool,
    /// Whether unused amounts are given back.
    pub(super) refunds: bool,
}

/// What an amount comes to.
pub(super) enum Counted {
    Fits(u64),
    /// It is more than the capacity.
    Never,
}

/// What the algorithms are called in Concurry.
const ALGORITHMS: [(&str, Algorithm); 5] = [
    ("TokenBucket", Algorithm::TokenBucket),
    ("LeakyBucket", Algorithm::LeakyBucket),
    ("GCRA", Algorithm::Gcra),
    ("FixedWindow", Algorithm::FixedWindow),
    ("SlidingWindow", Algorithm::SlidingWindow),
];

/// The longest and the shortest period there are, in seconds.
const PERIODS: (f64, f64) = (1e-6, 3660.0 * 86_400.0);

impl BoundLimit {
    /// Makes a limit of the library, named `name`, from the description of one.
    ///
    /// # Errors
    ///
    /// `ValueError` for a window that is too long, or a limit that the library refuses.
    pub(super) fn of(name: &str, spec: LimitSpec<'_>) -> PyResult<(BoundLimit, Limit)> {
        let (limit, key, kind, algorithm, capacity, rate, window) = spec;
        let kind = match kind.as_str() {
            "resource" => LimitKind::Resource,
            "calls" => LimitKind::Calls,
            _ => LimitKind::Rate,
        };
        let known = ALGORITHMS.iter().find(|(known, _)| *known == algorithm);
        let algorithm = known.map_or(Algorithm::TokenBucket, |(_, algorithm)| *algorithm);
        let counts_calls = matches!(algorithm, Algorithm::LeakyBucket | Algorithm::SlidingWindow);
        let is_whole = kind == LimitKind::Resource || counts_calls;
        let decimal = ShortestDecimal::of(capacity);
        let scale = match decimal {
            Some(decimal) if !is_whole => AmountScale::for_capacity(decimal),
            _ => AmountScale::WHOLE,
        };
        let most = decimal.and_then(|decimal| decimal.count(scale.places(), Round::Down));
        // Larger ones can never be used up: a count is at most 10^15.
        let most = most.filter(|most| *most <= tollgate::AMOUNT_MAX).unwrap_or(0);
        let is_unbounded = most == 0 && capacity >= 1.0;
        // What admits nothing is refused before the library is asked, which has no such limit.
        let count = if is_unbounded { UNBOUNDED } else { most.max(1) };
        let made = Measure { name, algorithm, count, places: scale.places() };
        let made = match (kind, rate, window) {
            (LimitKind::Resource, ..) => Limit::resource(name, count).build(),
            (_, Some(rate), _) if !is_unbounded => made.by_rate(rate),
            (_, _, window) => made.by_window(window.unwrap_or(1.0).max(PERIODS.0)),
        };
        let made = made.map_err(|error| {
            let key = key.to_string_lossy();
            PyValueError::new_err(format!(
                "limit '{key}': {} is {}, but must be {}",
                error.field(),
                error.value(),
                error.valid()
            ))
        })?;
        let refunds = matches!(algorithm, Algorithm::TokenBucket | Algorithm::Gcra);
        let bound = BoundLimit {
            limit: limit.unbind(),
            key: key.unbind(),
            kind,
            capacity,
            most: if is_unbounded { 0 } else { most },
            scale,
            is_whole,
            refunds,
        };
        Ok((bound, made))
    }

    fn is_unbounded(&self) -> bool {
        self.most == 0 && self.capacity >= 1.0
    }

    /// Returns what an amount that is asked for comes to.
    ///
    /// # Errors
    ///
    /// `ValueError` for a negative amount, NaN, and a fraction where only whole numbers count; `TypeError` for what is no number.
    #[inline]
    pub(super) fn count(&self, value: &Bound<'_, PyAny>) -> PyResult<Counted> {
        if value.is_exact_instance_of::<PyInt>()
            && let Ok(whole) = value.extract::<u64>()
            && let Some(count) = self.scale.whole(whole)
            && count <= self.most
        {
            return Ok(Counted::Fits(count));
        }
        self.count_unusual(value)
    }

    #[cold]
    fn count_unusual(&self, value: &Bound<'_, PyAny>) -> PyResult<Counted> {
        let number = self.number(value)?;
        if number > self.capacity {
            return Ok(Counted::Never);
        }
        if self.is_unbounded() {
            return Ok(Counted::Fits(0));
        }
        // An amount that is not more than the capacity takes at most all of it, however both were rounded.
        let count = self.scale.count(number, Round::Up).unwrap_or(self.most);
        Ok(Counted::Fits(count.min(self.most)))
    }

    /// Returns a number that may be asked for.
    fn number(&self, value: &Bound<'_, PyAny>) -> PyResult<f64> {
        let key = || self.key.bind(value.py()).to_string_lossy().into_owned();
        let number = float(value)?;
        if number.is_nan() || number < 0.0 {
            let text = format!("the amount for limit '{}' is {}, but must be 0 or more", key(), shown(value));
            return Err(PyValueError::new_err(text));
        }
        if self.is_whole && number.fract() != 0.0 {
            let why = match self.kind {
                LimitKind::Resource => "a resource is counted in integers",
                _ => "only TokenBucket, GCRA and FixedWindow take fractional amounts",
            };
            let text = format!("the amount for limit '{}' is {}: {why}", key(), shown(value));
            return Err(PyValueError::new_err(text));
        }
        Ok(number)
    }

    /// Returns what a reported amount comes to, where `requested` was taken. It is not negative.
    ///
    /// # Errors
    ///
    /// `TypeError` for what is no number.
    #[inline]
    pub(super) fn count_used(&self, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        if value.is_exact_instance_of::<PyInt>()
            && let Ok(whole) = value.extract::<u64>()
            && let Some(count) = self.scale.whole(whole)
            && count <= self.most
        {
            return Ok(count);
        }
        let number = float(value)?;
        if self.is_unbounded() {
            return Ok(0);
        }
        let count = self.scale.count(number, Round::Up).unwrap_or(tollgate::AMOUNT_MAX);
        let most = if number <= self.capacity { self.most } else { tollgate::AMOUNT_MAX };
        Ok(count.min(most))
    }

    /// Returns how much a count of available amounts means.
    pub(super) fn available(&self, count: i64) -> f64 {
        if self.is_unbounded() { f64::INFINITY } else { self.scale.number(count) }
    }

    pub(super) fn never(&self, value: &Bound<'_, PyAny>) -> PyErr {
        let key = self.key.bind(value.py()).to_string_lossy();
        let capacity = self.limit.bind(value.py()).getattr("capacity").map_or(String::new(), |c| shown(&c));
        let text = format!(
            "the requested amount {} exceeds capacity {capacity} of limit '{key}' and can never be fulfilled",
            shown(value)
        );
        PyValueError::new_err(text)
    }
}

/// How a rate is measured.
struct Measure<'a> {
    name: &'a str,
    algorithm: Algorithm,
    count: u64,
    places: i32,
}

impl Measure<'_> {
    /// Makes a rate whose whole capacity comes back in a window.
    fn by_window(self, seconds: f64) -> Result<Limit, LimitError> {
        // Rounded up to whole microseconds; what is too long is refused with the longest.
        let micros = (seconds.min(2.0 * PERIODS.1) * 1e6).ceil();
        let period = Duration::from_micros(micros as u64);
        match self.algorithm {
            Algorithm::FixedWindow => Limit::fixed_window(self.name, self.count, period).build(),
            Algorithm::SlidingWindow => Limit::sliding_window(self.name, self.count, period).build(),
            algorithm => Limit::rate(self.name, self.count, period).algorithm(algorithm).build(),
        }
    }

    /// Makes a rate of a number per second, which may be 0 or infinite.
    fn by_rate(self, rate: f64) -> Result<Limit, LimitError> {
        let (amount, micros) = match ShortestDecimal::of(rate) {
            Some(rate) => rate.per_second(self.places),
            None => (tollgate::AMOUNT_MAX, 1),
        };
        // Nothing comes back in the time that a limit lasts.
        let (amount, micros) = if amount == 0 { (1, (PERIODS.1 * 1e6) as u64) } else { (amount, micros) };
        let limit = Limit::rate(self.name, amount, Duration::from_micros(micros));
        limit.burst(self.count).algorithm(self.algorithm).build()
    }
}
