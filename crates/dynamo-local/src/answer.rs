//! Answers to requests.

/// The status and the body of an answer.
#[derive(Clone, Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) body: String,
    /// The kind of error, if it is one.
    pub(crate) error: Option<String>,
}

impl HttpAnswer {
    pub(crate) fn ok(body: String) -> HttpAnswer {
        HttpAnswer { status: 200, body, error: None }
    }

    /// Creates an error with a complete body.
    pub(crate) fn error(status: u16, kind: &str, body: String) -> HttpAnswer {
        let short = kind.rsplit('#').next().unwrap_or(kind);
        HttpAnswer { status, body, error: Some(short.into()) }
    }

    /// Creates an error of a kind, such as `ThrottlingException`, with a message.
    pub(crate) fn refusal(status: u16, kind: &str, message: &str) -> HttpAnswer {
        let full = format!("com.amazonaws.dynamodb.v20120810#{kind}");
        let body = serde_json::json!({ "__type": full, "message": message }).to_string();
        HttpAnswer::error(status, kind, body)
    }

    pub(crate) fn unknown_operation() -> HttpAnswer {
        HttpAnswer::refusal(400, "UnknownOperationException", "the engine does not support this operation")
    }
}
