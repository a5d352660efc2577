//! Recognises lines of a journal, so that no other file is ever written to.
//!
//! A journal has no header: each line is a result, and programs read it line by line. What tells it from other files is
//! how its lines begin, `{"id":"..","status":"done"` or `"failed"`, which [`encode`](super::encode) always writes in that
//! order.

use serde::Deserialize;

use super::line::Status;

/// What one line of a file is.
pub(super) enum Kind {
    /// A result.
    Result(Known),
    /// Spaces only: earlier versions wrote them over lines that a crash had torn.
    Blank,
    /// A line of which a crash kept a block from the disk. Such a block reads as zeros.
    Torn(String),
    /// No run wrote this.
    Foreign(String),
}

/// What a run has to know of a line without reading its output.
#[derive(Deserialize)]
pub(super) struct Known {
    pub(super) id: String,
    pub(super) status: Status,
    #[serde(default)]
    pub(super) fingerprint: Option<String>,
}

/// Says what a line is, which is given without its end.
pub(super) fn kind(line: &[u8]) -> Kind {
    if line.iter().all(|byte| *byte == b' ') {
        return Kind::Blank;
    }
    match serde_json::from_slice(line) {
        Ok(known) => Kind::Result(known),
        Err(cause) if line.contains(&0) => Kind::Torn(cause.to_string()),
        Err(cause) => Kind::Foreign(cause.to_string()),
    }
}

/// Returns true if a crash can have left this at the end of a journal: the beginning of a result, or zeros.
pub(super) fn may_be_cut_off(tail: &[u8]) -> bool {
    let known = tail.split(|byte| *byte == 0).next().unwrap_or_default();
    matches!(beginning(known), Ok(()) | Err(Mismatch::Ended))
}

/// Why a text is not the beginning of a result.
enum Mismatch {
    /// It is, as far as it goes.
    Ended,
    /// It goes on in another way.
    Differs,
}

fn beginning(text: &[u8]) -> Result<(), Mismatch> {
    let rest = string(literal(text, b"{\"id\":")?)?;
    let rest = match literal(rest, b",\"custom_id\":") {
        Ok(rest) => string(rest)?,
        Err(Mismatch::Ended) => return Err(Mismatch::Ended),
        Err(Mismatch::Differs) => rest,
    };
    let rest = literal(rest, b",\"status\":")?;
    match (literal(rest, b"\"done\""), literal(rest, b"\"failed\"")) {
        (Ok(_), _) | (_, Ok(_)) => Ok(()),
        (Err(Mismatch::Ended), _) | (_, Err(Mismatch::Ended)) => Err(Mismatch::Ended),
        _ => Err(Mismatch::Differs),
    }
}

/// Takes a literal from the beginning of a text.
fn literal<'a>(text: &'a [u8], literal: &[u8]) -> Result<&'a [u8], Mismatch> {
    match text.strip_prefix(literal) {
        Some(rest) => Ok(rest),
        None if literal.starts_with(text) => Err(Mismatch::Ended),
        None => Err(Mismatch::Differs),
    }
}

/// Takes a JSON string from the beginning of a text.
fn string(text: &[u8]) -> Result<&[u8], Mismatch> {
    let text = literal(text, b"\"")?;
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Ok(&text[at + 1..]),
            // A line does not end here, and a string has no control characters.
            0..0x20 => return Err(Mismatch::Differs),
            _ => {}
        }
    }
    Err(Mismatch::Ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_beginning_of_a_result_may_be_cut_off() {
        let line = br#"{"id":"a\"b","custom_id":"a\"b","status":"failed","class":"fatal"}"#;
        for end in 0..=line.len() {
            assert!(may_be_cut_off(&line[..end]), "{end}");
        }
        assert!(may_be_cut_off(b"{\"id\":\"a\0\0\0\0"));
        assert!(may_be_cut_off(b"\0\0\0"));
        for foreign in [
            "{\"id\":\"a\"}",
            "{\"id\":\"a\",\"name\":\"b\"",
            "{\"id\":1",
            "{\"id\":\"a\",\"status\":\"open\"",
            "{ \"id\":\"a\"",
            "notes",
            " ",
        ] {
            assert!(!may_be_cut_off(foreign.as_bytes()), "{foreign}");
        }
    }

    #[test]
    fn a_line_of_another_program_is_foreign_unless_a_crash_explains_it() {
        assert!(matches!(kind(br#"{"id":"a","status":"done","output":1e400}"#), Kind::Result(_)));
        assert!(matches!(kind(b"   "), Kind::Blank));
        assert!(matches!(kind(b"{\"id\":\"a\",\0\0"), Kind::Torn(_)));
        for foreign in ["nonsense", "{}", r#"{"id":"a","status":"open"}"#, r#"{"id":1,"status":"done"}"#] {
            assert!(matches!(kind(foreign.as_bytes()), Kind::Foreign(_)), "{foreign}");
        }
    }
}
