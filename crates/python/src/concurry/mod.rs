//! The limits of Concurry: what `tollgate.compat.concurry` does on every call. The rest of that package is written in Python.
//!
//! A set here has the limits `k0`, `k1`, … in a set of the library, because the keys of Concurry are any text. Amounts may have
//! fractions: each limit counts in a power of ten of its own ([`amount_scale`]).

mod acquisition;
mod amount_scale;
mod bound_limit;
mod held;
mod limit_set;
mod requested;

pub(crate) use acquisition::{PyAcquisition, PySetAcquisition};
pub(crate) use limit_set::PySharedLimits;
