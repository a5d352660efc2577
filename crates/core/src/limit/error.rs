use std::convert::Infallible;
use std::fmt;

/// A limit that could not be built: the field, its value, and the valid values.
///
/// ```
/// use tollgate_core::Limit;
///
/// let error = Limit::resource("slots", -1).build().unwrap_err();
/// assert_eq!((error.limit(), error.field(), error.value()), ("slots", "amount", "-1"));
/// assert_eq!(error.valid(), "1 to 1000000000000000, or UNBOUNDED");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitError {
    limit: String,
    field: &'static str,
    value: String,
    valid: String,
}

impl LimitError {
    pub(crate) fn new(
        limit: &str,
        field: &'static str,
        value: String,
        valid: impl Into<String>,
    ) -> LimitError {
        LimitError { limit: limit.into(), field, value, valid: valid.into() }
    }

    /// Returns the name of the limit, as it was given.
    pub fn limit(&self) -> &str {
        &self.limit
    }

    /// Returns the field that is not valid.
    pub fn field(&self) -> &str {
        self.field
    }

    /// Returns the value of the field, as it was given.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Describes the valid values.
    pub fn valid(&self) -> &str {
        &self.valid
    }
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit {:?}: {} is {}, but must be {}", self.limit, self.field, self.value, self.valid)
    }
}

impl std::error::Error for LimitError {}

impl From<Infallible> for LimitError {
    fn from(never: Infallible) -> LimitError {
        match never {}
    }
}
