use super::{Terminal, escape_page};

/// Formats a message for stderr: control characters other than our colours are escaped, and on a terminal it is wrapped.
pub(crate) fn wrap_message(message: &str, terminal: &Terminal) -> String {
    let message = escape_page(message);
    if terminal.is_watched { wrapped(&message, terminal.width) } else { message }
}

/// Wraps a text to `width` columns between words; a longer word is not broken. Colours have no width.
pub(super) fn wrapped(text: &str, width: usize) -> String {
    let mut wrapped = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut column = 0;
        for word in line.split_inclusive(' ') {
            let length = anstream::adapter::strip_str(word).to_string().trim_end().chars().count();
            if column > 0 && column + length > width {
                let kept = wrapped.trim_end_matches(' ').len();
                wrapped.truncate(kept);
                wrapped.push('\n');
                column = 0;
            }
            wrapped.push_str(word);
            column += length + (word.len() - word.trim_end_matches(' ').len());
        }
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("one two three\n  four five six", 9), "one two\nthree\n  four\nfive six");
        assert_eq!(wrapped("one two\n\n", 7), "one two\n\n");
        assert_eq!(wrapped("", 7), "");
    }

    #[test]
    fn a_word_that_is_too_long_is_not_cut() {
        assert_eq!(wrapped("a abcdefgh b", 4), "a\nabcdefgh\nb");
    }

    #[test]
    fn colours_take_no_room() {
        let red = "\u{1b}[31mone\u{1b}[0m";
        assert_eq!(wrapped(&format!("{red} {red} {red}"), 7), format!("{red} {red}\n{red}"));
    }
}
