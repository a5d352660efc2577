//! What is answered to a request.

/// The status and the body of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
    /// The kind of error, if it is one.
    pub(crate) error: Option<String>,
}

impl Answer {
    pub(crate) fn ok(body: String) -> Answer {
        Answer { status: 200, body, error: None }
    }

    /// An error whose body is made already.
    pub(crate) fn error(status: u16, kind: &str, body: String) -> Answer {
        let short = kind.rsplit('#').next().unwrap_or(kind);
        Answer { status, body, error: Some(short.into()) }
    }

    /// An error of a kind, such as `ThrottlingException`, and what it says.
    pub(crate) fn refusal(status: u16, kind: &str, message: &str) -> Answer {
        let full = format!("com.amazonaws.dynamodb.v20120810#{kind}");
        let body = serde_json::json!({ "__type": full, "message": message }).to_string();
        Answer::error(status, kind, body)
    }

    pub(crate) fn unknown_operation() -> Answer {
        Answer::refusal(400, "UnknownOperationException", "the engine does not know this operation")
    }
}
