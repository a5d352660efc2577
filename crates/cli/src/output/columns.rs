//! Widths of the columns of a table, so that it is no wider than its page.

/// The gap between two columns.
pub(super) const GAP: usize = 2;

/// The minimum width of a wrapped column.
const WRAPPED_MIN: usize = 12;

/// The minimum width of a column whose texts are shortened, as long as another column can give way.
const SHORTENED_MIN: usize = 8;

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableColumn {
    /// Its width.
    pub(super) width: usize,
    /// The width of its longest word.
    pub(super) word: usize,
    /// How it gives way.
    pub(super) narrowing: Narrowing,
}

/// How a column gives way if its table is too wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Narrowing {
    /// Its texts are broken into lines.
    Wrap,
    /// The middle of its texts is left out: both ends tell names apart.
    Middle,
    /// The ends of its texts are left out.
    End,
    /// As [`End`](Narrowing::End), but only if nothing else is left to give way, because its texts are numbers.
    Last,
}

/// Makes columns narrower until they fit `width`: the widest first, so that each keeps as much as possible. Only wrapped
/// columns give way unless names may be shortened.
pub(super) fn narrow(columns: &mut [Option<TableColumn>], width: usize, may_shorten: bool) {
    let gaps = GAP * columns.iter().flatten().count().saturating_sub(1);
    let room = width.saturating_sub(gaps);
    let between_words =
        |column: &TableColumn| (column.narrowing == Narrowing::Wrap).then(|| column.word.max(WRAPPED_MIN));
    shrink(columns, room, between_words);
    if !may_shorten {
        return;
    }
    let names = |column: &TableColumn| match column.narrowing {
        Narrowing::Wrap => Some(WRAPPED_MIN),
        Narrowing::Middle => Some(SHORTENED_MIN),
        Narrowing::End | Narrowing::Last => None,
    };
    shrink(columns, room, names);
    let texts = |column: &TableColumn| match column.narrowing {
        Narrowing::End => Some(SHORTENED_MIN),
        _ => names(column),
    };
    shrink(columns, room, texts);
    shrink(columns, room, |column| (column.narrowing != Narrowing::Last).then_some(SHORTENED_MIN / 2));
    shrink(columns, room, |_| Some(1));
}

/// Takes from the widest column until all of them fit; `floor` returns the width that a column keeps, if it gives way at all.
fn shrink(columns: &mut [Option<TableColumn>], room: usize, floor: impl Fn(&TableColumn) -> Option<usize>) {
    let sum: usize = columns.iter().flatten().map(|column| column.width).sum();
    for _ in room..sum {
        let giving = columns.iter_mut().flatten();
        let giving = giving.filter(|column| floor(column).is_some_and(|floor| column.width > floor));
        match giving.max_by_key(|column| column.width) {
            Some(widest) => widest.width -= 1,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrowed<const N: usize>(columns: [(usize, usize, Narrowing); N], width: usize) -> [usize; N] {
        let mut columns =
            columns.map(|(width, word, narrowing)| Some(TableColumn { width, word, narrowing }));
        narrow(&mut columns, width, true);
        columns.map(|column| column.map_or(0, |column| column.width))
    }

    #[test]
    fn text_is_wrapped_before_names_are_shortened_and_numbers_are_cut_last() {
        use Narrowing::{End, Last, Middle, Wrap};
        let columns = [(46, 46, Middle), (20, 20, End), (7, 7, Last), (60, 10, Wrap)];
        assert_eq!(narrowed(columns, 200), [46, 20, 7, 60]);
        assert_eq!(narrowed(columns, 120), [46, 20, 7, 41]);
        assert_eq!(narrowed(columns, 70), [25, 20, 7, 12]);
        assert_eq!(narrowed(columns, 50), [8, 17, 7, 12]);
        assert_eq!(narrowed(columns, 40), [8, 8, 7, 11]);
        assert_eq!(narrowed(columns, 20), [4, 4, 3, 3]);
    }

    #[test]
    fn a_long_word_takes_no_more_than_a_long_name() {
        use Narrowing::{Middle, Wrap};
        assert_eq!(narrowed([(46, 46, Middle), (60, 46, Wrap)], 62), [30, 30]);
    }
}
