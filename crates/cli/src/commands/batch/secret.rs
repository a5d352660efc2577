//! API keys, which are never shown, and texts that may contain one.

use std::fmt;

/// A secret that `Debug` does not show.
#[derive(Clone)]
pub(crate) struct ApiKey(String);

impl ApiKey {
    pub(crate) fn new(key: &str) -> ApiKey {
        ApiKey(key.into())
    }

    /// Returns the secret, to send it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Returns whether a text that should be a name may be a key, which must not be shown.
pub(super) fn may_be_key(name: &str) -> bool {
    // Long words of lower-case letters and digits are more likely keys than names; names of variables are in capitals.
    const LONG: usize = 16;
    let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let has = |is: fn(char) -> bool| name.contains(is);
    let is_mixed = has(|c| c.is_ascii_lowercase()) && has(|c| c.is_ascii_digit());
    name.starts_with("sk-") || is_word && is_mixed && name.len() >= LONG
}

/// Formats a parse error of a file that may contain a key by mistake: position and field, but no value and no line of it.
pub(super) fn without_values(text: &str, why: &toml::de::Error) -> String {
    let span = why.span().unwrap_or_default();
    let before = text.get(..span.start).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}: {}", scrubbed(why.message(), text))
}

/// Removes the values of the file from a message.
fn scrubbed(message: &str, text: &str) -> String {
    let values = text.lines().filter_map(|line| Some(line.split_once('=')?.1));
    let mut words: Vec<&str> =
        values.flat_map(|value| value.split(['"', '\'', '[', ']', ','])).map(str::trim).collect();
    words.retain(|word| !word.is_empty());
    // The longest first, or a part of one would remain.
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words.dedup();
    words.iter().fold(message.trim_end().to_owned(), |message, word| {
        let quoted = [format!("\"{word}\""), format!("`{word}`")];
        quoted.iter().fold(message, |message, quoted| message.replace(quoted, "(not shown)"))
    })
}
