//! Demands: a dict, keywords, or both; or one that was prepared.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyMapping, PyString};
use smallvec::SmallVec;
use tollgate::{AsDemand, BadAmount, Demand, Limits, Unit};
use tollgate_core::HashedName;

use crate::amount::{amount, integer, shown};
use crate::error::invalid_demand;

/// A demand with amounts that were checked, to be used again and again: `set.demand(rpm=1, tpm=1500)`.
///
/// ```python
/// import tollgate as tg
///
/// limits = tg.LimitSet([tg.per_minute("rpm", 500), tg.per_minute("tpm", 200_000)])
/// demand = limits.demand(rpm=1, tpm=1_500)
/// limits.acquire(demand).commit()
/// assert demand.as_dict() == {"rpm": 1, "tpm": 1_500}
/// ```
#[pyclass(frozen, name = "Demand", module = "tollgate")]
pub(crate) struct PyDemand(pub(crate) Demand);

#[pymethods]
impl PyDemand {
    fn __repr__(&self) -> String {
        format!("Demand({})", DemandText(&self.0))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Returns the amounts by name.
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, amount) in (0..self.0.len()).map(|index| self.0.part(index)) {
            dict.set_item(name.as_str(), amount)?;
        }
        Ok(dict)
    }
}

struct DemandText<'a>(&'a Demand);

impl std::fmt::Display for DemandText<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for index in 0..self.0.len() {
            let (name, amount) = self.0.part(index);
            write!(f, "{}{}={amount}", if index == 0 { "" } else { ", " }, name.as_str())?;
        }
        Ok(())
    }
}

/// How many names a demand has without an allocation.
const FEW: usize = 4;

/// The names and amounts of one call. The names are those of the caller's dict.
#[derive(Default)]
pub(crate) struct NamedAmounts<'py>(SmallVec<[(Bound<'py, PyString>, u64); FEW]>);

impl AsDemand for NamedAmounts<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn part(&self, index: usize) -> (HashedName<'_>, u64) {
        let (name, amount) = &self.0[index];
        // Checked when it was collected; the text is cached in the string.
        (HashedName::new(name.to_str().unwrap_or_default()), *amount)
    }

    fn bad_amount(&self) -> Option<(&str, BadAmount)> {
        None
    }
}

/// Where the unit of a name is looked up.
pub(crate) trait UnitLookup {
    /// Returns the unit of the limit with this name.
    fn unit_of(&self, name: &str) -> Option<Unit>;
}

impl UnitLookup for Limits {
    fn unit_of(&self, name: &str) -> Option<Unit> {
        self[self.index(name)?].unit().cloned()
    }
}

/// No units: the limits are stored, so that amounts are whole numbers.
pub(crate) struct NoUnits;

impl UnitLookup for NoUnits {
    fn unit_of(&self, _name: &str) -> Option<Unit> {
        None
    }
}

/// The names and amounts of one call as plain texts and numbers, which other threads may read.
pub(crate) struct PlainAmounts<'a>(SmallVec<[(&'a str, u64); FEW]>);

impl AsDemand for PlainAmounts<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn part(&self, index: usize) -> (HashedName<'_>, u64) {
        let (name, amount) = self.0[index];
        (HashedName::new(name), amount)
    }

    fn bad_amount(&self) -> Option<(&str, BadAmount)> {
        None
    }
}

impl<'py> NamedAmounts<'py> {
    /// Returns them as plain texts and numbers.
    pub(crate) fn plain(&self) -> PlainAmounts<'_> {
        // Checked when it was collected.
        PlainAmounts(
            self.0.iter().map(|(name, amount)| (name.to_str().unwrap_or_default(), *amount)).collect(),
        )
    }

    /// Collects the names and amounts of a dict, or any mapping, and of keywords.
    ///
    /// # Errors
    ///
    /// `InvalidDemand` for what is no mapping, no name or no amount.
    pub(crate) fn collect(
        py: Python<'py>,
        demand: Option<&Bound<'py, PyAny>>,
        named: Option<&Bound<'py, PyDict>>,
        units: &impl UnitLookup,
    ) -> PyResult<NamedAmounts<'py>> {
        let mut amounts = NamedAmounts::default();
        if let Some(demand) = demand {
            match demand.cast::<PyDict>() {
                Ok(dict) => amounts.add(py, dict, units)?,
                Err(_) => amounts.add(py, &copy_of(demand)?, units)?,
            }
        }
        if let Some(named) = named {
            amounts.add(py, named, units)?;
        }
        Ok(amounts)
    }

    #[inline]
    fn add(&mut self, py: Python<'py>, dict: &Bound<'py, PyDict>, units: &impl UnitLookup) -> PyResult<()> {
        let mut others: SmallVec<[(usize, Bound<'py, PyAny>); 1]> = SmallVec::new();
        for (key, value) in dict.iter() {
            let name = match key.cast_into::<PyString>() {
                Ok(name) => name,
                Err(error) => return Err(not_a_name(&error.into_inner())),
            };
            let Ok(text) = name.to_str() else { return Err(not_unicode(&name)) };
            // Converting other values may run code of the caller, which may change the dict: that comes later.
            let amount = if value.is_exact_instance_of::<PyInt>() {
                integer(text, &value)?
            } else {
                others.push((self.0.len(), value));
                0
            };
            self.0.push((name, amount));
        }
        for (index, value) in others {
            self.convert(index, &value, units)?;
        }
        let _ = py;
        Ok(())
    }

    #[cold]
    fn convert(&mut self, index: usize, value: &Bound<'py, PyAny>, units: &impl UnitLookup) -> PyResult<()> {
        let (name, place) = &mut self.0[index];
        let name = name.to_str()?;
        *place = amount(name, value, units.unit_of(name).as_ref())?;
        Ok(())
    }
}

/// Copies a mapping that is no dict.
#[cold]
fn copy_of<'py>(demand: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let py = demand.py();
    let mapping = demand.cast::<PyMapping>().map_err(|_| {
        let text = format!("a demand is a dict of names and amounts, not {}", shown(demand));
        invalid_demand(py, text)
    })?;
    let dict = PyDict::new(py);
    dict.update(mapping)?;
    Ok(dict)
}

#[cold]
fn not_a_name(key: &Bound<'_, PyAny>) -> PyErr {
    invalid_demand(key.py(), format!("{} is not the name of a limit; names are texts", shown(key)))
}

#[cold]
fn not_unicode(key: &Bound<'_, PyString>) -> PyErr {
    invalid_demand(key.py(), format!("{} is not the name of a limit: it is not valid Unicode", shown(key)))
}

/// Collects the demand of a call that outlives it, as [`NamedAmounts::collect`] does; a prepared demand is copied.
///
/// # Errors
///
/// As [`NamedAmounts::collect`].
pub(crate) fn owned_demand<'py>(
    py: Python<'py>,
    demand: Option<&Bound<'py, PyAny>>,
    named: Option<&Bound<'py, PyDict>>,
    units: &impl UnitLookup,
) -> PyResult<Demand> {
    match demand.and_then(|demand| demand.cast::<PyDemand>().ok()) {
        Some(prepared) => {
            let more = NamedAmounts::collect(py, None, named, units)?;
            let prepared = prepared.get().0.clone();
            let parts = (0..more.len()).map(|index| more.part(index));
            Ok(parts.fold(prepared, |demand, (name, amount)| demand.with(name.as_str(), amount)))
        }
        None => Ok(Demand::copy_of(&NamedAmounts::collect(py, demand, named, units)?)),
    }
}

/// Collects changes of amounts, which may be negative.
///
/// # Errors
///
/// `InvalidDemand` for what is no mapping, no name or no whole number.
pub(crate) fn changes<'py>(
    py: Python<'py>,
    by: Option<&Bound<'py, PyAny>>,
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Vec<(String, i64)>> {
    let mut changes = Vec::new();
    let given = by.map(copy_of).transpose()?;
    for dict in given.iter().chain(named) {
        // A copy: converting a value may run code of the caller.
        for (key, value) in dict.copy()?.iter() {
            let name = key.cast::<PyString>().map_err(|_| not_a_name(&key))?;
            let name = name.to_str().map_err(|_| not_unicode(name))?.to_owned();
            let is_negative = value.lt(0).unwrap_or(false);
            let size = if is_negative { value.neg()? } else { value };
            // An amount is far below the largest i64.
            let size = amount(&name, &size, None)? as i64;
            changes.push((name, if is_negative { -size } else { size }));
        }
    }
    let _ = py;
    Ok(changes)
}
