//! The library's warnings, for Python's `logging`.

use std::fmt::{Debug, Write};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::observing;

/// The levels of `logging`.
const WARNING: u8 = 30;
const ERROR: u8 = 40;

/// Hands the warnings of the library to `logging`, from now on.
pub(crate) fn begin() {
    // A second import in the same process finds it in place.
    let _ = tracing::subscriber::set_global_default(LogWarnings);
}

struct LogWarnings;

impl Subscriber for LogWarnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("tollgate")
    }

    /// Anything less is not even put together, and lets the fast path of a set be as fast as without it.
    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = LogText::default();
        event.record(&mut text);
        let level = if *event.metadata().level() == Level::ERROR { ERROR } else { WARNING };
        let fields = if text.fields.is_empty() { String::new() } else { format!(" ({})", text.fields) };
        observing::log(level, text.message + &fields);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The text of a warning, and its fields.
#[derive(Default)]
struct LogText {
    message: String,
    fields: String,
}

impl Visit for LogText {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
            return;
        }
        let gap = if self.fields.is_empty() { "" } else { ", " };
        let _ = write!(self.fields, "{gap}{}={value:?}", field.name());
    }
}
