//! Escaping of control characters in untrusted text.
//!
//! Names, metadata, error texts of servers and arguments can be any text. Text output goes through [`escape`] or, with
//! our own colours in it, through [`escape_page`]; JSON output goes through [`escape_json`].

/// Escapes a text of one line.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        push(&mut escaped, c);
    }
    escaped
}

/// Escapes a text of several lines.
pub(crate) fn escape_lines(text: &str) -> String {
    text.split('\n').map(escape).collect::<Vec<_>>().join("\n")
}

/// Escapes a text of several lines, except for our own colours.
pub(crate) fn escape_page(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let unchanged = if matches!(c, '\n' | '\t') { 1 } else { style_len(rest) };
        match unchanged {
            0 => push(&mut escaped, c),
            _ => escaped.push_str(&rest[..unchanged]),
        }
        rest = &rest[unchanged.max(c.len_utf8())..];
    }
    escaped
}

/// Escapes control characters in JSON. They occur only inside strings.
pub(crate) fn escape_json(json: String) -> String {
    let must_escape = |c: char| c != '\n' && is_unsafe_char(c);
    if !json.contains(must_escape) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if must_escape(c) { escaped.push_str(&format!("\\u{:04x}", u32::from(c))) } else { escaped.push(c) }
    }
    escaped
}

/// Returns whether a character controls a terminal, or can make a text look like another one.
pub(crate) fn is_unsafe_char(c: char) -> bool {
    c.is_control() || changes_direction(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Returns whether a character changes the direction of text, so that a name could look like another one.
fn changes_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn push(escaped: &mut String, c: char) {
    match c {
        c if c.is_control() => escaped.extend(c.escape_debug()),
        c if is_unsafe_char(c) => escaped.extend(c.escape_unicode()),
        c => escaped.push(c),
    }
}

/// Returns the length of the colour sequence at the start of a text, if it is one that we use.
pub(super) fn style_len(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return 0 };
    let Some((numbers, _)) = rest.split_once('m') else { return 0 };
    // Reset, bold, faint, underlined, and six foreground colours. None of them hides text.
    let is_ours =
        |number: &str| matches!(number, "" | "0" | "1" | "2" | "4" | "31" | "32" | "33" | "34" | "35" | "36");
    if numbers.split(';').all(is_ours) { "\u{1b}[".len() + numbers.len() + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::style::{self, paint};

    const EVIL: &str = "a\u{1b}]0;title\u{7}b\u{9b}2Jc\u{202e}d\u{7f}e\rf\u{2028}g\u{1b}[8mh";

    #[test]
    fn control_characters_are_escaped_and_everything_is_shown() {
        for text in [escape(EVIL), escape_lines(EVIL), escape_page(EVIL)] {
            assert!(!text.contains(is_unsafe_char), "{text:?}");
            assert!(text.contains("\\u{1b}]0;title\\u{7}b\\u{9b}2Jc\\u{202e}d"), "{text}");
        }
        assert_eq!(escape("one\ntwo"), "one\\ntwo");
        assert_eq!(escape_lines("one\ntwo\t"), "one\ntwo\\t");
    }

    #[test]
    fn our_colours_stay() {
        for style in [style::HEADING, style::FAINT, style::GOOD, style::BAD, style::WARN, style::NAME] {
            let text = format!("{} and\n{}", paint(style, "this"), paint(style, "that"));
            assert_eq!(escape_page(&text), text);
        }
    }

    #[test]
    fn escaped_json_parses_to_the_same_value() {
        let json = escape_json(serde_json::to_string_pretty(&[EVIL]).unwrap());
        assert!(!json.replace('\n', "").contains(is_unsafe_char), "{json:?}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), [EVIL]);
    }
}
