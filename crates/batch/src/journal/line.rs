//! One line of a journal.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Failed, Outcome};

/// One finished item, as it is written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Line {
    /// The item.
    pub id: String,
    /// `done` or `failed`.
    pub status: Status,
    /// What came of it; of a failed item, what the provider replied last, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// In which way it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Why, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Which item of the input it was.
    #[serde(default)]
    pub index: u64,
    /// How many attempts it took.
    #[serde(default)]
    pub attempts: u32,
    /// How many calls were refused with "not now".
    #[serde(default)]
    pub throttles: u32,
    /// Tokens used.
    #[serde(default)]
    pub tokens: u64,
    /// What it cost, in millionths.
    #[serde(default)]
    pub cost_micros: u64,
}

/// How an item was finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// With an output.
    Done,
    /// Without, for good.
    Failed,
}

impl Line {
    /// Whether there is an output.
    pub fn is_done(&self) -> bool {
        self.status == Status::Done
    }
}

/// The line of an outcome, with its end; `None` if a later run is to try it again.
///
/// An output that cannot be written as JSON is told as a reason.
pub(crate) fn encode<O: Serialize>(outcome: &Outcome<O>) -> Result<Option<Vec<u8>>, serde_json::Error> {
    let (status, output, class, reason) = match &outcome.result {
        Ok(output) => (Status::Done, Some(serde_json::to_value(output)?), None, None),
        Err(Failed::Item { class, reason }) => {
            let rejected = outcome.rejected.as_ref().map(serde_json::to_value).transpose()?;
            (Status::Failed, rejected, Some(class.name().to_owned()), Some(reason.clone()))
        }
        Err(Failed::Unfinished(_)) => return Ok(None),
    };
    let line = Line {
        id: outcome.id.to_string(),
        status,
        output,
        class,
        reason,
        index: outcome.index,
        attempts: outcome.attempts,
        throttles: outcome.throttles,
        tokens: outcome.tokens,
        cost_micros: outcome.cost_micros,
    };
    let mut bytes = serde_json::to_vec(&line)?;
    bytes.push(b'\n');
    Ok(Some(bytes))
}
