//! The keys of the live view, and what they have set: the order, the filter, the pause.

use crate::args::SortBy;
use crate::output::style::{self, paint};
use crate::output::{TableCell, TextPage, TextTable};

/// Ctrl-C and Ctrl-D, which the terminal does not turn into signals while the view is open.
const ENDS: [char; 3] = ['q', '\u{3}', '\u{4}'];

/// Esc, which cancels. It also begins the sequences of other keys, such as the arrows.
const ESCAPE: char = '\u{1b}';

/// The two keys that terminals send for backspace.
const BACKSPACES: [char; 2] = ['\u{7f}', '\u{8}'];

/// The order of rows, with its key and its label.
const ORDERS: [(SortBy, char, &str); 4] = [
    (SortBy::Calls, 'c', "calls"),
    (SortBy::Used, 'u', "used"),
    (SortBy::Left, 'l', "left"),
    (SortBy::Held, 'h', "held"),
];

/// What the user has set.
#[derive(Debug)]
pub(super) struct TopControls {
    pub(super) sort: SortBy,
    pub(super) filter: String,
    pub(super) is_paused: bool,
    pub(super) shows_help: bool,
    /// The filter as it is typed, until it is applied.
    typed: Option<String>,
}

/// What to do after keys were pressed. The last of several is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pressed {
    /// The keys mean nothing here.
    Nothing,
    /// Draw the same snapshot again.
    Redraw,
    /// Take another snapshot.
    Refresh,
    Quit,
}

impl TopControls {
    /// Creates the controls with the order and the filter of the command line.
    pub(super) fn new(sort: SortBy, filter: &str) -> TopControls {
        TopControls { sort, filter: filter.into(), is_paused: false, shows_help: false, typed: None }
    }

    /// Applies keys that were read together.
    pub(super) fn press(&mut self, keys: &str) -> Pressed {
        // Esc comes alone; a longer sequence is a key that has no meaning here.
        if keys.starts_with(ESCAPE) && keys.len() > 1 {
            return Pressed::Nothing;
        }
        keys.chars().map(|key| self.press_one(key)).max().unwrap_or(Pressed::Nothing)
    }

    fn press_one(&mut self, key: char) -> Pressed {
        if let Some(typed) = self.typed.take() {
            return self.type_filter(typed, key);
        }
        if ENDS.contains(&key) {
            return Pressed::Quit;
        }
        if std::mem::take(&mut self.shows_help) {
            return Pressed::Redraw;
        }
        match key {
            '?' => self.shows_help = true,
            '/' => self.typed = Some(self.filter.clone()),
            ESCAPE if !self.filter.is_empty() => return self.apply_filter(String::new()),
            'p' | ' ' => {
                self.is_paused = !self.is_paused;
                return self.refreshed();
            }
            key => match ORDERS.iter().find(|(_, order, _)| *order == key) {
                Some((sort, _, _)) => {
                    self.sort = *sort;
                    return self.refreshed();
                }
                None => return Pressed::Nothing,
            },
        }
        Pressed::Redraw
    }

    /// Returns what shows the effect of a key: another snapshot, unless the view is paused.
    fn refreshed(&self) -> Pressed {
        if self.is_paused { Pressed::Redraw } else { Pressed::Refresh }
    }

    fn type_filter(&mut self, mut typed: String, key: char) -> Pressed {
        match key {
            '\r' | '\n' => return self.apply_filter(typed),
            '\u{3}' | '\u{4}' => return Pressed::Quit,
            ESCAPE => return Pressed::Redraw,
            key if BACKSPACES.contains(&key) => drop(typed.pop()),
            key if key.is_control() => {}
            key => typed.push(key),
        }
        self.typed = Some(typed);
        Pressed::Redraw
    }

    /// Applies a filter. What it selects has to be read, so a paused view goes on.
    fn apply_filter(&mut self, filter: String) -> Pressed {
        self.filter = filter;
        self.is_paused = false;
        Pressed::Refresh
    }

    /// Formats the last line of the screen: the keys, or the filter that is typed.
    pub(super) fn footer(&self) -> String {
        let key = |key: &str, what: &str| format!("{} {what}", paint(style::HEADING, key));
        if let Some(typed) = &self.typed {
            let [enter, escape] = [key("Enter", "apply"), key("Esc", "cancel")];
            return format!("{enter}  {escape}  {} {typed}_", paint(style::HEADING, "filter:"));
        }
        let orders = ORDERS.map(|(sort, name, label)| {
            let label = if sort == self.sort { paint(style::GOOD, label) } else { label.into() };
            key(&name.to_string(), &label)
        });
        let pause = if self.is_paused { paint(style::WARN, "paused") } else { "pause".into() };
        let [quit, help, filter] = [key("q", "quit"), key("?", "help"), key("/", "filter")];
        format!("{quit}  {help}  {filter}  {}  sort: {}", key("p", &pause), orders.join("  "))
    }

    /// Adds what the headline says about the rows that are not shown, and about the pause.
    pub(super) fn remarks(&self) -> String {
        let filter = Some(&self.filter).filter(|filter| !filter.is_empty());
        let filter = filter.map(|filter| format!(", filter {filter:?}")).unwrap_or_default();
        let paused =
            if self.is_paused { format!(", {}", paint(style::WARN, "paused")) } else { String::new() };
        filter + &paused
    }
}

/// Writes the help: keys and columns.
pub(super) fn help(page: &mut TextPage) {
    const KEYS: [(&str, &str); 6] = [
        ("q, Ctrl-C", "quit"),
        ("c, u, l, h", "sort by calls, by the share used, by the amount left, by what is held"),
        ("/", "filter entities, resources and limit sets by a part of their name"),
        ("Esc", "remove the filter"),
        ("p, space", "pause, and go on"),
        ("?", "this help; any key closes it"),
    ];
    const COLUMNS: [(&str, &str); 7] = [
        ("THIS HOUR", "calls admitted since the last full hour; starts again at 0"),
        ("PER S", "calls admitted per second since the last refresh"),
        ("LIMIT", "the limit of which the smallest share is left"),
        ("LEFT", "what is left of it, and its capacity; below 0 it is in debt"),
        ("USED", "the share of it that is in use; highlighted from 80 %"),
        ("HELD", "concurrency that calls hold now, and its capacity"),
        ("WAITED", "how long a caller has waited; highlighted from one minute"),
    ];
    for (title, entries) in [("Keys", &KEYS[..]), ("Columns", &COLUMNS[..])] {
        page.heading(title);
        let mut table = TextTable::bare().wrap(1);
        for (name, meaning) in entries {
            table.row([TableCell::name(format!("  {name}")), TableCell::from(meaning)]);
        }
        page.table(&table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controls() -> TopControls {
        TopControls::new(SortBy::Calls, "")
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn each_order_has_a_key_and_the_footer_names_all_keys_in_80_columns() {
        for (sort, key, label) in ORDERS {
            let mut controls = controls();
            assert_eq!(controls.press(&key.to_string()), Pressed::Refresh);
            assert_eq!(controls.sort, sort);
            let footer = controls.footer();
            assert!(footer.contains(&paint(style::GOOD, label)), "{footer}");
            assert!(plain(&footer).chars().count() <= 80, "{footer}");
            for hint in ["q quit", "? help", "/ filter", "p pause", &format!("{key} {label}")] {
                assert!(plain(&footer).contains(hint), "{hint}: {footer}");
            }
        }
    }

    #[test]
    fn a_filter_is_typed_and_applied_or_cancelled() {
        let mut controls = controls();
        assert_eq!(controls.press("/"), Pressed::Redraw);
        assert_eq!(controls.press("gqp"), Pressed::Redraw, "q is a letter now");
        assert_eq!(controls.press("\u{7f}\u{8}pt"), Pressed::Redraw);
        assert!(plain(&controls.footer()).ends_with("filter: gpt_"), "{}", controls.footer());
        assert_eq!(controls.press("\r"), Pressed::Refresh);
        assert_eq!(
            (controls.filter.as_str(), plain(&controls.remarks())),
            ("gpt", ", filter \"gpt\"".into())
        );
        controls.press("/");
        assert_eq!((controls.press("x"), controls.press("\u{1b}")), (Pressed::Redraw, Pressed::Redraw));
        assert_eq!(controls.filter, "gpt", "cancelled");
        assert_eq!(controls.press("\u{1b}"), Pressed::Refresh);
        assert_eq!(controls.filter, "", "removed");
    }

    #[test]
    fn a_paused_view_draws_the_same_snapshot_in_another_order() {
        let mut controls = controls();
        assert_eq!((controls.press("p"), controls.is_paused), (Pressed::Redraw, true));
        assert_eq!(controls.press("l"), Pressed::Redraw);
        assert!(plain(&controls.remarks()).contains("paused"));
        assert_eq!((controls.press(" "), controls.is_paused), (Pressed::Refresh, false));
    }

    #[test]
    fn any_key_closes_the_help_and_keys_without_a_meaning_do_nothing() {
        let mut controls = controls();
        assert_eq!((controls.press("?"), controls.shows_help), (Pressed::Redraw, true));
        assert_eq!((controls.press("c"), controls.shows_help), (Pressed::Redraw, false));
        assert_eq!(controls.press("\u{1b}[A"), Pressed::Nothing, "an arrow");
        assert_eq!(controls.press("x"), Pressed::Nothing);
        controls.press("?");
        assert_eq!(controls.press("q"), Pressed::Quit);
    }

    #[test]
    fn the_help_fits_a_screen_of_80_columns() {
        let mut page = TextPage::new(80);
        help(&mut page);
        let text = plain(&page.finish().0);
        assert!(text.lines().count() < 24 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
