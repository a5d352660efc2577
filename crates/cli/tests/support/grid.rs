//! What a terminal shows after a stream of text and the few escape sequences that a progress bar uses.

/// Rows of a terminal that only grows.
pub struct Grid {
    columns: usize,
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// The frames: the rows each time the cursor moved up to redraw them.
    pub frames: Vec<Vec<String>>,
}

impl Grid {
    pub fn of(columns: usize, text: &str) -> Grid {
        let mut grid = Grid { columns, rows: vec![Vec::new()], row: 0, column: 0, frames: Vec::new() };
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                '\r' => grid.column = 0,
                '\n' => grid.down(1),
                '\u{1b}' => rest = grid.escape(rest),
                c => grid.print(c),
            }
        }
        grid
    }

    /// Returns the current rows without trailing spaces.
    pub fn lines(&self) -> Vec<String> {
        let line = |row: &Vec<char>| row.iter().collect::<String>().trim_end().to_owned();
        self.rows.iter().map(line).collect()
    }

    fn print(&mut self, c: char) {
        // The cursor stays behind the last column until something is printed there.
        if self.column == self.columns {
            self.column = 0;
            self.down(1);
        }
        let row = &mut self.rows[self.row];
        row.resize(row.len().max(self.column + 1), ' ');
        row[self.column] = c;
        self.column += 1;
    }

    /// Erases the rest of the line. Behind the last column the cursor is still on it, as on real terminals.
    fn erase(&mut self) {
        self.rows[self.row].truncate(self.column.min(self.columns - 1));
    }

    fn down(&mut self, by: usize) {
        self.row += by;
        self.rows.resize(self.rows.len().max(self.row + 1), Vec::new());
    }

    /// Obeys the sequence that the text begins with, and returns what follows it.
    fn escape<'a>(&mut self, text: &'a str) -> &'a str {
        let text = text.strip_prefix('[').expect("only control sequences are used");
        let end = text.find(|c: char| c.is_ascii_alphabetic()).expect("a sequence has an end");
        let count: usize = text[..end].parse().unwrap_or(1);
        match &text[end..=end] {
            "A" => {
                self.frames.push(self.lines());
                self.row = self.row.saturating_sub(count);
            }
            "B" => self.down(count),
            "H" => (self.row, self.column) = (0, 0),
            "K" if &text[..end] == "2" => self.rows[self.row].clear(),
            "K" => self.erase(),
            "J" => {
                self.erase();
                self.rows[self.row + 1..].iter_mut().for_each(Vec::clear);
            }
            // Colours, and modes that change no text.
            "m" | "h" | "l" => {}
            other => panic!("an unexpected sequence ends with {other}"),
        }
        &text[end + 1..]
    }
}
