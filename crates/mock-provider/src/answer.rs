//! Answers: a little text or a few numbers, and what that used.

use serde_json::{Value, json};
use tollgate_provider::{Estimator, Tokens};

use crate::error_responses::MockReply;
use crate::route::Endpoint;
use crate::stream::Events;
use crate::{Style, random};

/// An answer has at least and at most so many tokens, if the request allows it.
const OUTPUT: (u64, u64) = (16, 256);

/// At most so many words are written; the rest is only said to have been used.
const WORDS_MAX: u64 = 64;

/// At most so many texts are embedded at once, which is what OpenAI allows.
const EMBEDDINGS_MAX: usize = 2_048;

/// How many numbers an embedding has, if not said, and at most.
const DIMENSIONS: u64 = 16;
const DIMENSIONS_MAX: u64 = 4_096;

/// At most so many numbers are sent, whatever is asked.
const NUMBERS_MAX: usize = 1 << 18;

/// A request that can be answered.
pub(crate) struct MockRequest {
    endpoint: Endpoint,
    json: Value,
    digest: u64,
}

impl MockRequest {
    /// Reads a body. Returns what is wrong with it.
    pub(crate) fn read(endpoint: Endpoint, body: &[u8], seed: u64) -> Result<MockRequest, String> {
        let json: Value =
            serde_json::from_slice(body).map_err(|error| format!("the body is no JSON: {error}"))?;
        let needed = match endpoint {
            Endpoint::Chat | Endpoint::Messages => "messages",
            Endpoint::Responses | Endpoint::Embeddings => "input",
        };
        if json.get(needed).is_none() {
            return Err(format!("the body has no field `{needed}`"));
        }
        Ok(MockRequest { endpoint, json, digest: random::mix(seed, random::digest(body)) })
    }

    /// What answering it uses: the same for the same request and seed.
    pub(crate) fn usage(&self) -> Tokens {
        let estimate = Estimator::new().estimate(&self.json);
        if self.endpoint == Endpoint::Embeddings {
            return Tokens::new(estimate.input, 0);
        }
        let output = random::within(self.digest, OUTPUT.0, OUTPUT.1);
        Tokens::new(estimate.input, output.min(estimate.output_max.unwrap_or(u64::MAX)))
    }

    /// Whether the answer is to come as a stream. Embeddings never do.
    pub(crate) fn is_stream(&self) -> bool {
        self.endpoint != Endpoint::Embeddings && self.json.get("stream") == Some(&Value::Bool(true))
    }

    /// The answer.
    pub(crate) fn answer(&self, usage: Tokens) -> MockReply {
        let whole = self.whole(usage);
        if self.is_stream() {
            self.ended(self.begun(usage), usage, &whole).reply()
        } else {
            MockReply::json(200, &whole)
        }
    }

    /// A stream that begins well, and breaks off with an error.
    pub(crate) fn broken(&self, style: Style) -> MockReply {
        self.begun(self.usage()).broken(style).reply()
    }

    fn begun(&self, usage: Tokens) -> Events {
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

    fn ended(&self, events: Events, usage: Tokens, whole: &Value) -> Events {
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
                // OpenAI reports what a stream used if it is asked to.
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
            // Tokens of one text are numbers.
            Some(Value::Array(texts)) if !texts.first().is_some_and(Value::is_number) => {
                texts.len().min(EMBEDDINGS_MAX)
            }
            _ => 1,
        };
        let dimensions = self.json.get("dimensions").and_then(Value::as_u64).unwrap_or(DIMENSIONS);
        let dimensions = usize::try_from(dimensions.clamp(1, DIMENSIONS_MAX)).unwrap_or(1);
        let dimensions = dimensions.min(NUMBERS_MAX / count.max(1)).max(1);
        let number = |text: usize, at: usize| {
            let place = (text * dimensions + at) as u64;
            let thousandth = u32::try_from(random::mix(self.digest, place) % 2_001).unwrap_or(0);
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
    fn what_is_used_depends_on_the_request_and_the_seed() {
        let body = r#"{"model":"m","messages":[{"role":"user","content":"How far is it?"}]}"#;
        let usage = |body, seed| read(Endpoint::Chat, body, seed).usage();
        assert_eq!(usage(body, 1), usage(body, 1));
        assert_eq!(usage(body, 1).input, 11);
        let several: std::collections::BTreeSet<u64> = (0..50).map(|seed| usage(body, seed).output).collect();
        assert!(several.len() > 20 && several.iter().all(|it| (16..=256).contains(it)));
        let short = r#"{"model":"m","max_tokens":5,"messages":[]}"#;
        assert_eq!(usage(short, 1).output, 5);
    }

    #[test]
    fn answers_have_the_form_of_their_endpoint_and_are_read_back() {
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
    fn an_answer_is_never_large_whatever_is_asked() {
        let texts = vec!["x"; 100_000];
        let body = json!({"input": texts, "dimensions": u64::MAX}).to_string();
        let request = read(Endpoint::Embeddings, &body, 0);
        assert!(request.answer(request.usage()).body.len() < 4 << 20);
    }

    #[test]
    fn a_body_that_is_no_request_is_told_why() {
        let told = |body: &[u8]| MockRequest::read(Endpoint::Chat, body, 0).err().unwrap();
        assert!(told(b"{").contains("no JSON"));
        assert!(told(b"[]").contains("`messages`"));
        assert!(told(&b"[".repeat(1_000_000)).contains("no JSON"));
    }
}
