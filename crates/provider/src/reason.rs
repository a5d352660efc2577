//! Reasons: a provider's message, fit to be shown: on one line, not too long, and without keys.

use crate::REASON_MAX;

/// Replaces a word that looks like a key.
const HIDDEN: &str = "***";

/// The minimum length of a mixed run of letters and digits that is taken for a key. Names of models
/// and dates have shorter ones.
const SECRET_MIN: usize = 20;

/// Prefixes of keys.
const PREFIXES: [&str; 9] = ["sk-", "sk_", "pk-", "gsk_", "xai-", "AIza", "AKIA", "ASIA", "eyJ"];

/// Returns the message, or `None` if it is empty.
pub(crate) fn shown(text: &str) -> Option<String> {
    let mut shown = String::new();
    let mut chars = 0;
    let mut after_bearer = false;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        let word_shown = if after_bearer { HIDDEN.to_owned() } else { without_keys(word) };
        after_bearer = word.trim_start_matches(['"', '\'']).eq_ignore_ascii_case("bearer");
        if chars > 0 {
            shown.push(' ');
            chars += 1;
        }
        chars += word_shown.chars().count();
        shown.push_str(&word_shown);
        if chars > REASON_MAX {
            shown = shown.chars().take(REASON_MAX - 1).collect();
            shown.push('…');
            break;
        }
    }
    Some(shown).filter(|text| !text.is_empty())
}

/// Returns the word with everything replaced that may be a key.
fn without_keys(word: &str) -> String {
    let is_key_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*');
    let mut out = String::new();
    let mut rest = word;
    while !rest.is_empty() {
        let start = rest.find(is_key_char).unwrap_or(rest.len());
        let (before, tail) = rest.split_at(start);
        let end = tail.find(|c: char| !is_key_char(c)).unwrap_or(tail.len());
        let (run, tail) = tail.split_at(end);
        out.push_str(before);
        out.push_str(if looks_like_key(run) { HIDDEN } else { run });
        rest = tail;
    }
    out
}

fn looks_like_key(run: &str) -> bool {
    let begins = PREFIXES.iter().any(|prefix| run.starts_with(prefix) && run.len() > prefix.len() + 4);
    begins || run.split(['-', '_']).any(is_mixed)
}

fn is_mixed(piece: &str) -> bool {
    let digit = piece.bytes().any(|byte| byte.is_ascii_digit());
    let letter = piece.bytes().any(|byte| byte.is_ascii_alphabetic());
    piece.len() >= SECRET_MIN && digit && letter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hidden_and_other_words_are_kept() {
        let table = [
            ("Incorrect API key provided: sk-abcde12345XYZ. Look", "Incorrect API key provided: ***. Look"),
            ("key=AIzaSyA1234567890, sent", "key=***, sent"),
            ("Bearer abc.def", "Bearer ***"),
            ("organization org-a1B2c3D4e5F6g7H8i9J0k1", "organization ***"),
            ("claude-3-5-sonnet-20241022 in 2m59.56s", "claude-3-5-sonnet-20241022 in 2m59.56s"),
            (
                "see https://platform.openai.com/account/api-keys.",
                "see https://platform.openai.com/account/api-keys.",
            ),
            ("two\nlines\tand\u{7}bell", "two lines and bell"),
        ];
        for (text, expected) in table {
            assert_eq!(shown(text).as_deref(), Some(expected));
        }
        assert_eq!(shown(" \n "), None);
    }

    #[test]
    fn long_messages_are_cut() {
        let text = shown(&"é".repeat(10_000)).unwrap();
        assert_eq!(text.chars().count(), REASON_MAX);
        let text = shown(&"word ".repeat(10_000)).unwrap();
        assert_eq!(text.chars().count(), REASON_MAX);
        assert!(text.ends_with('…'));
    }
}
