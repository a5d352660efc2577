//! Replies in the results.

use serde::Serialize;
use serde_json::value::RawValue;

use super::account::AccountConfig;
use super::http::Replied;

/// The maximum number of bytes of an error reply that are stored.
const REJECTED_BYTES_MAX: usize = 64 << 10;

/// A reply and its account.
#[derive(Serialize)]
pub(crate) struct Answered {
    status_code: u16,
    account: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    body: Box<RawValue>,
}

impl Answered {
    /// Returns the reply of an account, if it is JSON.
    ///
    /// # Errors
    ///
    /// If the reply is not JSON.
    pub(crate) fn new(account: &str, replied: &Replied) -> Result<Answered, String> {
        let body: Result<Box<RawValue>, _> = serde_json::from_slice(&replied.body);
        Ok(Answered {
            status_code: replied.status.unwrap_or_default(),
            account: account.into(),
            request_id: replied.request_id.clone(),
            body: body.map_err(|why| format!("the reply is not valid JSON: {why}"))?,
        })
    }

    /// Returns the reply to a request that failed, if there was one: as JSON if it is valid, as text otherwise. The key of the
    /// account is removed from it.
    pub(crate) fn rejected(account: &AccountConfig, replied: &Replied) -> Option<Answered> {
        let status_code = replied.status?;
        let mut text = String::from_utf8_lossy(&replied.body).into_owned();
        if let Some(key) = &account.key {
            text = text.replace(key.reveal(), "***");
        }
        let is_short = text.len() <= REJECTED_BYTES_MAX;
        let json: Option<Box<RawValue>> = serde_json::from_str(&text).ok().filter(|_| is_short);
        let body = json.or_else(|| {
            text.truncate(text.floor_char_boundary(REJECTED_BYTES_MAX));
            serde_json::value::to_raw_value(&text).ok()
        })?;
        Some(Answered {
            status_code,
            account: account.name.clone(),
            request_id: replied.request_id.clone(),
            body,
        })
    }
}
