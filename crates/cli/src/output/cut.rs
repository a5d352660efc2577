use super::escape::style_len;

/// Resets the colour.
const RESET: &str = "\u{1b}[0m";

/// Cuts a line to `width` columns, the last of which is `…` if something was cut off. Our colours have no width.
pub(crate) fn cut_line(line: &str, width: usize) -> String {
    let mut cut = String::with_capacity(line.len());
    let (mut columns, mut is_styled) = (0, false);
    // Where to end if the line turns out to be too long.
    let mut end = 0;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let style = style_len(rest);
        if style == 0 && columns == width {
            cut.truncate(end);
            cut.push('…');
            if is_styled {
                cut.push_str(RESET);
            }
            return cut;
        }
        let length = style.max(c.len_utf8());
        cut.push_str(&rest[..length]);
        rest = &rest[length..];
        if style > 0 {
            is_styled = true;
        } else {
            columns += 1;
        }
        if columns < width {
            end = cut.len();
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_with_a_sign_only_if_it_is_too_long() {
        assert_eq!(cut_line("twelve", 6), "twelve");
        assert_eq!(cut_line("twelve", 5), "twel…");
        assert_eq!(cut_line("zwölf", 5), "zwölf");
        assert_eq!(cut_line("", 5), "");
    }

    #[test]
    fn colours_have_no_width_and_end_with_the_line() {
        let line = "\u{1b}[31mred\u{1b}[0m and \u{1b}[1mbold\u{1b}[0m";
        assert_eq!(cut_line(line, 12), line);
        assert_eq!(cut_line(line, 5), "\u{1b}[31mred\u{1b}[0m …\u{1b}[0m");
        assert_eq!(cut_line("\u{1b}[2Jx", 4), "\u{1b}[2…");
    }
}
