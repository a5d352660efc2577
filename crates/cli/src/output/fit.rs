//! Texts that are made to fit a number of columns.

/// Characters after which a word that is too long is broken, if there is one in the second half of the line.
const BREAKS: [char; 8] = ['-', '_', '/', '.', ':', ',', '=', '&'];

/// Leaves out the middle of a text that is wider than `width`.
pub(super) fn without_middle(text: &str, width: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let (start, end) = (kept.div_ceil(2), kept / 2);
    let shown = letters[..start].iter().chain(['…'].iter()).chain(&letters[letters.len() - end..]);
    shown.collect()
}

/// Leaves out the end of a text that is wider than `width`.
pub(super) fn without_end(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// What becomes of a word that is longer than a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LongWord {
    /// Its line is too long.
    Keep,
    /// Its middle is left out.
    Shorten,
    /// It goes on in the next line.
    Break,
}

/// Breaks a text at blanks into lines of at most `width`. A longer word begins a line of its own.
pub(super) fn lines_of_words(text: &str, width: usize, long: LongWord) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let word = if long == LongWord::Shorten { &without_middle(word, width) } else { word };
        let line = lines.last().map_or(0, |line| line.chars().count());
        let room = width.saturating_sub(line + usize::from(line > 0));
        if word.chars().count() > room && line > 0 {
            lines.push(String::new());
        }
        let mut word: Vec<char> = word.chars().collect();
        while long == LongWord::Break && width > 0 && word.len() > width {
            let rest = word.split_off(break_within(&word[..width]));
            // A word that is too long has begun a line of its own.
            if let Some(line) = lines.last_mut() {
                line.extend(word);
            }
            lines.push(String::new());
            word = rest;
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.extend(word);
        }
    }
    lines
}

/// Returns where to break the beginning of a word that goes on: after a sign in its second half, or at its end.
fn break_within(start: &[char]) -> usize {
    let sign = start.iter().rposition(|c| BREAKS.contains(c)).map(|sign| sign + 1);
    sign.filter(|end| *end > start.len() / 2).unwrap_or(start.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_both_ends_or_its_start() {
        assert_eq!(without_middle("customer-0123456789-blue", 9), "cust…blue");
        assert_eq!(without_end("customer-0123456789-blue", 9), "customer…");
        for width in [4, 5] {
            assert_eq!((&*without_middle("blue", width), &*without_end("blue", width)), ("blue", "blue"));
        }
        assert_eq!([without_middle("blue", 1), without_end("blue", 1), without_end("", 0)], ["…", "…", ""]);
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(lines_of_words("one two three", 7, LongWord::Break), ["one two", "three"]);
        assert_eq!(lines_of_words("", 4, LongWord::Break), [""]);
    }

    #[test]
    fn a_word_that_is_too_long_is_whole_or_shortened_or_broken_after_a_sign() {
        assert_eq!(lines_of_words("aaaaaaaa bb", 4, LongWord::Keep), ["aaaaaaaa", "bb"]);
        assert_eq!(lines_of_words("of aaabbbccc, dd", 7, LongWord::Shorten), ["of", "aaa…cc,", "dd"]);
        let broken = |text, width| lines_of_words(text, width, LongWord::Break);
        assert_eq!(broken("a bbbbbbbbb cc", 4), ["a", "bbbb", "bbbb", "b cc"]);
        assert_eq!(broken("key-one-two-three", 10), ["key-one-", "two-three"]);
        assert_eq!(broken("k-onetwothree", 8), ["k-onetwo", "three"]);
    }
}
