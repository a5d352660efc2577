//! Requests, one a line, in whichever of the usual forms.

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The most bytes that an id may have.
const ID_BYTES_MAX: usize = 512;

/// A request of a batch.
#[derive(Debug)]
pub(crate) struct Request {
    /// What its result is found by.
    pub(crate) id: String,
    /// Where it goes, below the address of the account, if it says so itself.
    pub(crate) path: Option<String>,
    /// What is sent.
    pub(crate) body: Box<RawValue>,
}

/// What is wrong with a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadLine(String);

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A line as OpenAI (`body`) and Anthropic (`params`) have them in files of batches.
#[derive(Deserialize)]
struct Envelope<'a> {
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

impl Request {
    /// Reads line `number`. What has neither `body` nor `params` is a body itself.
    pub(crate) fn parse(line: &str, number: u64) -> Result<Request, BadLine> {
        let line = line.trim();
        if !line.starts_with('{') {
            return Err(BadLine(format!("it must be an object, such as {EXAMPLE}")));
        }
        let envelope: Envelope<'_> = serde_json::from_str(line).map_err(not_json)?;
        if let Some(method) = envelope.method.filter(|method| method != "POST") {
            return Err(BadLine(format!("method is {method:?}, but only POST can be sent")));
        }
        let path = envelope.url.map(|url| path_of(&url)).transpose()?;
        let id = id_of(envelope.custom_id, number)?;
        let body = match (envelope.body, envelope.params) {
            (Some(_), Some(_)) => return Err(BadLine("it has both body and params; one is enough".into())),
            (Some(body), None) | (None, Some(body)) => body.to_owned(),
            (None, None) => without_id(line)?,
        };
        if !body.get().starts_with('{') {
            return Err(BadLine("the body must be an object".into()));
        }
        Ok(Request { id, path, body })
    }
}

const EXAMPLE: &str = r#"{"custom_id": "a", "body": {"model": "gpt-4o-mini", "messages": []}}"#;

fn not_json(why: serde_json::Error) -> BadLine {
    BadLine(format!("it is not valid JSON: {why}"))
}

fn id_of(id: Option<serde_json::Value>, number: u64) -> Result<String, BadLine> {
    let id = match id {
        None | Some(serde_json::Value::Null) => return Ok(format!("line-{number}")),
        Some(serde_json::Value::String(id)) => id,
        Some(serde_json::Value::Number(id)) => id.to_string(),
        Some(other) => return Err(BadLine(format!("custom_id is {other}, but must be text"))),
    };
    match id.len() {
        0 => Err(BadLine("custom_id is empty".into())),
        bytes if bytes > ID_BYTES_MAX => {
            Err(BadLine(format!("custom_id has {bytes} bytes, but may have {ID_BYTES_MAX}")))
        }
        _ => Ok(id),
    }
}

/// The path of an address: keys are for the address of the account only.
fn path_of(url: &str) -> Result<String, BadLine> {
    match url.starts_with('/') && !url.starts_with("//") && !url.contains(char::is_whitespace) {
        true => Ok(url.into()),
        false => Err(BadLine(format!("url is {url:?}, but must be a path, such as /v1/chat/completions"))),
    }
}

/// A body that has its own id in it, which the provider does not know.
fn without_id(line: &str) -> Result<Box<RawValue>, BadLine> {
    let mut body: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(line).map_err(not_json)?;
    if body.remove("custom_id").is_none() {
        return RawValue::from_string(line.to_owned()).map_err(not_json);
    }
    serde_json::value::to_raw_value(&body).map_err(not_json)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<(String, Option<String>, String), String> {
        let request = Request::parse(line, 7).map_err(|why| why.to_string())?;
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
    fn a_bad_line_says_what_is_wrong() {
        for (line, what) in [
            ("", "must be an object"),
            ("[1]", "must be an object"),
            ("{\"custom_id\": ", "not valid JSON"),
            ("{} {}", "not valid JSON"),
            (r#"{"custom_id": [1]}"#, "must be text"),
            (r#"{"custom_id": ""}"#, "is empty"),
            (r#"{"body": 1}"#, "must be an object"),
            (r#"{"body": {}, "params": {}}"#, "one is enough"),
            (r#"{"method": "GET", "body": {}}"#, "only POST"),
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
