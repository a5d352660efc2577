//! Frames that are drawn over the one before.

/// What begins and ends a frame: a terminal that knows them shows the frame when it is whole, others ignore them.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";

/// Erases the rest of the line.
const ERASE_LINE: &str = "\u{1b}[K";

/// Erases the rest of the line and everything below it.
const ERASE_BELOW: &str = "\u{1b}[J";

/// Draws lines over those of the frame before; `start` moves the cursor to the first one.
///
/// A line is erased before it is written: behind a text that fills a line the cursor is still on its last character, which would
/// be erased as well.
pub(crate) fn frame(start: &str, lines: &[&str]) -> String {
    let mut frame = [BEGIN, start].concat();
    for (index, line) in lines.iter().enumerate() {
        let is_last = index + 1 == lines.len();
        frame.push_str(if index > 0 { "\n" } else { "" });
        frame.push_str(if is_last { ERASE_BELOW } else { ERASE_LINE });
        frame.push_str(line);
    }
    frame.push_str(END);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_erased_behind_a_text() {
        let drawn = frame("\u{1b}[H", &["one", "two"]);
        assert_eq!(drawn, "\u{1b}[?2026h\u{1b}[H\u{1b}[Kone\n\u{1b}[Jtwo\u{1b}[?2026l");
    }
}
