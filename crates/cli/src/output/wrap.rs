use super::{Terminal, escape_page};

/// Formats a message for stderr: control characters other than our colours are escaped, and on a terminal it is wrapped.
pub(crate) fn wrap_message(message: &str, terminal: &Terminal) -> String {
    let message = escape_page(message);
    if terminal.is_watched { wrapped(&message, terminal.width) } else { message }
}

/// Marks of the lines of a list: what follows such a line begins below its text.
const MARKS: [char; 4] = ['+', '~', '-', '*'];

/// Wraps a text to `width` columns between words; a longer word is not broken. A line that was begun by a blank or a mark goes on
/// below its text. Colours have no width.
pub(super) fn wrapped(text: &str, width: usize) -> String {
    let mut wrapped = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let indent = Some(indent(&plain(line))).filter(|indent| *indent < width / 2).unwrap_or(0);
        // The first word stays on the line, however long it is.
        let (mut column, mut is_begun) = (0, false);
        for word in line.split_inclusive(' ') {
            let length = plain(word).trim_end().chars().count();
            if is_begun && length > 0 && column + length > width {
                let kept = wrapped.trim_end_matches(' ').len();
                wrapped.truncate(kept);
                wrapped.push('\n');
                wrapped.push_str(&" ".repeat(indent));
                column = indent;
            }
            wrapped.push_str(word);
            column += length + (word.len() - word.trim_end_matches(' ').len());
            is_begun |= column > indent;
        }
    }
    wrapped
}

/// Returns the column at which the text of a line begins, behind blanks and a mark.
fn indent(line: &str) -> usize {
    let blanks = line.len() - line.trim_start_matches(' ').len();
    let is_marked = line[blanks..].strip_prefix(MARKS).is_some_and(|rest| rest.starts_with(' '));
    blanks + if is_marked { 2 } else { 0 }
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("one two three\nfour five six", 9), "one two\nthree\nfour five\nsix");
        assert_eq!(wrapped("one two\n\n", 7), "one two\n\n");
        assert_eq!(wrapped("", 7), "");
    }

    #[test]
    fn a_word_that_is_too_long_is_not_cut() {
        assert_eq!(wrapped("a abcdefgh b", 4), "a\nabcdefgh\nb");
    }

    #[test]
    fn a_line_goes_on_below_its_text() {
        assert_eq!(wrapped("  four five six\nseven", 11), "  four five\n  six\nseven");
        assert_eq!(wrapped("  + four five six", 11), "  + four\n    five\n    six");
        assert_eq!(wrapped("\u{1b}[32m+\u{1b}[0m four five", 7), "\u{1b}[32m+\u{1b}[0m four\n  five");
        assert_eq!(wrapped("  abcdefghi b", 7), "  abcdefghi\n  b");
    }

    #[test]
    fn colours_take_no_room() {
        let red = "\u{1b}[31mone\u{1b}[0m";
        assert_eq!(wrapped(&format!("{red} {red} {red}"), 7), format!("{red} {red}\n{red}"));
    }
}
