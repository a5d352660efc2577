//! Text of others, without what would do something to a terminal.
//!
//! Names, metadata, error texts of servers and words of the command line can be any text. What people read
//! goes through [`harmless`] or, with our own colours in it, through [`harmless_page`]; what programs read, through
//! [`harmless_json`].

/// The text in one line, with every letter shown that would do something.
pub(crate) fn harmless(text: &str) -> String {
    let mut harmless = String::with_capacity(text.len());
    text.chars().for_each(|c| push(&mut harmless, c));
    harmless
}

/// The same of a text in lines.
pub(crate) fn harmless_lines(text: &str) -> String {
    text.split('\n').map(harmless).collect::<Vec<_>>().join("\n")
}

/// The same of a text in lines that has our colours in it.
pub(crate) fn harmless_page(text: &str) -> String {
    let mut harmless = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let kept = if matches!(c, '\n' | '\t') { 1 } else { style_len(rest) };
        match kept {
            0 => push(&mut harmless, c),
            _ => harmless.push_str(&rest[..kept]),
        }
        rest = &rest[kept.max(c.len_utf8())..];
    }
    harmless
}

/// JSON in which letters that would do something are written as numbers. They are only ever in texts.
pub(crate) fn harmless_json(json: String) -> String {
    let does = |c: char| c != '\n' && does_something(c);
    if !json.contains(does) {
        return json;
    }
    let mut harmless = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if does(c) { harmless.push_str(&format!("\\u{:04x}", u32::from(c))) } else { harmless.push(c) }
    }
    harmless
}

/// Whether a letter is a command to a terminal, or lets a text look like another one.
pub(crate) fn does_something(c: char) -> bool {
    c.is_control() || turns(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Whether a letter makes others run the other way, so that a name could look like another one.
fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn push(harmless: &mut String, c: char) {
    match c {
        c if c.is_control() => harmless.extend(c.escape_debug()),
        c if does_something(c) => harmless.extend(c.escape_unicode()),
        c => harmless.push(c),
    }
}

/// How long the colour is that a text begins with, if it is one that we use.
fn style_len(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return 0 };
    let Some((numbers, _)) = rest.split_once('m') else { return 0 };
    // Everything off, bold, faint, underlined, and letters in one of six colours. None of them hides anything.
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
    fn nothing_that_does_something_is_left_and_everything_is_shown() {
        for text in [harmless(EVIL), harmless_lines(EVIL), harmless_page(EVIL)] {
            assert!(!text.contains(does_something), "{text:?}");
            assert!(text.contains("\\u{1b}]0;title\\u{7}b\\u{9b}2Jc\\u{202e}d"), "{text}");
        }
        assert_eq!(harmless("one\ntwo"), "one\\ntwo");
        assert_eq!(harmless_lines("one\ntwo\t"), "one\ntwo\\t");
    }

    #[test]
    fn our_colours_stay() {
        for style in [style::HEADING, style::FAINT, style::GOOD, style::BAD, style::WARN, style::NAME] {
            let text = format!("{} and\n{}", paint(style, "this"), paint(style, "that"));
            assert_eq!(harmless_page(&text), text);
        }
    }

    #[test]
    fn json_says_the_same_in_letters_that_do_nothing() {
        let json = harmless_json(serde_json::to_string_pretty(&[EVIL]).unwrap());
        assert!(!json.replace('\n', "").contains(does_something), "{json:?}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), [EVIL]);
    }
}
