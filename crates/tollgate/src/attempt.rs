use tollgate_core::Denial;

use crate::Lease;

/// What came of trying: a lease, or why not.
#[derive(Debug)]
#[must_use = "a lease that is dropped at once frees its resources and keeps the rest charged"]
pub enum Attempt<'a> {
    /// Admitted.
    Admitted(Lease<'a>),
    /// Denied: the status of every limit, and the exact wait. Nothing was taken.
    Denied(Box<Denial>),
}

impl<'a> Attempt<'a> {
    /// Whether it was admitted.
    pub fn is_admitted(&self) -> bool {
        matches!(self, Attempt::Admitted(_))
    }

    /// The lease, if it was admitted.
    #[inline]
    pub fn admitted(self) -> Option<Lease<'a>> {
        match self {
            Attempt::Admitted(lease) => Some(lease),
            Attempt::Denied(_) => None,
        }
    }

    /// Why it was denied, if it was.
    pub fn denied(self) -> Option<Denial> {
        match self {
            Attempt::Admitted(_) => None,
            Attempt::Denied(denial) => Some(*denial),
        }
    }
}
