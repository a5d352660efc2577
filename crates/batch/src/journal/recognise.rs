//! Recognition of journal lines, so that no other file is ever written to.
//!
//! A journal has no header: each line is a result, and programs read it line by line. What
//! distinguishes it from other files are the fields that [`encode`](super::encode) writes into
//! every line. An id and a status are not enough: many programs write these. A complete line may
//! have its fields in another order, as a program that edits JSON leaves them; an incomplete one
//! must be what [`encode`](super::encode) wrote, byte for byte as far as it goes.

use serde::Deserialize;

use super::line::LineStatus;

/// The kind of a line.
pub(super) enum LineKind {
    /// A result.
    Result(LineFacts),
    /// Spaces only.
    Blank,
    /// A line with a block that a crash kept from the disk. Such a block reads as zeros.
    Torn(String),
    /// A line that no run wrote.
    Foreign(String),
}

/// The facts of a line that a run needs, without the output. The numbers are required because every
/// line has all of them.
#[derive(Deserialize)]
pub(super) struct LineFacts {
    pub(super) id: String,
    pub(super) status: LineStatus,
    #[serde(rename = "index")]
    _index: u64,
    #[serde(rename = "attempts")]
    _attempts: u32,
    #[serde(rename = "throttles")]
    _throttles: u32,
    #[serde(rename = "tokens")]
    _tokens: u64,
    #[serde(rename = "cost_micros")]
    _cost_micros: u64,
    #[serde(default)]
    pub(super) fingerprint: Option<String>,
}

/// The names of the numbers of a line, in the order in which they are written.
const NUMBERS: [&[u8]; 5] =
    [b",\"index\":", b",\"attempts\":", b",\"throttles\":", b",\"tokens\":", b",\"cost_micros\":"];

/// Returns the kind of a line, which is passed without its end.
pub(super) fn kind(line: &[u8]) -> LineKind {
    if line.iter().all(|byte| *byte == b' ') {
        return LineKind::Blank;
    }
    match serde_json::from_slice(line) {
        Ok(known) => LineKind::Result(known),
        Err(cause) if line.contains(&0) => LineKind::Torn(cause.to_string()),
        Err(cause) => LineKind::Foreign(cause.to_string()),
    }
}

/// Returns true if a crash can have left this at the end of a journal: the beginning of a result,
/// or zeros.
pub(super) fn may_be_cut_off(tail: &[u8]) -> bool {
    let known = tail.split(|byte| *byte == 0).next().unwrap_or_default();
    matches!(beginning(known), Ok(()) | Err(Mismatch::Ended))
}

/// Why a text is not a complete result.
enum Mismatch {
    /// It ends before the result does.
    Ended,
    /// It differs from a result.
    Differs,
}

/// Parses a text as the beginning of a result.
fn beginning(text: &[u8]) -> Result<(), Mismatch> {
    let rest = string(literal(text, b"{\"id\":")?)?;
    let rest = optional(rest, b",\"custom_id\":", string)?;
    let rest = literal(rest, b",\"status\":")?;
    let mut rest = match literal(rest, b"\"done\"") {
        Ok(rest) => value(literal(rest, b",\"output\":")?)?,
        Err(Mismatch::Ended) => return Err(Mismatch::Ended),
        Err(Mismatch::Differs) => {
            let rest = optional(literal(rest, b"\"failed\"")?, b",\"output\":", value)?;
            let rest = string(literal(rest, b",\"class\":")?)?;
            string(literal(rest, b",\"reason\":")?)?
        }
    };
    for name in NUMBERS {
        rest = digits(literal(rest, name)?)?;
    }
    let rest = optional(rest, b",\"fingerprint\":", string)?;
    match literal(rest, b"}")? {
        [] => Ok(()),
        _ => Err(Mismatch::Differs),
    }
}

/// Parses an optional field at the beginning of a text, and returns the rest.
fn optional<'a>(
    text: &'a [u8],
    name: &[u8],
    take: fn(&'a [u8]) -> Result<&'a [u8], Mismatch>,
) -> Result<&'a [u8], Mismatch> {
    match literal(text, name) {
        Ok(rest) => take(rest),
        Err(Mismatch::Ended) => Err(Mismatch::Ended),
        Err(Mismatch::Differs) => Ok(text),
    }
}

/// Parses a literal at the beginning of a text, and returns the rest.
fn literal<'a>(text: &'a [u8], literal: &[u8]) -> Result<&'a [u8], Mismatch> {
    match text.strip_prefix(literal) {
        Some(rest) => Ok(rest),
        None if literal.starts_with(text) => Err(Mismatch::Ended),
        None => Err(Mismatch::Differs),
    }
}

/// Parses a JSON string at the beginning of a text, and returns the rest.
fn string(text: &[u8]) -> Result<&[u8], Mismatch> {
    let text = literal(text, b"\"")?;
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Ok(&text[at + 1..]),
            // A string of JSON has no control characters.
            0..0x20 => return Err(Mismatch::Differs),
            _ => {}
        }
    }
    Err(Mismatch::Ended)
}

/// Parses digits at the beginning of a text, and returns the rest.
fn digits(text: &[u8]) -> Result<&[u8], Mismatch> {
    match text.iter().position(|byte| !byte.is_ascii_digit()) {
        None => Err(Mismatch::Ended),
        Some(0) => Err(Mismatch::Differs),
        Some(end) => Ok(&text[end..]),
    }
}

/// Parses a JSON value of any type at the beginning of a text, and returns the rest.
fn value(text: &[u8]) -> Result<&[u8], Mismatch> {
    let (mut rest, mut depth) = (text, 0_usize);
    loop {
        match rest.first() {
            None => return Err(Mismatch::Ended),
            Some(b'"') => rest = string(rest)?,
            Some(b',' | b'}' | b']') if depth == 0 => {
                // A number, a keyword or the text after a value ends here. An empty value is not
                // valid.
                return if rest.len() < text.len() { Ok(rest) } else { Err(Mismatch::Differs) };
            }
            Some(byte) => {
                depth += usize::from(matches!(byte, b'{' | b'['));
                depth -= usize::from(matches!(byte, b'}' | b']'));
                rest = &rest[1..];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: &str = r#""index":7,"attempts":1,"throttles":0,"tokens":31,"cost_micros":0"#;

    #[test]
    fn only_the_beginning_of_a_result_may_be_cut_off() {
        let output = r#"{"a":[1,"}\"]",{}], "b":null}"#;
        for line in [
            format!(
                r#"{{"id":"a\"b","custom_id":"a\"b","status":"failed","class":"fatal","reason":"no",{NUMBERS}}}"#
            ),
            format!(
                r#"{{"id":"a","status":"failed","output":{output},"class":"fatal","reason":"no",{NUMBERS}}}"#
            ),
            format!(r#"{{"id":"a","status":"done","output":{output},{NUMBERS},"fingerprint":"00ff"}}"#),
            format!(r#"{{"id":"a","status":"done","output":null,{NUMBERS}}}"#),
            format!(r#"{{"id":"a","status":"done","output":-1.5e3 ,{NUMBERS}}}"#),
        ] {
            for end in 0..=line.len() {
                assert!(may_be_cut_off(&line.as_bytes()[..end]), "{}", &line[..end]);
            }
            assert!(!may_be_cut_off(format!("{line}x").as_bytes()), "{line}");
        }
        assert!(may_be_cut_off(b"{\"id\":\"a\0\0\0\0"));
        assert!(may_be_cut_off(b"\0\0\0"));
        for foreign in [
            "{\"id\":\"a\"}",
            "{\"id\":\"a\",\"name\":\"b\"",
            "{\"id\":1",
            "{\"id\":\"a\",\"status\":\"open\"",
            "{\"id\":\"a\",\"status\":\"done\"}",
            "{\"id\":\"a\",\"status\":\"done\",\"title\":\"b\"",
            "{\"id\":\"a\",\"status\":\"done\",\"output\":1}",
            "{\"id\":\"a\",\"status\":\"done\",\"output\":,",
            "{\"id\":\"a\",\"status\":\"failed\",\"reason\":\"b\"",
            "{\"id\":\"a\",\"status\":\"done\",\"output\":1,\"index\":\"",
            "{ \"id\":\"a\"",
            "notes",
            " ",
        ] {
            assert!(!may_be_cut_off(foreign.as_bytes()), "{foreign}");
        }
    }

    #[test]
    fn a_line_of_another_program_is_foreign_unless_a_crash_explains_it() {
        for ours in [
            format!(r#"{{"id":"a","status":"done","output":1e400,{NUMBERS}}}"#),
            format!(r#"{{{NUMBERS}, "status": "failed", "id": "a"}}"#),
        ] {
            assert!(matches!(kind(ours.as_bytes()), LineKind::Result(_)), "{ours}");
        }
        assert!(matches!(kind(b"   "), LineKind::Blank));
        assert!(matches!(kind(b"{\"id\":\"a\",\0\0"), LineKind::Torn(_)));
        for foreign in [
            "nonsense",
            "{}",
            r#"{"id":"a","status":"open"}"#,
            r#"{"id":1,"status":"done"}"#,
            r#"{"id":"a","status":"failed","title":"b"}"#,
            r#"{"id":"a","status":"done","output":1,"index":1,"attempts":1}"#,
        ] {
            assert!(matches!(kind(foreign.as_bytes()), LineKind::Foreign(_)), "{foreign}");
        }
    }
}
