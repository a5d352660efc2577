//! Requests: their texts, their images, and the maximum length of the answer.
//!
//! The formats of OpenAI (chat, completions, responses, embeddings), Anthropic and Gemini differ in
//! names and not in structure, so one walk over the JSON covers all: everything under a name that
//! holds a prompt is text, unless it is media or tokens.

use serde_json::{Map, Value};

use super::script;

/// The tokens of an image: those of about a megapixel with most providers.
const IMAGE_TOKENS: u64 = 1_100;

/// The bytes in base64 for each token of other media.
const MEDIA_BYTES_PER_TOKEN: u64 = 50;

/// The tokens of a message besides its text.
const MESSAGE_TOKENS: u64 = 4;

/// The tokens of a reply besides its text.
const REPLY_TOKENS: u64 = 3;

/// The maximum depth of the walk. Parsed JSON is not deeper; JSON built in memory may be.
const DEPTH_MAX: usize = 128;

/// The fields that hold prompts.
const PROMPTS: [&str; 18] = [
    "messages",
    "system",
    "prompt",
    "input",
    "instructions",
    "contents",
    "content",
    "systemInstruction",
    "system_instruction",
    "tools",
    "functions",
    "toolConfig",
    "response_format",
    "text",
    "requests",
    "texts",
    "documents",
    "inputs",
];

/// The fields that hold the maximum length of an answer.
const OUTPUTS: [&str; 9] = [
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "maxOutputTokens",
    "maxTokens",
    "max_tokens_to_sample",
    "max_gen_len",
    "maxTokenCount",
    "max_new_tokens",
];

/// The fields that hold settings, if those are not beside the prompt.
const SETTINGS: [&str; 5] =
    ["generationConfig", "generation_config", "inferenceConfig", "textGenerationConfig", "parameters"];

/// The parts of a request that an estimate needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EstimatedRequest {
    pub(crate) model: Option<String>,
    pub(crate) input: u64,
    /// The number of answers that the request asks for.
    pub(crate) answers: u64,
    /// The maximum length of one answer, if the request sets one.
    pub(crate) output_max: Option<u64>,
}

impl EstimatedRequest {
    /// Parses a request; `count` counts the tokens of its texts.
    pub(crate) fn read(json: &Value, count: &dyn Fn(&str) -> u64) -> EstimatedRequest {
        let Value::Object(fields) = json else {
            let mut walk = TextWalk { count, tokens: 0 };
            walk.text(json, DEPTH_MAX);
            return EstimatedRequest { input: walk.tokens, answers: 1, ..EstimatedRequest::default() };
        };
        let mut walk = TextWalk { count, tokens: REPLY_TOKENS };
        for name in PROMPTS {
            fields.get(name).into_iter().for_each(|value| walk.text(value, DEPTH_MAX));
        }
        let model = fields.get("model").and_then(Value::as_str).map(str::to_owned);
        let answers = if is_embedding(fields, model.as_deref()) { 0 } else { answers(fields) };
        EstimatedRequest { model, input: walk.tokens, answers, output_max: setting(fields, &OUTPUTS) }
    }
}

/// Counts text that is not JSON.
pub(crate) fn of_text(text: &str) -> EstimatedRequest {
    EstimatedRequest { input: script::tokens(text), answers: 1, ..EstimatedRequest::default() }
}

struct TextWalk<'a> {
    count: &'a dyn Fn(&str) -> u64,
    tokens: u64,
}

impl TextWalk<'_> {
    fn add(&mut self, tokens: u64) {
        self.tokens = self.tokens.saturating_add(tokens);
    }

    fn text(&mut self, value: &Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match value {
            Value::String(text) => self.string(text),
            // A token id, or a number in a schema.
            Value::Number(_) => self.add(1),
            Value::Bool(_) => self.add(1),
            Value::Null => {}
            Value::Array(values) => values.iter().for_each(|value| self.text(value, depth)),
            Value::Object(fields) => self.object(fields, depth),
        }
    }

    fn string(&mut self, text: &str) {
        match text.strip_prefix("data:") {
            Some(media) if media.get(..100).unwrap_or(media).contains("base64") => {
                self.media(media, text.len());
            }
            _ => self.add((self.count)(text)),
        }
    }

    fn object(&mut self, fields: &Map<String, Value>, depth: usize) {
        if fields.contains_key("role") {
            self.add(MESSAGE_TOKENS);
        }
        let kind = |name: &str| fields.get(name).and_then(Value::as_str);
        let media = kind("media_type").or(kind("mimeType")).or(kind("mime_type")).or(kind("format"));
        for (name, value) in fields {
            match (name.as_str(), value) {
                ("data" | "bytes", Value::String(data)) => self.media(media.unwrap_or_default(), data.len()),
                ("url" | "fileUri" | "file_uri" | "image_url", Value::String(url))
                    if !url.starts_with("data:") =>
                {
                    self.add(IMAGE_TOKENS);
                }
                // Names that describe the type of a value, and are not part of the prompt.
                (
                    "role" | "type" | "media_type" | "mimeType" | "mime_type" | "cache_control" | "detail",
                    _,
                ) if !is_schema(fields) => {}
                _ => {
                    if is_schema(fields) {
                        self.add((self.count)(name));
                    }
                    self.text(value, depth);
                }
            }
        }
    }

    fn media(&mut self, kind: &str, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let is_image = kind.starts_with("image") || ["png", "jpeg", "gif", "webp"].contains(&kind);
        self.add(if is_image { IMAGE_TOKENS } else { bytes / MEDIA_BYTES_PER_TOKEN });
    }
}

/// Returns true if the names of an object's fields are part of the prompt: those of tools are,
/// those of messages are not.
fn is_schema(fields: &Map<String, Value>) -> bool {
    let has = |name: &str| fields.contains_key(name);
    !(has("role")
        || has("text")
        || has("content")
        || has("source")
        || has("parts")
        || has("image_url")
        || has("data"))
}

/// Returns true for embeddings, which have no answer in tokens.
fn is_embedding(fields: &Map<String, Value>, model: Option<&str>) -> bool {
    let has = |name: &str| fields.contains_key(name);
    let of_texts = |value: &Value| match value {
        Value::Array(values) => values.first().is_some_and(|value| !value.is_object()),
        _ => false,
    };
    model.is_some_and(|name| name.contains("embed"))
        || has("encoding_format")
        || has("taskType")
        || has("outputDimensionality")
        || fields.get("input").is_some_and(of_texts)
}

fn answers(fields: &Map<String, Value>) -> u64 {
    setting(fields, &["n", "candidateCount", "best_of"]).unwrap_or(1).max(1)
}

fn setting(fields: &Map<String, Value>, names: &[&str]) -> Option<u64> {
    let beside = SETTINGS.iter().filter_map(|name| fields.get(*name)?.as_object());
    let mut objects = std::iter::once(fields).chain(beside);
    objects.find_map(|object| names.iter().find_map(|name| object.get(*name)?.as_u64()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(json: &Value) -> EstimatedRequest {
        EstimatedRequest::read(json, &script::tokens)
    }

    /// Returns a text of two hundred characters, fifty tokens.
    fn text() -> String {
        "word ".repeat(40)
    }

    #[test]
    fn equal_requests_in_the_formats_of_all_providers_have_the_same_estimate() {
        let text = text();
        let chat = json!({"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 100});
        let parts = json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}], "max_completion_tokens": 100});
        let responses = json!({"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": text}]}], "max_output_tokens": 100});
        let anthropic = json!({"model": "m", "system": "", "messages": [{"role": "user", "content": text}], "max_tokens": 100});
        let gemini = json!({"model": "m", "contents": [{"role": "user", "parts": [{"text": text}]}], "generationConfig": {"maxOutputTokens": 100}});
        for request in [chat, parts, responses, anthropic, gemini] {
            let read = read(&request);
            let expected =
                EstimatedRequest { model: Some("m".into()), input: 57, answers: 1, output_max: Some(100) };
            assert_eq!(read, expected, "{request}");
        }
    }

    #[test]
    fn embeddings_have_no_answer_and_token_ids_count_as_tokens() {
        let texts = read(&json!({"model": "text-embedding-3-small", "input": text()}));
        assert_eq!((texts.input, texts.answers), (53, 0));
        let many = read(&json!({"model": "x", "input": [text(), text()]}));
        assert_eq!((many.input, many.answers), (103, 0));
        let tokens = read(&json!({"model": "x", "input": [[1, 2, 3], [4, 5]]}));
        assert_eq!((tokens.input, tokens.answers), (8, 0));
    }

    #[test]
    fn an_image_has_a_fixed_cost() {
        let data = "A".repeat(1_000_000);
        let openai = json!({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}}]}]});
        let linked = json!({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}]});
        let anthropic = json!({"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}]}]});
        let gemini = json!({"contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": data}}]}]});
        for request in [openai, linked, anthropic, gemini] {
            let input = read(&request).input;
            assert!((1_100..1_200).contains(&input), "{input}");
        }
        let sound = json!({"contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": "audio/wav", "data": data}}]}]});
        assert!(read(&sound).input > 20_000);
    }

    #[test]
    fn tools_count_including_the_names_in_their_schemas() {
        let with = json!({"messages": [], "tools": [{"type": "function", "function": {"name": "weather_of_a_city", "parameters": {"type": "object", "properties": {"city_name": {"type": "string", "description": "Where it is"}}}}}]});
        assert!(read(&with).input > 20, "{}", read(&with).input);
    }

    #[test]
    fn any_json_has_an_estimate() {
        for json in [
            json!(null),
            json!(7),
            json!("text"),
            json!([]),
            json!({"messages": 7, "max_tokens": -1, "n": "x"}),
        ] {
            let read = read(&json);
            assert_eq!(read.output_max, None);
            assert_eq!(read.answers, 1);
        }
    }

    #[test]
    fn the_number_of_answers_is_parsed() {
        assert_eq!(read(&json!({"n": 3})).answers, 3);
        assert_eq!(read(&json!({"generationConfig": {"candidateCount": 2}})).answers, 2);
        assert_eq!(read(&json!({"n": 0})).answers, 1);
    }
}
