//! Answers: generated text or embeddings, and their usage.

use serde_json::{Value, json};
use tollgate_provider::{Estimator, Tokens};

use crate::error_responses::MockReply;
use crate::route::Endpoint;
use crate::stream::Events;
use crate::{Style, random};

/// The minimum and maximum tokens of an answer, if the request allows it.
const OUTPUT: (u64, u64) = (16, 256);

/// The maximum number of words that are written; the rest of the usage is only reported.
const WORDS_MAX: u64 = 64;

/// The maximum number of texts that are embedded at once, which is OpenAI's maximum.
const EMBEDDINGS_MAX: usize = 2_048;

/// The default and the maximum number of dimensions of an embedding.
const DIMENSIONS: u64 = 16;
const DIMENSIONS_MAX: u64 = 4_096;

/// The maximum number of floats in a reply, whatever the request asks.
const NUMBERS_MAX: usize = 1 << 18;

/// A valid request.
pub(crate) struct MockRequest {
    endpoint: Endpoint,
    json: Value,
    digest: u64,
}

impl MockRequest {
    /// Parses a body. Returns an error message if it is not a valid request.
    pub(crate) fn read(endpoint: Endpoint, body: &[u8], seed: u64) -> Result<MockRequest, String> {
        let json: Value =
            serde_json::from_slice(body).map_err(|error| format!("the body is not JSON: {error}"))?;
        let needed = match endpoint {
            Endpoint::Chat | Endpoint::Messages => "messages",
            Endpoint::Responses | Endpoint::Embeddings => "input",
        };
        if json.get(needed).is_none() {
            return Err(format!("the body has no field `{needed}`"));
        }
        Ok(MockRequest { endpoint, json, digest: random::mix(seed, random::digest(body)) })
    }

    /// Returns the usage of the answer: the same for the same request and seed.
    pub(crate) fn usage(&self) -> Tokens {
        let estimate = Estimator::new().estimate(&self.json);
        if self.endpoint == Endpoint::Embeddings {
            return Tokens::new(estimate.input, 0);
        }
        let output = random::within(self.digest, OUTPUT.0, OUTPUT.1);
        Tokens::new(estimate.input, output.min(estimate.output_max.unwrap_or(u64::MAX)))
    }

    /// Returns true if the request asks for a stream. Embeddings never stream.
    pub(crate) fn is_stream(&self) -> bool {
        self.endpoint != Endpoint::Embeddings && self.json.get("stream") == Some(&Value::Bool(true))
    }

    /// Returns the answer.
    pub(crate) fn answer(&self, usage: Tokens) -> MockReply {
        let whole = self.whole(usage);
        if self.is_stream() {
            self.end_of_stream(self.start_of_stream(usage), usage, &whole).reply()
        } else {
            MockReply::json(200, &whole)
        }
    }

    /// Returns a stream that starts well and breaks off with an error.
    pub(crate) fn broken(&self, style: Style) -> MockReply {
        self.start_of_stream(self.usage()).broken(style).reply()
    }

    fn start_of_stream(&self, usage: Tokens) -> Events {
        let text = self.text(usage);
        match self.endpoint {
            Endpoint::Messages => {
                let usage = json!({"input_tokens": usage.input, "output_tokens": 1});
                let message = json!({"id": self.id("msg_"), "type": "message", "role": "assistant", "content": [], "usage": usage});
                Events::default()
                    .named("message_start", json!({"message": message}))
                    .named(
                        "content_block_start",
                        json!({"index": 0, "content_block": {"type": "text", "text": ""}}),
                    )
                    .named(
                        "content_block_delta",
                        json!({"index": 0, "delta": {"type": "text_delta", "text": text}}),
                    )
            }
            Endpoint::Responses => Events::default().named(
                "response.output_text.delta",
                json!({"output_index": 0, "content_index": 0, "delta": text}),
            ),
            Endpoint::Chat | Endpoint::Embeddings => {
                let delta = json!({"role": "assistant", "content": text});
                Events::default()
                    .data(&self.chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}])))
            }
        }
    }

    fn end_of_stream(&self, events: Events, usage: Tokens, whole: &Value) -> Events {
        match self.endpoint {
            Endpoint::Messages => events
                .named("content_block_stop", json!({"index": 0}))
                .named(
                    "message_delta",
                    json!({"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": usage.output}}),
                )
                .named("message_stop", json!({})),
            Endpoint::Responses => events.named("response.completed", json!({"response": whole})),
            Endpoint::Chat | Endpoint::Embeddings => {
                let events =
                    events.data(&self.chunk(json!([{"index": 0, "delta": {}, "finish_reason": "stop"}])));
                // OpenAI only reports the usage of a stream if the request asks for it.
                let events = match self.json.pointer("/stream_options/include_usage") {
                    Some(Value::Bool(true)) => {
                        let mut last = self.chunk(json!([]));
                        last["usage"] = whole["usage"].clone();
                        events.data(&last)
                    }
                    _ => events,
                };
                events.done()
            }
        }
    }

    fn chunk(&self, choices: Value) -> Value {
        json!({"id": self.id("chatcmpl-"), "object": "chat.completion.chunk", "created": 0, "choices": choices})
    }

    fn id(&self, prefix: &str) -> String {
        format!("{prefix}{:016x}", self.digest)
    }

    fn whole(&self, usage: Tokens) -> Value {
        let model = self.json.get("model").and_then(Value::as_str).unwrap_or("mock");
        match self.endpoint {
            Endpoint::Chat => json!({
                "id": self.id("chatcmpl-"),
                "object": "chat.completion",
                "created": 0,
                "model": model,
                "choices": [{
                    "index": 0,
                    "message": {"role": "assistant", "content": self.text(usage)},
                    "finish_reason": "stop",
                }],
                "usage": {
                    "prompt_tokens": usage.input,
                    "completion_tokens": usage.output,
                    "total_tokens": usage.total,
                },
            }),
            Endpoint::Responses => json!({
                "id": self.id("resp_"),
                "object": "response",
                "status": "completed",
                "error": null,
                "model": model,
                "output": [{
                    "type": "message",
                    "id": self.id("msg_"),
                    "role": "assistant",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": self.text(usage), "annotations": []}],
                }],
                "usage": {
                    "input_tokens": usage.input,
                    "output_tokens": usage.output,
                    "total_tokens": usage.total,
                },
            }),
            Endpoint::Messages => json!({
                "id": self.id("msg_"),
                "type": "message",
                "role": "assistant",
                "model": model,
                "content": [{"type": "text", "text": self.text(usage)}],
                "stop_reason": "end_turn",
                "stop_sequence": null,
                "usage": {"input_tokens": usage.input, "output_tokens": usage.output},
            }),
            Endpoint::Embeddings => json!({
                "object": "list",
                "model": model,
                "data": self.embeddings(),
                "usage": {"prompt_tokens": usage.input, "total_tokens": usage.total},
            }),
        }
    }

    fn text(&self, usage: Tokens) -> String {
        const WORDS: [&str; 8] = ["the", "toll", "gate", "opens", "when", "it", "is", "time"];
        let count = usage.output.min(WORDS_MAX);
        let word = |at: u64| WORDS[usize::try_from(random::mix(self.digest, at) % 8).unwrap_or(0)];
        (0..count).map(word).collect::<Vec<_>>().join(" ")
    }

    fn embeddings(&self) -> Vec<Value> {
        let count = match self.json.get("input") {
            // The tokens of one text are numbers.
            Some(Value::Array(texts)) if !texts.first().is_some_and(Value::is_number) => {
                texts.len().min(EMBEDDINGS_MAX)
            }
            _ => 1,
        };
        let dimensions = self.json.get("dimensions").and_then(Value::as_u64).unwrap_or(DIMENSIONS);
        let dimensions = usize::try_from(dimensions.clamp(1, DIMENSIONS_MAX)).unwrap_or(1);
        let dimensions = dimensions.min(NUMBERS_MAX / count.max(1)).max(1);
        let number = |text: usize, at: usize| {
            let index = (text * dimensions + at) as u64;
            let thousandth = u32::try_from(random::mix(self.digest, index) % 2_001).unwrap_or(0);
            json!((f64::from(thousandth) - 1_000.0) / 1_000.0)
        };
        let embedding = |text| (0..dimensions).map(|at| number(text, at)).collect::<Vec<_>>();
        (0..count)
            .map(|index| json!({"object": "embedding", "index": index, "embedding": embedding(index)}))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(endpoint: Endpoint, body: &str, seed: u64) -> MockRequest {
        MockRequest::read(endpoint, body.as_bytes(), seed).unwrap()
    }

    #[test]
    fn usage_depends_on_the_request_and_the_seed() {
        let body = r#"{"model":"m","messages":[{"role":"user","content":"How far is it?"}]}"#;
        let usage = |body, seed| read(Endpoint::Chat, body, seed).usage();
        assert_eq!(usage(body, 1), usage(body, 1));
        assert_eq!(usage(body, 1).input, 11);
        let several: std::collections::BTreeSet<u64> = (0..50).map(|seed| usage(body, seed).output).collect();
        assert!(several.len() > 20 && several.iter().all(|output| (16..=256).contains(output)));
        let short = r#"{"model":"m","max_tokens":5,"messages":[]}"#;
        assert_eq!(usage(short, 1).output, 5);
    }

    #[test]
    fn answers_have_the_format_of_their_endpoint_and_are_parsed_back() {
        let messages = r#"{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"hi"}]}"#;
        let input = r#"{"model":"text-embedding-3-small","input":["a","b","c"],"dimensions":4}"#;
        let table = [
            (Endpoint::Chat, messages, "/choices/0/message/content"),
            (Endpoint::Messages, messages, "/content/0/text"),
            (Endpoint::Responses, input, "/output/0/content/0/text"),
            (Endpoint::Embeddings, input, "/data/2/embedding/3"),
        ];
        for (endpoint, body, pointer) in table {
            let request = read(endpoint, body, 7);
            let reply = request.answer(request.usage());
            let json: Value = serde_json::from_str(&reply.body).unwrap();
            assert!(json.pointer(pointer).is_some(), "{json}");
            let response = tollgate_provider::Response::new(200, &[], reply.body.as_bytes());
            let hint = tollgate_provider::read(&response, std::time::SystemTime::UNIX_EPOCH);
            assert_eq!(hint.usage, Some(request.usage()), "{json}");
        }
    }

    #[test]
    fn the_size_of_an_answer_is_bounded() {
        let texts = vec!["x"; 100_000];
        let body = json!({"input": texts, "dimensions": u64::MAX}).to_string();
        let request = read(Endpoint::Embeddings, &body, 0);
        assert!(request.answer(request.usage()).body.len() < 4 << 20);
    }

    #[test]
    fn an_invalid_body_is_refused_with_the_reason() {
        let error = |body: &[u8]| MockRequest::read(Endpoint::Chat, body, 0).err().unwrap();
        assert!(error(b"{").contains("not JSON"));
        assert!(error(b"[]").contains("`messages`"));
        assert!(error(&b"[".repeat(1_000_000)).contains("not JSON"));
    }
}
