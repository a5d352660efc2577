use std::fmt::{Display, Write};

use super::style::{self, paint};
use super::wrap::wrapped;
use super::{TableCell, TextTable, escape_page};

/// A page of text output: lines, fields and tables of a given width.
pub(crate) struct TextPage {
    text: String,
    remark: Option<String>,
    width: usize,
}

impl TextPage {
    /// Creates an empty page.
    pub(crate) fn new(width: usize) -> TextPage {
        TextPage { text: String::new(), remark: None, width }
    }

    /// Returns the width in columns.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, line: impl Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}");
    }

    /// Adds a sentence, wrapped to the width.
    pub(crate) fn sentence(&mut self, sentence: impl Display) {
        self.line(wrapped(&sentence.to_string(), self.width));
    }

    /// Adds an empty line, unless the page is empty.
    pub(crate) fn gap(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// Adds a heading, with an empty line above it.
    pub(crate) fn heading(&mut self, heading: impl Display) {
        self.gap();
        self.line(paint(style::HEADING, heading));
    }

    /// Adds names with their values, one on each line.
    pub(crate) fn fields<'a>(&mut self, fields: impl IntoIterator<Item = (&'a str, TableCell)>) {
        let mut table = TextTable::bare().wrap(1);
        for (name, value) in fields {
            table.row([TableCell::styled(name, style::HEADING), value]);
        }
        self.table(&table);
    }

    /// Adds a table.
    pub(crate) fn table(&mut self, table: &TextTable) {
        table.render(&mut self.text, self.width);
    }

    /// Adds a table, or a line if the table is empty.
    pub(crate) fn table_or_line(&mut self, table: &TextTable, nothing: impl Display) {
        if table.is_empty() { self.line(nothing) } else { self.table(table) }
    }

    /// Adds a table that is the whole output. If it is empty, a notice goes to stderr, because it is not data.
    pub(crate) fn table_or(&mut self, table: &TextTable, nothing: impl Display) {
        if table.is_empty() { self.remark(nothing) } else { self.table(table) }
    }

    /// Sets the notice for stderr.
    pub(crate) fn remark(&mut self, remark: impl Display) {
        self.remark = Some(remark.to_string());
    }

    /// Returns the page and the notice for stderr.
    pub(crate) fn finish(self) -> (String, Option<String>) {
        (escape_page(&self.text), self.remark)
    }
}
