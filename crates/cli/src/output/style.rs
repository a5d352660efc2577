//! Colours that are readable on dark and on light terminals: no yellow, no white, no background colours.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};
use clap::builder::Styles;

/// Headings.
pub(crate) const HEADING: Style = Style::new().bold();

/// Axes and rules. Not for text, which is unreadable in this style on many terminals.
pub(crate) const FAINT: Style = Style::new().dimmed();

/// Success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();

/// Errors, and limits that are used up.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// Warnings.
pub(crate) const WARN: Style = AnsiColor::Magenta.on_default();

/// Names of entities, resources, namespaces.
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();

/// The styles of clap, which marks invalid arguments in yellow by default.
pub(crate) const OF_CLAP: Styles = Styles::styled().invalid(WARN.bold());

/// Applies a style to a text.
pub(crate) fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Strips colours from a text if stdout has none, for screens that are redrawn: a stream that strips colours would strip
/// cursor movements, too.
pub(crate) fn seen(text: &str) -> String {
    match anstream::AutoStream::choice(&std::io::stdout()) {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(text).to_string(),
        _ => text.into(),
    }
}
