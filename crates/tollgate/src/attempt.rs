use tollgate_core::Denial;

/// The outcome of a try: a lease `L`, or the denial `D`.
///
/// ```
/// use tollgate::{demand, Limit, LimitSet};
///
/// let set = LimitSet::new([Limit::per_minute("rpm", 1)])?;
/// let lease = set.try_acquire(demand! { rpm: 1 }).wait()?.admitted().unwrap();
/// lease.commit().wait()?;
/// let denial = set.try_acquire(demand! { rpm: 1 }).wait()?.denied().unwrap();
/// assert_eq!(denial.limited_by().unwrap().limit().name(), "rpm");
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a lease that is dropped at once frees its resources and keeps the rest charged"]
pub enum Attempt<L, D = Denial> {
    /// Admitted.
    Admitted(L),
    /// Denied: the status of every limit, and the exact wait. Nothing was taken.
    Denied(Box<D>),
}

impl<L, D> Attempt<L, D> {
    /// Returns whether the demand was admitted.
    pub fn is_admitted(&self) -> bool {
        matches!(self, Attempt::Admitted(_))
    }

    /// Returns the lease, if the demand was admitted.
    #[inline]
    pub fn admitted(self) -> Option<L> {
        match self {
            Attempt::Admitted(lease) => Some(lease),
            Attempt::Denied(_) => None,
        }
    }

    /// Returns the denial, if the demand was denied.
    pub fn denied(self) -> Option<D> {
        match self {
            Attempt::Admitted(_) => None,
            Attempt::Denied(denial) => Some(*denial),
        }
    }

    /// Returns the lease, or the denial as an error, for `?`.
    ///
    /// # Errors
    ///
    /// The denial.
    pub fn into_result(self) -> Result<L, Box<D>> {
        match self {
            Attempt::Admitted(lease) => Ok(lease),
            Attempt::Denied(denial) => Err(denial),
        }
    }
}
