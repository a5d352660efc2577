//! One line of a journal.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{ItemError, Outcome};

/// One finished item, as a journal stores it; [`Journal::read`](super::Journal::read) returns them.
///
/// ```
/// use tollgate_batch::journal::JournalLine;
///
/// let text = r#"{"id":"a","status":"done","output":{"n":1},"index":0,"attempts":1,"throttles":0,"tokens":31,"cost_micros":0}"#;
/// let line: JournalLine = serde_json::from_str(text).unwrap();
/// assert!(line.is_done());
/// assert_eq!(line.output.unwrap().get(), r#"{"n":1}"#);
/// ```
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct JournalLine {
    /// The id of the item.
    pub id: String,
    /// `done` or `failed`.
    pub status: LineStatus,
    /// The output of an item that is done; the last reply of the provider to an item that failed,
    /// if it is known. It is the JSON that was written, byte for byte.
    #[serde(default)]
    pub output: Option<Box<RawValue>>,
    /// The class of the failure, if the item failed.
    #[serde(default)]
    pub class: Option<String>,
    /// The reason of the failure, if the item failed.
    #[serde(default)]
    pub reason: Option<String>,
    /// The index of the item in the input.
    pub index: u64,
    /// The number of attempts.
    pub attempts: u32,
    /// The number of calls that were answered with a 429.
    pub throttles: u32,
    /// Tokens used.
    pub tokens: u64,
    /// The cost, in millionths.
    pub cost_micros: u64,
    /// The fingerprint of the item's payload, if it had one.
    #[serde(default)]
    pub fingerprint: Option<String>,
}

/// The status of a finished item.
///
/// # Examples
///
/// ```
/// use tollgate_batch::journal::LineStatus;
///
/// let status: LineStatus = serde_json::from_str("\"failed\"")?;
/// assert_eq!(status, LineStatus::Failed);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LineStatus {
    /// It has an output.
    Done,
    /// It failed permanently.
    Failed,
}

impl JournalLine {
    /// Returns true if there is an output.
    pub fn is_done(&self) -> bool {
        self.status == LineStatus::Done
    }
}

/// A line to be written. The module [`recognise`](super::recognise) depends on the order of the
/// fields.
#[derive(Serialize)]
struct NewLine<'a, O> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom_id: Option<&'a str>,
    status: LineStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a O>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    index: u64,
    attempts: u32,
    throttles: u32,
    tokens: u64,
    cost_micros: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
}

/// Encodes an outcome as a line with its end; `None` if a later run is to call the item again.
pub(crate) fn encode<O: Serialize>(outcome: &Outcome<O>) -> Result<Option<Vec<u8>>, serde_json::Error> {
    let (status, output, class, reason) = match &outcome.result {
        Ok(output) => (LineStatus::Done, Some(output), None, None),
        Err(ItemError::Item { class, reason }) => {
            (LineStatus::Failed, outcome.rejected.as_ref(), Some(class.name()), Some(&**reason))
        }
        Err(ItemError::Unfinished(_)) => return Ok(None),
    };
    let label = outcome.label;
    let line = NewLine {
        id: &outcome.id,
        custom_id: label.has_custom_id.then_some(&*outcome.id),
        status,
        output,
        class,
        reason,
        index: outcome.index,
        attempts: outcome.attempts,
        throttles: outcome.throttles,
        tokens: outcome.tokens,
        cost_micros: outcome.cost_micros,
        fingerprint: label.fingerprint.map(fingerprint_text),
    };
    let mut bytes = serde_json::to_vec(&line)?;
    // Raw JSON may have line breaks between its values; within its strings they are escaped.
    bytes.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    bytes.push(b'\n');
    Ok(Some(bytes))
}

fn fingerprint_text(fingerprint: u64) -> String {
    format!("{fingerprint:016x}")
}

/// Parses a fingerprint as [`encode`] writes it.
pub(super) fn fingerprint_of(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}
