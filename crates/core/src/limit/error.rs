use std::convert::Infallible;
use std::fmt;

/// Why a limit could not be built: the field, its value, and what would be valid.
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

    /// The name of the limit, as it was given.
    pub fn limit(&self) -> &str {
        &self.limit
    }

    /// The field that is not valid.
    pub fn field(&self) -> &str {
        self.field
    }

    /// The value it was given.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What would be valid.
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
