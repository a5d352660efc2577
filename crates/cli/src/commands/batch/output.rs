//! What a good reply leaves in the results.

use serde::Serialize;
use serde_json::value::RawValue;

use super::http::Replied;

/// What came back, and from whom.
#[derive(Serialize)]
pub(crate) struct Answered {
    status_code: u16,
    account: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    body: Box<RawValue>,
}

impl Answered {
    /// The reply of an account, if it is JSON.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(crate) fn new(account: &str, replied: Replied) -> Result<Answered, String> {
        let body: Result<Box<RawValue>, _> = serde_json::from_slice(&replied.body);
        Ok(Answered {
            status_code: replied.status.unwrap_or_default(),
            account: account.into(),
            request_id: replied.request_id,
            body: body.map_err(|why| format!("the reply is not valid JSON: {why}"))?,
        })
    }
}
