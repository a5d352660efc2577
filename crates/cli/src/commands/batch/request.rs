//! Parsing of requests, one a line, in any of the usual formats.

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::endpoint::model_of;

/// The maximum length of an id in bytes.
const ID_BYTES_MAX: usize = 512;

/// A request of a batch.
#[derive(Debug)]
pub(crate) struct BatchRequest {
    /// The id of its result.
    pub(crate) id: String,
    /// The line has a `custom_id`, which is the id; otherwise that is made of the line's number.
    pub(crate) has_custom_id: bool,
    /// The path below the base URL of the account, if the line has one.
    pub(crate) path: Option<String>,
    /// The body, sent unchanged.
    pub(crate) body: Box<RawValue>,
    /// The model that the body or the path names; empty if neither does.
    pub(crate) model: String,
}

/// The fields of a body that are needed before it is sent.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow, default)]
    stream: Option<&'a RawValue>,
}

/// The error of an invalid line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadLine(String);

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A line in the batch format of OpenAI (`body`) or Anthropic (`params`).
#[derive(Deserialize)]
struct RequestEnvelope<'a> {
    #[serde(default)]
    custom_id: Option<serde_json::Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(borrow, default)]
    body: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

impl BatchRequest {
    /// Parses line `number`. A line with neither `body` nor `params` is a body itself.
    pub(crate) fn parse(line: &str, number: u64) -> Result<BatchRequest, BadLine> {
        let line = line.trim();
        if !line.starts_with('{') {
            return Err(BadLine(format!("it must be an object, such as {EXAMPLE}")));
        }
        let envelope: RequestEnvelope<'_> = serde_json::from_str(line).map_err(not_json)?;
        if let Some(method) = envelope.method.filter(|method| method != "POST") {
            return Err(BadLine(format!("method is {method:?}, but only POST can be sent")));
        }
        let path = envelope.url.map(|url| path_of(&url)).transpose()?;
        let custom_id = id_of(envelope.custom_id)?;
        let body = match (envelope.body, envelope.params) {
            (Some(_), Some(_)) => return Err(BadLine("it has both body and params; one is enough".into())),
            (Some(body), None) | (None, Some(body)) => body.to_owned(),
            (None, None) => without_custom_id(line)?,
        };
        if !body.get().starts_with('{') {
            return Err(BadLine("the body must be an object".into()));
        }
        let known: Body<'_> = serde_json::from_str(body.get())
            .map_err(|why| BadLine(format!("the model cannot be read: {why}")))?;
        if known.stream.is_some_and(|stream| stream.get() == "true") {
            return Err(BadLine(STREAMS.into()));
        }
        if path.as_ref().is_some_and(|path| path.contains(":streamGenerateContent")) {
            return Err(BadLine(STREAMING_PATH.into()));
        }
        let model = model_of(known.model.unwrap_or_default(), path.as_deref());
        let has_custom_id = custom_id.is_some();
        let id = custom_id.unwrap_or_else(|| format!("line-{number}"));
        Ok(BatchRequest { id, has_custom_id, path, body, model })
    }

    /// Returns the fingerprint by which a later run recognises the request: a 64-bit FNV-1a hash of path and body.
    pub(crate) fn fingerprint(&self) -> u64 {
        let path = self.path.as_deref().unwrap_or_default();
        let bytes = path.bytes().chain([0]).chain(self.body.get().bytes());
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }
}

impl BadLine {
    /// Returns true if the line asks for a stream, as requests that were copied from a program do.
    pub(crate) fn is_stream(&self) -> bool {
        self.0 == STREAMS || self.0 == STREAMING_PATH
    }
}

/// The error for a request whose reply would be a stream of events.
const STREAMS: &str = "it has \"stream\": true, and a result is one reply, not a stream; leave it out";

/// The error for a request to Gemini's streaming path.
const STREAMING_PATH: &str =
    "its url has :streamGenerateContent, and a result is one reply, not a stream; write :generateContent";

const EXAMPLE: &str = r#"{"custom_id": "a", "body": {"model": "gpt-4o-mini", "messages": []}}"#;

fn not_json(why: serde_json::Error) -> BadLine {
    BadLine(format!("it is not valid JSON: {why}"))
}

fn id_of(id: Option<serde_json::Value>) -> Result<Option<String>, BadLine> {
    let id = match id {
        None | Some(serde_json::Value::Null) => return Ok(None),
        Some(serde_json::Value::String(id)) => id,
        Some(serde_json::Value::Number(id)) => id.to_string(),
        Some(other) => return Err(BadLine(format!("custom_id is {other}, but must be a string"))),
    };
    match id.len() {
        0 => Err(BadLine("custom_id is empty".into())),
        bytes if bytes > ID_BYTES_MAX => {
            Err(BadLine(format!("custom_id has {bytes} bytes, but may have {ID_BYTES_MAX}")))
        }
        _ => Ok(Some(id)),
    }
}

/// Validates the path of a request. A full URL is refused, because a key is for the host of the account only.
fn path_of(url: &str) -> Result<String, BadLine> {
    if url.starts_with('/') && !url.starts_with("//") && !url.contains(char::is_whitespace) {
        return Ok(url.into());
    }
    Err(BadLine(format!("url is {url:?}, but must be a path, such as /v1/chat/completions")))
}

/// The members of an object, in their order, with the end position of each value.
struct Members(Vec<(String, usize)>);

/// Removes `custom_id` from a body, because providers refuse it. The rest is unchanged.
fn without_custom_id(line: &str) -> Result<Box<RawValue>, BadLine> {
    let Members(members) = Members::of(line).map_err(not_json)?;
    let Some(at) = members.iter().position(|(name, _)| name == "custom_id") else {
        return RawValue::from_string(line.to_owned()).map_err(not_json);
    };
    let end = members[at].1;
    let rest = &line[end..];
    let cut = match at.checked_sub(1) {
        // With the comma before it.
        Some(before) => format!("{}{rest}", &line[..members[before].1]),
        // With the comma behind it, if there is another member.
        None => format!("{{{}", rest.trim_start().strip_prefix(',').unwrap_or(rest).trim_start()),
    };
    RawValue::from_string(cut).map_err(not_json)
}

impl Members {
    fn of(line: &str) -> serde_json::Result<Members> {
        struct Visitor<'a>(&'a str);
        impl<'de> serde::de::Visitor<'de> for Visitor<'de> {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
                    // The value is borrowed from the line, so its address gives its position.
                    let start = value.get().as_ptr() as usize - self.0.as_ptr() as usize;
                    members.push((name, start + value.get().len()));
                }
                Ok(Members(members))
            }
        }
        serde::Deserializer::deserialize_map(&mut serde_json::Deserializer::from_str(line), Visitor(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<(String, Option<String>, String), String> {
        let request = BatchRequest::parse(line, 7).map_err(|why| why.to_string())?;
        Ok((request.id, request.path, request.body.get().into()))
    }

    #[test]
    fn the_forms_of_both_providers_and_bare_bodies_are_read() {
        let openai = r#"{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"n":1.0}}"#;
        let path = Some("/v1/chat/completions".to_owned());
        assert_eq!(parse(openai), Ok(("a".into(), path, r#"{"n":1.0}"#.into())));
        let anthropic = r#"{"custom_id":"b","params":{"model":"m"}}"#;
        assert_eq!(parse(anthropic), Ok(("b".into(), None, r#"{"model":"m"}"#.into())));
        let bare = r#" {"model":"m","messages":[]} "#;
        assert_eq!(parse(bare), Ok(("line-7".into(), None, bare.trim().into())));
        assert_eq!(parse(r#"{"custom_id":3,"m":1}"#), Ok(("3".into(), None, r#"{"m":1}"#.into())));
    }

    #[test]
    fn the_model_stands_in_the_body_or_in_the_path() {
        let model = |line: &str| BatchRequest::parse(line, 1).unwrap().model;
        assert_eq!(model(r#"{"body":{"model":"m"}}"#), "m");
        assert_eq!(model(r#"{"url":"/v1beta/models/g:generateContent","body":{}}"#), "g");
        assert_eq!(model(r#"{"body":{}}"#), "");
    }

    #[test]
    fn a_body_is_sent_byte_for_byte() {
        for (line, body) in [
            (
                r#"{"body": {"z": 12345678901234567890123, "a": 1e400, "b":1.0}}"#,
                r#"{"z": 12345678901234567890123, "a": 1e400, "b":1.0}"#,
            ),
            (r#"{"z":1.50, "custom_id":"a", "a":"\u00e9"}"#, r#"{"z":1.50, "a":"\u00e9"}"#),
            (
                r#"{ "custom_id" : "a" , "z": 12345678901234567890123,"a":2 }"#,
                r#"{"z": 12345678901234567890123,"a":2 }"#,
            ),
            (r#"{"z":1, "custom_id":"a"}"#, r#"{"z":1}"#),
            (r#"{"custom_id":"a"}"#, "{}"),
        ] {
            assert_eq!(parse(line).unwrap().2, body, "{line}");
        }
    }

    #[test]
    fn a_fingerprint_is_the_same_in_every_process_and_of_no_other_request() {
        let fingerprint = |line: &str| BatchRequest::parse(line, 1).unwrap().fingerprint();
        let lines = [
            r#"{"body":{"a":1}}"#,
            r#"{"body":{"a":2}}"#,
            r#"{"body":{"a": 1}}"#,
            r#"{"url":"/v1/embeddings","body":{"a":1}}"#,
        ];
        let all: std::collections::BTreeSet<u64> = lines.into_iter().map(fingerprint).collect();
        assert_eq!(all.len(), lines.len());
        assert_eq!(fingerprint(r#"{"custom_id":"x","body":{"a":1}}"#), fingerprint(lines[0]));
        assert_eq!(fingerprint(lines[0]), FINGERPRINT);
    }

    /// Of `{"a":1}` without a path, which is stored in files.
    const FINGERPRINT: u64 = 0x4d51_ed4f_450f_d4af;

    #[test]
    fn a_bad_line_says_what_is_wrong() {
        for (line, what) in [
            ("", "must be an object"),
            ("[1]", "must be an object"),
            ("{\"custom_id\": ", "not valid JSON"),
            ("{} {}", "not valid JSON"),
            (r#"{"custom_id": [1]}"#, "must be a string"),
            (r#"{"custom_id": ""}"#, "is empty"),
            (r#"{"body": 1}"#, "must be an object"),
            (r#"{"body": {}, "params": {}}"#, "one is enough"),
            (r#"{"method": "GET", "body": {}}"#, "only POST"),
            (r#"{"body": {"stream": true}}"#, "not a stream"),
            (r#"{"url": "/v1beta/models/m:streamGenerateContent", "body": {}}"#, "not a stream"),
            (r#"{"body": {"model": 3}}"#, "the model cannot be read"),
            (r#"{"url": "https://evil.example/v1", "body": {}}"#, "must be a path"),
            (r#"{"url": "//evil.example/v1", "body": {}}"#, "must be a path"),
        ] {
            let why = parse(line).unwrap_err();
            assert!(why.contains(what), "{line}: {why}");
        }
        let long = format!(r#"{{"custom_id": "{}"}}"#, "x".repeat(ID_BYTES_MAX + 1));
        assert!(parse(&long).unwrap_err().contains("may have 512"));
    }
}
