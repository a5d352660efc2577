//! One result in the format of the output files of OpenAI's batches.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The fields of a line of the journal that are needed here.
#[derive(Deserialize)]
struct StoredLine<'a> {
    id: String,
    status: OpenAiStatus,
    #[serde(borrow, default)]
    output: Option<OpenAiReply<'a>>,
    #[serde(default)]
    class: Option<String>,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum OpenAiStatus {
    Done,
    Failed,
}

#[derive(Deserialize)]
struct OpenAiReply<'a> {
    status_code: u16,
    #[serde(default)]
    request_id: Option<String>,
    #[serde(borrow)]
    body: &'a RawValue,
}

#[derive(Serialize)]
struct OpenAiLine<'a> {
    id: String,
    custom_id: String,
    /// `null` without a reply.
    response: Option<OpenAiResponse<'a>>,
    /// The error if the response does not show it: there was no reply, or its status is a success.
    error: Option<OpenAiError>,
}

#[derive(Serialize)]
struct OpenAiResponse<'a> {
    status_code: u16,
    request_id: Option<String>,
    body: &'a RawValue,
}

#[derive(Serialize)]
struct OpenAiError {
    code: String,
    message: String,
}

/// Writes the result of a line of the journal, without a line break.
pub(super) fn write(line: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let stored: StoredLine<'_> = serde_json::from_slice(line)?;
    let response = stored.output.map(|OpenAiReply { status_code, request_id, body }| OpenAiResponse {
        status_code,
        request_id,
        body,
    });
    let shows_error = response.as_ref().is_some_and(|response| response.status_code >= 400);
    let error = (stored.status == OpenAiStatus::Failed && !shows_error).then(|| OpenAiError {
        code: stored.class.unwrap_or_else(|| "unknown".into()),
        message: stored.reason.unwrap_or_default(),
    });
    serde_json::to_writer(out, &OpenAiLine { id: id_of(&stored.id), custom_id: stored.id, response, error })?;
    Ok(())
}

/// Returns true if [`write`] wrote a line. Files of OpenAI itself have other ids.
pub(super) fn is_ours(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Ids {
        id: String,
        custom_id: String,
    }
    serde_json::from_slice::<Ids>(line).is_ok_and(|Ids { id, custom_id }| id == id_of(&custom_id))
}

/// Returns an id that is the same each time results are written.
fn id_of(custom_id: &str) -> String {
    format!("batch_req_{:016x}", fnv(custom_id.as_bytes()))
}

/// Returns the FNV-1a hash.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(line: &str) -> serde_json::Value {
        let mut out = Vec::new();
        write(line.as_bytes(), &mut out).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_reply_is_a_response_whatever_its_status_and_no_reply_is_an_error() {
        let done = written(
            r#"{"id":"a","status":"done","output":{"status_code":200,"account":"x","request_id":"r1","body":{"n":1}},"tokens":3}"#,
        );
        assert_eq!(done["custom_id"], "a");
        assert_eq!(done["response"]["request_id"], "r1");
        assert_eq!((&done["response"]["body"]["n"], &done["error"]), (&1.into(), &serde_json::Value::Null));
        let refused = written(
            r#"{"id":"b","status":"failed","class":"fatal","reason":"bad","output":{"status_code":400,"account":"x","body":{"error":"bad"}}}"#,
        );
        assert_eq!((&refused["response"]["status_code"], refused["error"].is_null()), (&400.into(), true));
        let lost = written(r#"{"id":"c","status":"failed","class":"transient","reason":"connection reset"}"#);
        assert!(lost["response"].is_null());
        assert_eq!(
            (&lost["error"]["code"], &lost["error"]["message"]),
            (&"transient".into(), &"connection reset".into())
        );
        assert_ne!(done["id"], lost["id"]);
        let hidden = written(
            r#"{"id":"d","status":"failed","class":"fatal","reason":"no","output":{"status_code":200,"body":{"error":1}}}"#,
        );
        assert_eq!(
            (&hidden["response"]["status_code"], &hidden["error"]["code"]),
            (&200.into(), &"fatal".into())
        );
    }

    #[test]
    fn only_lines_that_were_written_here_are_ours() {
        let mut line = Vec::new();
        write(br#"{"id":"a","status":"done","output":{"status_code":200,"body":{}}}"#, &mut line).unwrap();
        assert!(is_ours(&line));
        for foreign in [r#"{"id":"batch_req_123","custom_id":"a","response":null}"#, "{}", "notes", ""] {
            assert!(!is_ours(foreign.as_bytes()), "{foreign}");
        }
    }
}
