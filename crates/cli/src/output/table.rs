//! Tables that fit a width: long text is wrapped, and names are shortened only where a table asks for it.
//!
//! No library: comfy-table and tabled cut a cell at its end, so that two long names would look alike, and do not leave out
//! empty columns; what this file does would remain beside them.

use anstyle::Style;

use super::escape;
use super::style::{self, paint};

/// The gap between two columns.
const GAP: usize = 2;

/// The minimum width of a wrapped column.
const WRAPPED_MIN: usize = 12;

/// The minimum width of a shortened column.
const SHORTENED_MIN: usize = 8;

/// A text with its style.
#[derive(Clone, Debug)]
pub(crate) struct TableCell {
    text: String,
    style: Style,
}

/// Rows of cells under headings.
pub(crate) struct TextTable {
    headings: Vec<String>,
    rows: Vec<Vec<TableCell>>,
    right: Vec<usize>,
    hidden: Vec<usize>,
    wrapped: Option<usize>,
    shortened: Vec<usize>,
}

impl TableCell {
    /// Returns a cell with a text in a style.
    pub(crate) fn styled(text: impl ToString, style: Style) -> TableCell {
        TableCell { text: escape(&text.to_string()), style }
    }

    /// Returns a cell with the name of an entity, a resource, a namespace or a limit.
    pub(crate) fn name(text: impl ToString) -> TableCell {
        TableCell::styled(text, style::NAME)
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

impl<T: ToString> From<T> for TableCell {
    fn from(text: T) -> TableCell {
        TableCell::styled(text, Style::new())
    }
}

impl TextTable {
    /// Creates a table with these headings.
    pub(crate) fn new<const N: usize>(headings: [&str; N]) -> TextTable {
        TextTable {
            headings: headings.map(str::to_owned).into(),
            rows: Vec::new(),
            right: Vec::new(),
            hidden: Vec::new(),
            wrapped: None,
            shortened: Vec::new(),
        }
    }

    /// Creates a table without headings.
    pub(crate) fn bare() -> TextTable {
        TextTable::new([])
    }

    /// Aligns a column to the right.
    #[must_use]
    pub(crate) fn right(mut self, column: usize) -> TextTable {
        self.right.push(column);
        self
    }

    /// Leaves a column out if all its cells are empty.
    #[must_use]
    pub(crate) fn hide_empty(mut self, column: usize) -> TextTable {
        self.hidden.push(column);
        self
    }

    /// Wraps the text of a column if it does not fit.
    #[must_use]
    pub(crate) fn wrap(self, column: usize) -> TextTable {
        TextTable { wrapped: Some(column), ..self }
    }

    /// Leaves out the middle of long texts of a column if they do not fit: for screens that truncate lines.
    #[must_use]
    pub(crate) fn shorten(mut self, column: usize) -> TextTable {
        self.shortened.push(column);
        self
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [TableCell; N]) {
        self.rows.push(cells.into());
    }

    /// Returns whether the table has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds the table to a text.
    pub(super) fn render(&self, text: &mut String, width: usize) {
        let widths = self.widths(width);
        if !self.headings.is_empty() {
            let heading = |heading: &String| TableCell::styled(heading, style::HEADING);
            let headings: Vec<TableCell> = self.headings.iter().map(heading).collect();
            self.render_line(text, &headings, &widths);
        }
        for row in &self.rows {
            for line in self.lines_of(row, &widths) {
                self.render_line(text, &line, &widths);
            }
        }
    }

    /// Returns the width of each column; `None` if it is left out.
    fn widths(&self, width: usize) -> Vec<Option<usize>> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0).max(self.headings.len());
        let heading = |column: usize| self.headings.get(column).map_or(0, |heading| heading.chars().count());
        let widest =
            |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(TableCell::width).max();
        let is_hidden = |column: usize| self.hidden.contains(&column) && widest(column).unwrap_or(0) == 0;
        let full = |column: usize| heading(column).max(widest(column).unwrap_or(0));
        let mut widths: Vec<Option<usize>> =
            (0..columns).map(|column| (!is_hidden(column)).then(|| full(column))).collect();
        let too_much = |widths: &[Option<usize>]| {
            let gaps = GAP * widths.iter().flatten().count().saturating_sub(1);
            (widths.iter().flatten().sum::<usize>() + gaps).saturating_sub(width)
        };
        let over = too_much(&widths);
        if let Some(Some(wrapped)) = self.wrapped.and_then(|column| widths.get_mut(column)) {
            *wrapped = wrapped.saturating_sub(over).max(WRAPPED_MIN.min(*wrapped));
        }
        // The widest column is shortened first, so that each keeps as much as possible.
        for _ in 0..too_much(&widths) {
            let widest = self.shortened.iter().filter_map(|column| Some((widths[*column]?, *column))).max();
            match widest {
                Some((wide, column)) if wide > SHORTENED_MIN => widths[column] = Some(wide - 1),
                _ => break,
            }
        }
        widths
    }

    /// Returns the lines of a row: more than one if a text is wrapped.
    fn lines_of(&self, row: &[TableCell], widths: &[Option<usize>]) -> Vec<Vec<TableCell>> {
        let wrapped = self.wrapped.and_then(|column| Some((column, row.get(column)?, widths[column]?)));
        let Some((column, cell, width)) = wrapped.filter(|(_, cell, width)| cell.width() > *width) else {
            return vec![row.to_vec()];
        };
        let mut lines = Vec::new();
        for (index, part) in parts(&cell.text, width).into_iter().enumerate() {
            let part = TableCell::styled(part, cell.style);
            let empty = |_| TableCell::from("");
            let mut line: Vec<TableCell> =
                if index == 0 { row.to_vec() } else { row.iter().map(empty).collect() };
            line[column] = part;
            lines.push(line);
        }
        lines
    }

    /// Shortens the text of a cell in the middle, if it does not fit and its column may be shortened.
    fn fitted(&self, column: usize, cell: &TableCell, width: usize) -> TableCell {
        if !self.shortened.contains(&column) || cell.width() <= width {
            return cell.clone();
        }
        let letters = width.saturating_sub(1);
        let start = letters.div_ceil(2);
        let end = letters / 2;
        let text: Vec<char> = cell.text.chars().collect();
        let shortened = text[..start].iter().chain(['…'].iter()).chain(&text[text.len() - end..]);
        TableCell { text: shortened.collect(), style: cell.style }
    }

    fn render_line(&self, text: &mut String, cells: &[TableCell], widths: &[Option<usize>]) {
        let mut blanks = 0;
        let shown = cells.iter().zip(widths).enumerate();
        for (column, cell, width) in
            shown.filter_map(|(column, (cell, width))| Some((column, cell, (*width)?)))
        {
            let cell = &self.fitted(column, cell, width);
            let pad = width.saturating_sub(cell.width());
            let (before, after) = if self.right.contains(&column) { (pad, 0) } else { (0, pad) };
            if !cell.text.is_empty() {
                // Blanks are written only before text, so that no line ends in blanks.
                text.push_str(&" ".repeat(blanks + before));
                let is_plain = cell.style == Style::new();
                text.push_str(&if is_plain { cell.text.clone() } else { paint(cell.style, &cell.text) });
                blanks = after + GAP;
            } else {
                blanks += pad + GAP;
            }
        }
        text.push('\n');
    }
}

/// Splits a text into lines of at most `width`, at blanks.
fn parts(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or(0, |line| line.chars().count());
        let room = width.saturating_sub(line + usize::from(line > 0));
        if word.chars().count() > room && line > 0 {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(table: &TextTable, width: usize) -> String {
        let mut text = String::new();
        table.render(&mut text, width);
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn columns_are_as_wide_as_they_must_be_and_no_line_ends_in_blanks() {
        let mut table = TextTable::new(["NAME", "USED", "NOTE"]).right(1);
        table.row(["a".into(), "1,000".into(), "".into()]);
        table.row([TableCell::name("longer"), "7".into(), "x".into()]);
        assert_eq!(rendered(&table, 80), "NAME     USED  NOTE\na       1,000\nlonger      7  x\n");
    }

    #[test]
    fn an_empty_column_can_be_left_out() {
        let mut table = TextTable::new(["A", "B", "C"]).hide_empty(1).hide_empty(2);
        table.row(["1".into(), "".into(), "3".into()]);
        assert_eq!(rendered(&table, 80), "A  C\n1  3\n");
    }

    #[test]
    fn long_names_are_shortened_in_the_middle_and_other_columns_stay() {
        let mut table = TextTable::new(["ENTITY", "RESOURCE", "LEFT"]).shorten(0).shorten(1);
        table.row(["customer-0123456789-project-blue".into(), "gpt-4".into(), "17".into()]);
        let headings = "ENTITY          RESOURCE  LEFT";
        let row = "custome…t-blue  gpt-4     17";
        assert_eq!(rendered(&table, 30), format!("{headings}\n{row}\n"));
    }

    #[test]
    fn a_long_text_is_wrapped_in_its_column() {
        let mut table = TextTable::new(["ID", "NOTE"]).wrap(1);
        table.row(["k".into(), "one two three four five".into()]);
        assert_eq!(rendered(&table, 18), "ID  NOTE\nk   one two three\n    four five\n");
    }

    #[test]
    fn control_characters_are_escaped() {
        let mut table = TextTable::bare();
        table.row(["a\u{1b}[2J\nb\u{9b}c".into()]);
        assert_eq!(rendered(&table, 80), "a\\u{1b}[2J\\nb\\u{9b}c\n");
    }

    #[test]
    fn a_word_that_is_too_long_is_not_cut() {
        assert_eq!(parts("aaaaaaaa bb", 4), ["aaaaaaaa", "bb"]);
        assert_eq!(parts("", 4), [""]);
    }
}
