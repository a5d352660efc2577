//! Limits: one rule with a name each.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyString, PyTuple, PyType};
use tollgate::calendar;
use tollgate::{Algorithm, Kind, Limit, LimitBuilder, Limits, Resets, UNBOUNDED, Unit};

use crate::amount::{amount, shown, span, text};
use crate::error::{OrRaise, invalid};

/// One rule with a name: how much, how fast, of what kind. Made by `per_minute` and its like; a limit that exists is valid.
///
/// ```python
/// import tollgate as tg
///
/// limit = tg.per_minute("rpm", 500, burst=50)
/// assert (limit.name, limit.kind, limit.capacity, limit.period) == ("rpm", "rate", 50, 60.0)
/// ```
#[pyclass(frozen, name = "Limit", module = "tollgate")]
pub(crate) struct PyLimit(pub(crate) Limit);

/// The unit of a limit whose amounts are written as decimal numbers, such as money. Amounts are counted in `10**-decimals`.
///
/// ```python
/// import tollgate as tg
///
/// usd = tg.Unit("USD", 6)
/// budget = tg.LimitSet([tg.per_day("spend", "5.00", unit=usd)])
/// budget.acquire(spend="0.0125").commit()
/// assert usd.show(4_987_500) == "4.9875 USD"
/// ```
#[pyclass(frozen, name = "Unit", module = "tollgate", eq, hash)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct PyUnit(pub(crate) Unit);

#[pymethods]
impl PyUnit {
    #[new]
    fn new(py: Python<'_>, symbol: &Bound<'_, PyString>, decimals: u8) -> PyResult<PyUnit> {
        let unit = Unit::new(text("symbol", symbol)?, decimals);
        unit.map(PyUnit).map_err(|error| invalid(py, error.to_string()))
    }

    #[getter]
    fn symbol(&self) -> &str {
        self.0.symbol()
    }

    #[getter]
    fn decimals(&self) -> u8 {
        self.0.decimals()
    }

    /// Returns the amount that a text, a number or a `Decimal` means.
    fn parse(&self, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        match value.cast::<PyString>() {
            Ok(_) => amount(self.0.symbol(), value, Some(&self.0)),
            Err(_) => amount(self.0.symbol(), value.str()?.as_any(), Some(&self.0)),
        }
    }

    /// Returns an amount as text, with the symbol.
    fn show(&self, amount: u64) -> String {
        self.0.show(amount)
    }

    fn __repr__(&self) -> String {
        format!("Unit({:?}, {})", self.0.symbol(), self.0.decimals())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (String, u8)) {
        (py.get_type::<PyUnit>(), (self.0.symbol().into(), self.0.decimals()))
    }
}

/// What an algorithm is called in Python.
const ALGORITHMS: [(Algorithm, &str); 5] = [
    (Algorithm::TokenBucket, "token_bucket"),
    (Algorithm::LeakyBucket, "leaky_bucket"),
    (Algorithm::Gcra, "gcra"),
    (Algorithm::FixedWindow, "fixed_window"),
    (Algorithm::SlidingWindow, "sliding_window"),
];

#[pymethods]
impl PyLimit {
    /// The name, which is unique within a set.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// What it counts: `rate`, `calls`, `resource` or `quota`.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0.kind() {
            Kind::Rate(_) => "rate",
            Kind::Calls(_) => "calls",
            Kind::Resource => "resource",
            Kind::Quota => "quota",
            _ => "other",
        }
    }

    /// How a rate is measured; `None` for what is no rate.
    #[getter]
    fn algorithm(&self) -> Option<&'static str> {
        let (Kind::Rate(algorithm) | Kind::Calls(algorithm)) = self.0.kind() else { return None };
        ALGORITHMS.iter().find(|(known, _)| *known == algorithm).map(|(_, name)| *name)
    }

    /// How much it allows in its period; `inf` without a bound.
    #[getter]
    fn amount<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        bounded(py, self.0.amount())
    }

    /// How much is available at once, at most.
    #[getter]
    fn capacity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        bounded(py, self.0.capacity())
    }

    /// The period in seconds, of a rate, or of a quota that resets so long after its first use.
    #[getter]
    fn period(&self) -> Option<f64> {
        self.0.period().map(|span| span.to_duration().as_secs_f64())
    }

    #[getter]
    fn unit(&self) -> Option<PyUnit> {
        self.0.unit().cloned().map(PyUnit)
    }

    /// Whether it counts and never denies.
    #[getter]
    fn shadow(&self) -> bool {
        self.0.is_shadow()
    }

    /// The level above which use is reported.
    #[getter]
    fn soft(&self) -> Option<u64> {
        self.0.soft_level()
    }

    fn __repr__(&self) -> String {
        format!("<Limit {}>", self.0)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyLimit>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.to_string().hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let limits = Limits::new([self.0.clone()]).or_raise(py)?;
        Ok((py.get_type::<PyLimit>().getattr("_from_text")?, (limits.to_text(),)))
    }

    /// Restores a pickled limit.
    #[staticmethod]
    fn _from_text(py: Python<'_>, text: &str) -> PyResult<PyLimit> {
        let limits = Limits::from_text(text, &|calendar| calendar::parse(calendar).ok());
        let limits = limits.map_err(|error| invalid(py, error.to_string()))?;
        let limit = limits.iter().next().cloned();
        limit.map(PyLimit).ok_or_else(|| invalid(py, "the pickle holds no limit"))
    }
}

/// Returns an amount, or infinity where there is no bound.
pub(crate) fn bounded(py: Python<'_>, amount: u64) -> PyResult<Bound<'_, PyAny>> {
    if amount == UNBOUNDED {
        return Ok(PyFloat::new(py, f64::INFINITY).into_any());
    }
    Ok(amount.into_pyobject(py)?.into_any())
}

/// What can be said of a limit beside its name, amount and period.
struct Details<'a, 'py> {
    burst: Option<&'a Bound<'py, PyAny>>,
    algorithm: Option<&'a str>,
    unit: Option<&'a PyUnit>,
    soft: Option<&'a Bound<'py, PyAny>>,
    shadow: bool,
}

impl Details<'_, '_> {
    fn apply(&self, py: Python<'_>, mut builder: LimitBuilder) -> PyResult<PyLimit> {
        let unit = self.unit.map(|unit| &unit.0);
        if let Some(name) = self.algorithm {
            builder = builder.algorithm(algorithm(py, name)?);
        }
        if let Some(burst) = self.burst {
            builder = builder.burst(capacity("burst", burst, unit)?);
        }
        if let Some(level) = self.soft {
            builder = builder.soft(amount("soft", level, unit)?);
        }
        if let Some(unit) = unit {
            builder = builder.unit(unit.clone());
        }
        if self.shadow {
            builder = builder.shadow();
        }
        builder.build().map(PyLimit).or_raise(py)
    }
}

fn algorithm(py: Python<'_>, name: &str) -> PyResult<Algorithm> {
    let known = ALGORITHMS.iter().find(|(_, known)| *known == name);
    known.map(|(algorithm, _)| *algorithm).ok_or_else(|| {
        let names = ALGORITHMS.map(|(_, name)| name).join(", ");
        invalid(py, format!("algorithm is {name:?}, but must be one of {names}"))
    })
}

/// Converts a capacity: an amount, or infinity.
fn capacity(what: &str, value: &Bound<'_, PyAny>, unit: Option<&Unit>) -> PyResult<u64> {
    let is_infinite = value.is_exact_instance_of::<PyFloat>()
        && value.extract::<f64>().is_ok_and(|value| value == f64::INFINITY);
    if is_infinite { Ok(UNBOUNDED) } else { amount(what, value, unit) }
}

/// Defines the functions that make a rate of a fixed period.
macro_rules! rates {
    ($($(#[$doc:meta])* $function:ident;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (name, amount, *, burst=None, algorithm=None, unit=None, soft=None, shadow=false))]
        #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
        pub(crate) fn $function(
            py: Python<'_>,
            name: &Bound<'_, PyString>,
            amount: &Bound<'_, PyAny>,
            burst: Option<&Bound<'_, PyAny>>,
            algorithm: Option<&str>,
            unit: Option<&PyUnit>,
            soft: Option<&Bound<'_, PyAny>>,
            shadow: bool,
        ) -> PyResult<PyLimit> {
            let amount = capacity("amount", amount, unit.map(|unit| &unit.0))?;
            let builder = Limit::$function(text("name", name)?, amount);
            Details { burst, algorithm, unit, soft, shadow }.apply(py, builder)
        }
    )*};
}

rates! {
    /// Limits to `amount` a second, as a token bucket unless `algorithm` says otherwise.
    ///
    /// ```python
    /// import tollgate as tg
    ///
    /// assert tg.per_second("calls", 50).amount == 50
    /// ```
    per_second;
    /// Limits to `amount` a minute, as a token bucket unless `algorithm` says otherwise.
    ///
    /// ```python
    /// import tollgate as tg
    ///
    /// assert tg.per_minute("calls", 50).amount == 50
    /// ```
    per_minute;
    /// Limits to `amount` an hour, as a token bucket unless `algorithm` says otherwise.
    ///
    /// ```python
    /// import tollgate as tg
    ///
    /// assert tg.per_hour("calls", 50).amount == 50
    /// ```
    per_hour;
    /// Limits to `amount` a day, as a token bucket unless `algorithm` says otherwise.
    ///
    /// ```python
    /// import tollgate as tg
    ///
    /// assert tg.per_day("calls", 50).amount == 50
    /// ```
    per_day;
}

/// Limits to `amount` in each `period` (seconds or a `timedelta`), as a token bucket unless `algorithm` says otherwise.
///
/// ```python
/// import tollgate as tg
///
/// assert tg.rate("calls", 5, period=0.5, burst=10).capacity == 10
/// ```
#[pyfunction]
#[pyo3(signature = (name, amount, period, *, burst=None, algorithm=None, unit=None, soft=None, shadow=false))]
#[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn rate(
    py: Python<'_>,
    name: &Bound<'_, PyString>,
    amount: &Bound<'_, PyAny>,
    period: &Bound<'_, PyAny>,
    burst: Option<&Bound<'_, PyAny>>,
    algorithm: Option<&str>,
    unit: Option<&PyUnit>,
    soft: Option<&Bound<'_, PyAny>>,
    shadow: bool,
) -> PyResult<PyLimit> {
    let amount = capacity("amount", amount, unit.map(|unit| &unit.0))?;
    let builder = Limit::rate(text("name", name)?, amount, span("period", period)?);
    Details { burst, algorithm, unit, soft, shadow }.apply(py, builder)
}

/// Limits to `amount` in each window of `period`; windows begin at multiples of the period since the epoch.
///
/// ```python
/// import tollgate as tg
///
/// assert tg.fixed_window("calls", 50, period=3_600).algorithm == "fixed_window"
/// ```
#[pyfunction]
#[pyo3(signature = (name, amount, period, *, unit=None, soft=None, shadow=false))]
pub(crate) fn fixed_window(
    py: Python<'_>,
    name: &Bound<'_, PyString>,
    amount: &Bound<'_, PyAny>,
    period: &Bound<'_, PyAny>,
    unit: Option<&PyUnit>,
    soft: Option<&Bound<'_, PyAny>>,
    shadow: bool,
) -> PyResult<PyLimit> {
    let amount = capacity("amount", amount, unit.map(|unit| &unit.0))?;
    let builder = Limit::fixed_window(text("name", name)?, amount, span("period", period)?);
    Details { burst: None, algorithm: None, unit, soft, shadow }.apply(py, builder)
}

/// Limits to `amount` in every window of `period`, wherever it begins. Calls within one step of `resolution` count as of the last of
/// them; by default a step is a thousandth of the window.
///
/// ```python
/// import tollgate as tg
///
/// assert tg.sliding_window("calls", 50, period=60, resolution=1).algorithm == "sliding_window"
/// ```
#[pyfunction]
#[pyo3(signature = (name, amount, period, *, resolution=None, unit=None, soft=None, shadow=false))]
#[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn sliding_window(
    py: Python<'_>,
    name: &Bound<'_, PyString>,
    amount: &Bound<'_, PyAny>,
    period: &Bound<'_, PyAny>,
    resolution: Option<&Bound<'_, PyAny>>,
    unit: Option<&PyUnit>,
    soft: Option<&Bound<'_, PyAny>>,
    shadow: bool,
) -> PyResult<PyLimit> {
    let amount = capacity("amount", amount, unit.map(|unit| &unit.0))?;
    let mut builder = Limit::sliding_window(text("name", name)?, amount, span("period", period)?);
    if let Some(step) = resolution {
        builder = builder.resolution(span("resolution", step)?);
    }
    Details { burst: None, algorithm: None, unit, soft, shadow }.apply(py, builder)
}

/// Limits to `amount` calls in each `period`. Every demand takes 1 of it unless it names another amount.
///
/// ```python
/// import tollgate as tg
///
/// limits = tg.LimitSet([tg.calls(10, period=60, name="calls")])
/// limits.acquire().commit()
/// assert limits.peek()["calls"].available >= 9
/// ```
#[pyfunction]
#[pyo3(signature = (amount, period, *, name=None, burst=None, algorithm=None, soft=None, shadow=false))]
#[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn calls(
    py: Python<'_>,
    amount: &Bound<'_, PyAny>,
    period: &Bound<'_, PyAny>,
    name: Option<&Bound<'_, PyString>>,
    burst: Option<&Bound<'_, PyAny>>,
    algorithm: Option<&str>,
    soft: Option<&Bound<'_, PyAny>>,
    shadow: bool,
) -> PyResult<PyLimit> {
    let mut builder = Limit::calls(capacity("amount", amount, None)?, span("period", period)?);
    if let Some(name) = name {
        builder = builder.named(text("name", name)?);
    }
    Details { burst, algorithm, unit: None, soft, shadow }.apply(py, builder)
}

/// Limits to `capacity` at once. Every demand takes 1 of it unless it names another amount, and the lease gives it back at its end.
///
/// ```python
/// import tollgate as tg
///
/// limits = tg.LimitSet([tg.resource("connections", 16)])
/// with limits.acquire():
///     assert limits.peek()["connections"].available == 15
/// assert limits.peek()["connections"].available == 16
/// ```
#[pyfunction]
#[pyo3(signature = (name, capacity, *, soft=None, shadow=false))]
pub(crate) fn resource(
    py: Python<'_>,
    name: &Bound<'_, PyString>,
    capacity: &Bound<'_, PyAny>,
    soft: Option<&Bound<'_, PyAny>>,
    shadow: bool,
) -> PyResult<PyLimit> {
    let builder = Limit::resource(text("name", name)?, self::capacity("capacity", capacity, None)?);
    Details { burst: None, algorithm: None, unit: None, soft, shadow }.apply(py, builder)
}

/// Limits to `amount` until it is full again: at the times of a `cron` expression in the zone `tz`, or so long `after` its first use.
///
/// ```python
/// import tollgate as tg
///
/// daily = tg.quota("tokens", 1_000_000, cron="0 0 * * *", tz="Europe/Berlin")
/// session = tg.quota("messages", 45, after=5 * 3_600)
/// assert (daily.kind, session.capacity) == ("quota", 45)
/// ```
#[pyfunction]
#[pyo3(signature = (name, amount, *, cron=None, tz="UTC", after=None, unit=None, soft=None, shadow=false))]
#[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn quota(
    py: Python<'_>,
    name: &Bound<'_, PyString>,
    amount: &Bound<'_, PyAny>,
    cron: Option<&str>,
    tz: &str,
    after: Option<&Bound<'_, PyAny>>,
    unit: Option<&PyUnit>,
    soft: Option<&Bound<'_, PyAny>>,
    shadow: bool,
) -> PyResult<PyLimit> {
    let resets: Resets = match (cron, after) {
        (Some(cron), None) => {
            calendar::cron(cron, tz).map_err(|error| invalid(py, error.to_string()))?.into()
        }
        (None, Some(after)) => span("after", after)?.into(),
        _ => {
            return Err(invalid(
                py,
                "a quota wants either cron, such as \"0 0 * * *\", or after, in seconds",
            ));
        }
    };
    let amount = capacity("amount", amount, unit.map(|unit| &unit.0))?;
    let builder = Limit::quota(text("name", name)?, amount, resets);
    Details { burst: None, algorithm: None, unit, soft, shadow }.apply(py, builder)
}

/// Returns the limits of a list, tuple or other iterable.
///
/// # Errors
///
/// `TypeError` for what is no limit.
pub(crate) fn limits_of(limits: &Bound<'_, PyAny>) -> PyResult<Vec<Limit>> {
    let limit = |item: PyResult<Bound<'_, PyAny>>| {
        let item = item?;
        let limit = item.cast::<PyLimit>().map_err(|_| {
            let text =
                format!("{} is not a Limit; make one with per_minute, resource and the like", shown(&item));
            PyTypeError::new_err(text)
        })?;
        Ok(limit.get().0.clone())
    };
    limits.try_iter()?.map(limit).collect()
}

/// Returns limits as a tuple.
pub(crate) fn tuple_of<'py>(py: Python<'py>, limits: &Limits) -> PyResult<Bound<'py, PyTuple>> {
    let limits: Vec<PyLimit> =
        limits.iter().filter(|limit| !limit.is_cooldown()).map(|limit| PyLimit(limit.clone())).collect();
    PyTuple::new(py, limits)
}
