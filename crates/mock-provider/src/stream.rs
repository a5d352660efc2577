//! Answers as server-sent events, for requests that ask for a stream. All events are sent at once,
//! after the latency.

use serde_json::{Value, json};

use crate::Style;
use crate::error_responses::MockReply;

/// A sequence of events.
#[derive(Default)]
pub(crate) struct Events(String);

impl Events {
    /// Adds an event that has data only.
    pub(crate) fn data(self, data: &Value) -> Events {
        Events(format!("{}data: {data}\n\n", self.0))
    }

    /// Adds an event with a name, which is also its type.
    pub(crate) fn named(self, name: &str, mut data: Value) -> Events {
        data["type"] = name.into();
        Events(format!("{}event: {name}\ndata: {data}\n\n", self.0))
    }

    /// Adds OpenAI's end marker.
    pub(crate) fn done(self) -> Events {
        Events(self.0 + "data: [DONE]\n\n")
    }

    /// Adds the error of an overloaded provider.
    pub(crate) fn broken(self, style: Style) -> Events {
        let error: Value =
            serde_json::from_str(&style.failed(503).body).unwrap_or_else(|_| json!({"error": "overloaded"}));
        match style {
            Style::Anthropic => self.named("error", error),
            Style::Bedrock | Style::Plain => {
                self.data(&json!({"error": {"type": "overloaded_error", "message": "Overloaded"}}))
            }
            _ => self.data(&error),
        }
    }

    pub(crate) fn reply(self) -> MockReply {
        let headers = vec![("content-type", "text/event-stream".to_owned())];
        MockReply { status: 200, headers, body: self.0 }
    }
}
