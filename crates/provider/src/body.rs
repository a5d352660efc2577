//! Bodies of replies: the error and its codes, or the usage of the call.
//!
//! A body is one JSON object, an array of them (Gemini's streams), or server-sent events. Only
//! fields about the call are parsed; the answer itself may be large and is skipped.

use serde::Deserialize;
use serde_json::Value;

use crate::Tokens;
use crate::error_codes::BodyError;
use crate::usage::TokenCounts;

/// The maximum size of a body that is parsed. A larger one contains nothing about its call that
/// headers do not.
const BODY_MAX: usize = 32 << 20;

/// The facts that a body contains about its call.
#[derive(Default)]
pub(crate) struct BodyFacts {
    /// The error; the last one if there are several.
    pub(crate) error: Option<BodyError>,
    /// Text that describes the error if the status reports one.
    pub(crate) text: Option<BodyError>,
    pub(crate) usage: Option<Tokens>,
}

/// Parses a body.
pub(crate) fn read(body: &[u8]) -> BodyFacts {
    if body.len() > BODY_MAX {
        return BodyFacts::default();
    }
    let body = body.trim_ascii();
    let mut reader = BodyReader::default();
    match body.first() {
        Some(b'{') => reader.object(body),
        Some(b'[') => reader.array(body),
        Some(b'd' | b'e' | b'i' | b'r' | b':') => reader.events(body),
        _ => {}
    }
    let text = reader.text.or_else(|| BodyError::of_text(body).filter(|_| !reader.is_json));
    BodyFacts { error: reader.error, text, usage: reader.usage.tokens() }
}

#[derive(Default)]
struct BodyReader {
    error: Option<BodyError>,
    text: Option<BodyError>,
    usage: TokenCounts,
    is_json: bool,
}

impl BodyReader {
    fn object(&mut self, text: &[u8]) {
        if let Ok(envelope) = serde_json::from_slice::<Envelope>(text) {
            self.envelope(envelope);
        }
    }

    fn array(&mut self, text: &[u8]) {
        for envelope in serde_json::from_slice::<Vec<Envelope>>(text).unwrap_or_default() {
            self.envelope(envelope);
        }
    }

    /// Parses server-sent events: one object in each line that starts with `data:`.
    fn events(&mut self, text: &[u8]) {
        for line in text.split(|&byte| byte == b'\n') {
            let Some(data) = line.strip_prefix(b"data:") else { continue };
            // Most events are pieces of an answer, and are not parsed.
            if ["\"error", "\"usage"].iter().any(|word| contains(data, word.as_bytes())) {
                self.object(data.trim_ascii());
            }
        }
    }

    fn envelope(&mut self, envelope: Envelope) {
        self.is_json = true;
        let Envelope { usage, usage_metadata, response, message, .. } = &envelope;
        let usages = [
            usage.as_ref(),
            usage_metadata.as_ref(),
            response.as_ref().and_then(|value| value.get("usage")),
            message.as_ref().and_then(|value| value.get("usage")),
        ];
        usages.into_iter().flatten().for_each(|usage| self.usage.add(usage));
        match envelope.error() {
            Some(error) => self.error = Some(BodyError::of_error(error)),
            None if envelope.is_error() => self.error = Some(envelope.own_error().unwrap_or_default()),
            None => self.text = envelope.own_error().or(self.text.take()),
        }
    }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

/// The fields of a body that are about its call. Others are skipped, however large.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default, rename = "usageMetadata")]
    usage_metadata: Option<Value>,
    #[serde(default)]
    response: Option<Value>,
    #[serde(default, alias = "Message")]
    message: Option<Value>,
    #[serde(default, rename = "type")]
    kind: Option<Value>,
    #[serde(default)]
    code: Option<Value>,
    #[serde(default, rename = "__type")]
    aws_kind: Option<Value>,
    #[serde(default)]
    title: Option<Value>,
    #[serde(default)]
    detail: Option<Value>,
}

impl Envelope {
    /// Returns the error, if there is one: some providers send an empty one where there is no
    /// error.
    fn error(&self) -> Option<&Value> {
        let errors = [self.error.as_ref(), self.response.as_ref().and_then(|value| value.get("error"))];
        errors.into_iter().flatten().find(|error| match error {
            Value::Object(fields) => !fields.is_empty(),
            Value::String(text) => !text.is_empty(),
            Value::Bool(_) | Value::Null => false,
            _ => true,
        })
    }

    fn is_error(&self) -> bool {
        self.kind.as_ref().and_then(Value::as_str) == Some("error")
    }

    /// Returns the error whose fields are in the object itself: `{"message": ..}` of AWS, `{"code":
    /// .., "message": ..}` in streams of OpenAI, `{"title": .., "detail": ..}` of RFC 9457.
    fn own_error(self) -> Option<BodyError> {
        let text = [self.message, self.detail, self.title].into_iter().flatten().find(Value::is_string);
        let names: Vec<Value> = [self.code, self.kind, self.aws_kind].into_iter().flatten().collect();
        BodyError::of_parts(&names, text.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_in_every_form() {
        let table: [(&str, Tokens); 8] = [
            (r#"{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}"#, Tokens::new(10, 5)),
            (r#"{"usage":{"prompt_tokens":8,"total_tokens":8},"data":[[0.1]]}"#, Tokens::new(8, 0)),
            (
                r#"{"usage":{"input_tokens":10,"output_tokens":5,"cache_creation_input_tokens":3,"cache_read_input_tokens":90}}"#,
                Tokens::new(13, 5),
            ),
            (
                r#"{"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":6,"thoughtsTokenCount":2,"totalTokenCount":12}}"#,
                Tokens::new(4, 8),
            ),
            (r#"{"usage":{"inputTokens":3,"outputTokens":4,"totalTokens":7}}"#, Tokens::new(3, 4)),
            (
                "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\nevent: message_delta\ndata: {\"usage\":{\"output_tokens\":15}}\n",
                Tokens::new(25, 15),
            ),
            (
                "data: {\"choices\":[]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":3,\"total_tokens\":5}}\n\ndata: [DONE]\n",
                Tokens::new(2, 3),
            ),
            (
                "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":7,\"output_tokens\":9,\"total_tokens\":16}}}\r\n",
                Tokens::new(7, 9),
            ),
        ];
        for (body, tokens) in table {
            let facts = read(body.as_bytes());
            assert_eq!(facts.usage, Some(tokens), "{body}");
            assert!(facts.error.is_none(), "{body}");
        }
    }

    #[test]
    fn invalid_usage_is_ignored() {
        for body in
            ["", "{", "{}", "[]", "{\"usage\":null}", "{\"usage\":{\"input_tokens\":-1}}", "{\"usage\":7}"]
        {
            assert_eq!(read(body.as_bytes()).usage, None, "{body}");
        }
    }

    #[test]
    fn a_deeply_nested_body_is_refused() {
        let body = "[".repeat(1_000_000);
        assert!(read(body.as_bytes()).usage.is_none());
        let body = "{\"error\":".repeat(100_000);
        assert!(read(body.as_bytes()).usage.is_none());
    }
}
