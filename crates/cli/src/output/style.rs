//! Colours that can be read on a dark and on a light terminal: no yellow, no white, nothing on a background.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};
use clap::builder::Styles;

/// What stands above something else.
pub(crate) const HEADING: Style = Style::new().bold();

/// Lines that only guide the eye. Nothing that is to be read: on many terminals it cannot be.
pub(crate) const FAINT: Style = Style::new().dimmed();

/// What is as it should be.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();

/// What is not.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// What wants a look.
pub(crate) const WARN: Style = AnsiColor::Magenta.on_default();

/// Who and what: entities, resources, namespaces.
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();

/// How help and errors about the command line look. Those of clap mark what is wrong in yellow.
pub(crate) const OF_CLAP: Styles = Styles::styled().invalid(WARN.bold());

/// The text in a style.
pub(crate) fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// A text as it may be shown on stdout, for those who write over it: a stream that strips colours would strip the way up,
/// too.
pub(crate) fn seen(text: &str) -> String {
    match anstream::AutoStream::choice(&std::io::stdout()) {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(text).to_string(),
        _ => text.into(),
    }
}
