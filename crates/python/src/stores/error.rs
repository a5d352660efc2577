//! Why a store cannot be opened.

use pyo3::prelude::*;
use tollgate::dynamo::DynamoOpenError;
use tollgate::file::FileOpenError;
use tollgate::redis::RedisOpenError;
use tollgate::shm::ShmOpenError;
use tollgate_open::{OpenError, redacted};

use crate::error::{IntoPyErr, invalid, refused, unavailable};

/// Why a store cannot be opened.
#[derive(Clone, Debug)]
pub(crate) enum StoreOpenError {
    Open(OpenError),
    /// Anonymous shared memory ended with the process that made it.
    MakerEnded,
}

/// What kind of exception an error is.
enum OpenErrorClass {
    Invalid,
    Unavailable,
    Refused,
}

impl From<OpenError> for StoreOpenError {
    fn from(error: OpenError) -> StoreOpenError {
        StoreOpenError::Open(error)
    }
}

fn class_of(error: &OpenError) -> OpenErrorClass {
    match error {
        OpenError::File(FileOpenError::Busy(..) | FileOpenError::NoRoom(_))
        | OpenError::Shm(ShmOpenError::Busy(..) | ShmOpenError::NoRoom(_))
        | OpenError::Redis(RedisOpenError::Unavailable { .. } | RedisOpenError::Host(_))
        | OpenError::Dynamodb(
            DynamoOpenError::Unavailable { .. }
            | DynamoOpenError::NotActive { .. }
            | DynamoOpenError::Host(_),
        ) => OpenErrorClass::Unavailable,
        OpenError::Shm(ShmOpenError::BadName(..))
        | OpenError::Redis(RedisOpenError::BadUrl(_) | RedisOpenError::BadSetting(_))
        | OpenError::Dynamodb(DynamoOpenError::BadSetting(_)) => OpenErrorClass::Invalid,
        _ => OpenErrorClass::Refused,
    }
}

impl IntoPyErr for StoreOpenError {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        let error = match self {
            StoreOpenError::Open(error) => error,
            StoreOpenError::MakerEnded => {
                let text = "the anonymous shared memory is gone: it ended with the process that made it; give the set a \
                            store with a name, such as \"shm:jobs\", if it is to outlive that process";
                return refused(py, text);
            }
        };
        let text = redacted(&error.to_string()).into_owned();
        match class_of(&error) {
            OpenErrorClass::Invalid => invalid(py, text),
            OpenErrorClass::Unavailable => unavailable(py, text),
            OpenErrorClass::Refused => refused(py, text),
        }
    }
}
