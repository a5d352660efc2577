//! Tables that are no wider than their page: text is wrapped where a table asks for it, and other cells are shortened, names
//! first. A page of which programs may read a line has names as they are.
//!
//! No library: comfy-table and tabled cut a cell at its end, so that two long names would look alike, and do not leave out
//! empty columns; what this file does would remain beside them.

use anstyle::Style;

use super::columns::{GAP, Narrowing, TableColumn, narrow};
use super::escape;
use super::fit::{LongWord, lines_of_words, without_end, without_middle};
use super::page::PageWidth;
use super::style::{self, paint};

/// The minimum width of a wrapped column in which long words are broken.
const BROKEN_MIN: usize = 32;

/// A text with its style.
#[derive(Clone, Debug)]
pub(crate) struct TableCell {
    text: String,
    style: Style,
    is_name: bool,
}

/// Rows of cells under headings.
pub(crate) struct TextTable {
    headings: Vec<String>,
    rows: Vec<Vec<TableCell>>,
    right: Vec<usize>,
    hidden: Vec<usize>,
    wrapped: Vec<usize>,
    shortened: Vec<usize>,
}

impl TableCell {
    /// Returns a cell with a text in a style.
    pub(crate) fn styled(text: impl ToString, style: Style) -> TableCell {
        TableCell { text: escape(&text.to_string()), style, is_name: false }
    }

    /// Returns a cell with the name of an entity, a resource, a namespace or a limit, whose middle is left out where it does
    /// not fit.
    pub(crate) fn name(text: impl ToString) -> TableCell {
        TableCell { is_name: true, ..TableCell::styled(text, style::NAME) }
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
            wrapped: Vec::new(),
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
    pub(crate) fn wrap(mut self, column: usize) -> TextTable {
        self.wrapped.push(column);
        self
    }

    /// Leaves out the middle of long texts of a column if they do not fit, as in columns of [names](TableCell::name).
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
    pub(super) fn render(&self, text: &mut String, width: PageWidth) {
        let columns = self.columns(width);
        if !self.headings.is_empty() {
            let heading = |(heading, column): (&String, &Option<TableColumn>)| {
                let width = column.map_or(0, |column| column.width);
                TableCell::styled(without_end(heading, width), style::HEADING)
            };
            let headings: Vec<TableCell> = self.headings.iter().zip(&columns).map(heading).collect();
            self.render_line(text, &headings, &columns);
        }
        for row in &self.rows {
            for line in lines_of(row, &columns, width.is_bounded) {
                self.render_line(text, &line, &columns);
            }
        }
    }

    /// Returns the columns, as wide as they are shown; `None` for one that is left out.
    fn columns(&self, width: PageWidth) -> Vec<Option<TableColumn>> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0).max(self.headings.len());
        let mut columns: Vec<Option<TableColumn>> = (0..count).map(|column| self.column(column)).collect();
        narrow(&mut columns, width.columns, width.is_bounded);
        columns
    }

    /// Returns a column as wide as its widest cell; `None` if it is left out.
    fn column(&self, column: usize) -> Option<TableColumn> {
        let cells = || self.rows.iter().filter_map(|row| row.get(column));
        let widest = cells().map(TableCell::width).max().unwrap_or(0);
        if widest == 0 && self.hidden.contains(&column) {
            return None;
        }
        let heading = self.headings.get(column).map_or(0, |heading| heading.chars().count());
        let narrowing = match column {
            column if self.wrapped.contains(&column) => Narrowing::Wrap,
            column if self.shortened.contains(&column) || cells().any(|cell| cell.is_name) => {
                Narrowing::Middle
            }
            column if self.right.contains(&column) => Narrowing::Last,
            _ => Narrowing::End,
        };
        let word = |cell: &TableCell| cell.text.split(' ').map(|word| word.chars().count()).max();
        let word = cells().filter_map(word).max().unwrap_or(0).max(heading);
        Some(TableColumn { width: widest.max(heading), word, narrowing })
    }

    fn render_line(&self, text: &mut String, cells: &[TableCell], columns: &[Option<TableColumn>]) {
        let mut blanks = 0;
        let shown = cells.iter().zip(columns).enumerate();
        for (column, cell, TableColumn { width, .. }) in
            shown.filter_map(|(index, (cell, column))| Some((index, cell, (*column)?)))
        {
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

/// Returns what becomes of words that do not fit a wrapped column: in a narrow one the parts of a broken name would fill lines and
/// lines.
fn long_word(width: usize, is_bounded: bool) -> LongWord {
    match width {
        _ if !is_bounded => LongWord::Keep,
        0..BROKEN_MIN => LongWord::Shorten,
        _ => LongWord::Break,
    }
}

/// Returns the lines of a row: more than one if a text is wrapped.
fn lines_of(row: &[TableCell], columns: &[Option<TableColumn>], is_bounded: bool) -> Vec<Vec<TableCell>> {
    let fitted = |(cell, column): (&TableCell, &Option<TableColumn>)| match column {
        Some(column) if cell.width() > column.width => match column.narrowing {
            Narrowing::Wrap => lines_of_words(&cell.text, column.width, long_word(column.width, is_bounded)),
            Narrowing::Middle => vec![without_middle(&cell.text, column.width)],
            Narrowing::End | Narrowing::Last => vec![without_end(&cell.text, column.width)],
        },
        _ => vec![cell.text.clone()],
    };
    let texts: Vec<Vec<String>> = row.iter().zip(columns).map(fitted).collect();
    let count = texts.iter().map(Vec::len).max().unwrap_or(0);
    let line = |line: usize| {
        let cells = row.iter().zip(&texts);
        let text = |texts: &Vec<String>| texts.get(line).cloned().unwrap_or_default();
        cells.map(|(cell, texts)| TableCell { text: text(texts), ..cell.clone() }).collect()
    };
    (0..count).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(table: &TextTable, width: usize) -> String {
        let mut text = String::new();
        table.render(&mut text, PageWidth { columns: width, is_bounded: true });
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

    const NAME: &str = "customer-0123456789-project-blue-key-000000042";

    /// A table of which nothing was declared but its numbers.
    fn any_table() -> TextTable {
        let mut table = TextTable::new(["ENTITY", "RESOURCE", "LIMIT", "AVAILABLE", "OF", "FULL", "NOTE"]);
        table = table.right(3).right(4);
        let amount = || TableCell::from("1,234,567.123456 USD");
        let note = TableCell::from("a note of several words, the last of which is long");
        table.row([TableCell::name(NAME), NAME.into(), NAME.into(), amount(), amount(), NAME.into(), note]);
        table
    }

    #[test]
    fn no_table_is_wider_than_its_page() {
        let wrapped = || [0, 2, 6].into_iter().fold(any_table(), TextTable::wrap);
        for table in [any_table(), wrapped(), any_table().shorten(1).shorten(5)] {
            for width in 40..300 {
                let text = rendered(&table, width);
                let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
                assert!(widest <= width, "{widest} of {width} columns\n{text}");
            }
        }
    }

    #[test]
    fn a_page_that_programs_may_read_has_every_name_as_it_is() {
        let mut text = String::new();
        any_table().wrap(2).wrap(6).render(&mut text, PageWidth { columns: 80, is_bounded: false });
        let text = anstream::adapter::strip_str(&text).to_string();
        assert_eq!(text.matches(NAME).count(), 4, "{text}");
        assert!(text.lines().count() > 2, "text is wrapped: {text}");
    }

    #[test]
    fn two_columns_can_be_wrapped() {
        let mut table = TextTable::new(["ONE", "TWO"]).wrap(0).wrap(1);
        table.row(["one two three four".into(), "five six seven eight nine".into()]);
        let expected = "ONE             TWO\none two three   five six seven\nfour            eight nine\n";
        assert_eq!(rendered(&table, 30), expected);
    }
}
