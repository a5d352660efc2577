//! Rust source with comments and literals blanked out, so that a rule sees code and nothing else.
//!
//! This is a scanner and no parser: it knows comments (nested), strings (raw, byte, C), characters and lifetimes.
//! Line numbers are kept.

/// Replaces every comment and every string or character literal by blanks, line for line.
pub(crate) fn code_only(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let skipped = literal_or_comment_len(rest, code.chars().next_back());
        let taken = if skipped > 0 { skipped } else { rest.chars().next().map_or(1, char::len_utf8) };
        let (piece, tail) = rest.split_at(taken);
        if skipped > 0 {
            code.extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        } else {
            code.push_str(piece);
        }
        rest = tail;
    }
    code
}

/// Returns the lines, from 1, that contain `word` as a whole word.
pub(crate) fn lines_with_word<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let has_word = move |line: &str| line.match_indices(word).any(|(at, _)| is_word(line, at, word.len()));
    code.lines().enumerate().filter(move |(_, line)| has_word(line)).map(|(index, _)| index + 1)
}

fn is_word(line: &str, at: usize, len: usize) -> bool {
    let before = line[..at].chars().next_back();
    let after = line[at + len..].chars().next();
    !before.is_some_and(continues_name) && !after.is_some_and(continues_name)
}

fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns how many bytes at the start of `rest` are a comment or a literal.
fn literal_or_comment_len(rest: &str, before: Option<char>) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment_len(rest);
    }
    // In `bar"` the r belongs to a name, and no name may stand directly before a string.
    let prefix = if before.is_some_and(continues_name) { 0 } else { prefix_len(rest) };
    let literal = &rest[prefix..];
    let raw = rest[..prefix].contains('r');
    let len = match literal.as_bytes().first() {
        Some(b'"' | b'#') if raw => raw_string_len(literal),
        Some(b'"') => quoted_len(literal, '"'),
        Some(b'\'') => char_len(literal),
        _ => 0,
    };
    if len == 0 { 0 } else { prefix + len }
}

/// The letters of b"", c"", r"", br"", cr"".
fn prefix_len(rest: &str) -> usize {
    let prefixes = ["br", "cr", "b", "c", "r"];
    let fits =
        |prefix: &&&str| rest.starts_with(**prefix) && rest[prefix.len()..].starts_with(['"', '#', '\'']);
    prefixes.iter().find(fits).map_or(0, |prefix| prefix.len())
}

fn block_comment_len(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let tail = &rest.as_bytes()[at..];
        if tail.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if tail.starts_with(b"*/") {
            depth -= 1;
            at += 2;
        } else {
            at += 1;
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn raw_string_len(literal: &str) -> usize {
    let hashes = literal.len() - literal.trim_start_matches('#').len();
    if !literal[hashes..].starts_with('"') {
        return 0; // a raw identifier: r#type
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let body = hashes + 1;
    literal[body..].find(&end).map_or(literal.len(), |at| body + at + end.len())
}

fn quoted_len(literal: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in literal.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    literal.len()
}

/// A character is one character or an escape between quotes; anything else is a lifetime.
fn char_len(literal: &str) -> usize {
    let mut chars = literal.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), _) => quoted_len(literal, '\''),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        code_only(text).split_whitespace().map(String::from).collect()
    }

    #[test]
    fn comments_vanish_and_code_stays() {
        assert_eq!(words("a // b\nc /* d /* e */ f */ g //! h"), ["a", "c", "g"]);
    }

    #[test]
    fn strings_of_every_kind_vanish() {
        let text = r####"a "b \" c" d r#"e " f"# g b"h" i br##"j "# k"## l c"m" n"####;
        assert_eq!(words(text), ["a", "d", "g", "i", "l", "n"]);
    }

    #[test]
    fn a_quote_character_does_not_open_a_string_and_a_lifetime_is_no_character() {
        assert_eq!(words("a '\"' b '\\'' c <'d> e 'f' g b'\"' h"), ["a", "b", "c", "<'d>", "e", "g", "h"]);
    }

    #[test]
    fn a_raw_identifier_and_a_name_before_a_string_are_code() {
        assert_eq!(words("r#type"), ["r#type"]);
        assert_eq!(words(r#"concat!(bar, "x") unsafe"#), ["concat!(bar,", ")", "unsafe"]);
    }

    #[test]
    fn lines_are_kept() {
        let text = "/* one\ntwo */ word\n\"three\nfour\" word";
        assert_eq!(lines_with_word(&code_only(text), "word").collect::<Vec<_>>(), [2, 4]);
    }

    #[test]
    fn a_word_is_whole() {
        assert_eq!(lines_with_word("unsafe_code\nmy_unsafe\nunsafe {", "unsafe").collect::<Vec<_>>(), [3]);
    }
}
