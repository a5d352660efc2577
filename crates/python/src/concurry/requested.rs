//! What one call takes: the amounts that its caller names, and 1 of each call limit and resource that it does not name.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString};
use smallvec::SmallVec;
use tollgate::{AsDemand, BadAmount};
use tollgate_core::{HashedName, LIMITS_MAX};

use super::bound_limit::{BoundLimit, Counted, LimitKind};

/// How many limits a call has without an allocation.
pub(super) const FEW: usize = 4;

/// One limit that a call takes from.
pub(super) struct TakenPart {
    /// Its index in the set.
    pub(super) limit: usize,
    /// The amount as the caller wrote it.
    pub(super) requested: Py<PyAny>,
    pub(super) count: u64,
}

pub(super) type TakenParts = SmallVec<[TakenPart; FEW]>;

/// The names of the limits in the library, by index.
const TEXTS: [&str; LIMITS_MAX] = [
    "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9", "k10", "k11", "k12", "k13", "k14", "k15",
    "k16", "k17", "k18", "k19", "k20", "k21", "k22", "k23", "k24", "k25", "k26", "k27", "k28", "k29", "k30",
    "k31",
];

const NAMES: [HashedName<'static>; LIMITS_MAX] = {
    let mut names = [HashedName::new(TEXTS[0]); LIMITS_MAX];
    let mut index = 1;
    while index < LIMITS_MAX {
        names[index] = HashedName::new(TEXTS[index]);
        index += 1;
    }
    names
};

/// Returns the name of a limit in the library.
pub(super) fn name(index: usize) -> HashedName<'static> {
    NAMES[index]
}

/// Counts by the index of a limit, as a demand of the library.
pub(super) struct CountedDemand(pub(super) SmallVec<[(usize, u64); FEW]>);

impl CountedDemand {
    pub(super) fn of(parts: &[TakenPart]) -> CountedDemand {
        CountedDemand(parts.iter().map(|part| (part.limit, part.count)).collect())
    }
}

impl AsDemand for CountedDemand {
    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn part(&self, index: usize) -> (HashedName<'_>, u64) {
        let (limit, count) = self.0[index];
        (NAMES[limit], count)
    }

    fn bad_amount(&self) -> Option<(&str, BadAmount)> {
        None
    }
}

/// Returns the index of the limit with this key.
#[inline]
pub(super) fn index_of(limits: &[BoundLimit], key: &Bound<'_, PyAny>) -> Option<usize> {
    // Keys are mostly the same object; texts are compared only if none is.
    let same = limits.iter().position(|limit| limit.key.as_ptr() == key.as_ptr());
    same.or_else(|| {
        let key = key.cast::<PyString>().ok()?;
        limits.iter().position(|limit| limit.key.bind(key.py()).as_any().eq(key).unwrap_or(false))
    })
}

/// Collects what a call takes.
///
/// # Errors
///
/// `ValueError` for an amount that is not valid or more than its capacity, and if nothing is named where a rate needs an amount.
#[inline]
pub(super) fn taken_parts<'py>(
    set: &Bound<'py, PyAny>,
    limits: &[BoundLimit],
    requested: Option<&Bound<'py, PyAny>>,
) -> PyResult<TakenParts> {
    let py = set.py();
    let mut parts = TakenParts::new();
    let mut named = 0_u32;
    let requested = requested.map(dict_of).transpose()?.filter(|requested| !requested.is_empty());
    if let Some(requested) = &requested {
        let mut others: SmallVec<[Bound<'py, PyAny>; 1]> = SmallVec::new();
        let mut unusual: SmallVec<[(usize, Bound<'py, PyAny>); 1]> = SmallVec::new();
        for (key, value) in requested.iter() {
            let Some(limit) = index_of(limits, &key) else {
                others.push(key);
                continue;
            };
            named |= 1 << limit;
            // Converting other values and warning may run code of the caller, which may change the dict: that comes later.
            let is_usual = value.is_exact_instance_of::<PyInt>();
            let count = if is_usual { fitting(&limits[limit], &value)? } else { 0 };
            if !is_usual {
                unusual.push((parts.len(), value.clone()));
            }
            parts.push(TakenPart { limit, requested: value.unbind(), count });
        }
        for (place, value) in unusual {
            parts[place].count = fitting(&limits[parts[place].limit], &value)?;
        }
        for key in others {
            set.call_method1(intern!(py, "_warn_of_unknown_key"), (key,))?;
        }
    }
    for (index, limit) in limits.iter().enumerate() {
        if named >> index & 1 == 1 {
            continue;
        }
        if limit.kind != LimitKind::Rate {
            let one = PyInt::new(py, 1).into_any();
            let count = fitting(limit, &one)?;
            parts.push(TakenPart { limit: index, requested: one.unbind(), count });
        } else if requested.is_none() {
            let key = limit.key.bind(py).to_string_lossy();
            let text =
                format!("Must specify requested amount for RateLimit '{key}': acquire({{'{key}': amount}})");
            return Err(PyValueError::new_err(text));
        }
    }
    Ok(parts)
}

#[inline]
fn fitting(limit: &BoundLimit, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    match limit.count(value)? {
        Counted::Fits(count) => Ok(count),
        Counted::Never => Err(limit.never(value)),
    }
}

/// Returns a mapping as a dict.
pub(super) fn dict_of<'py>(mapping: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    match mapping.cast::<PyDict>() {
        Ok(dict) => Ok(dict.clone()),
        Err(_) => Ok(mapping.py().get_type::<PyDict>().call1((mapping,))?.cast_into()?),
    }
}
