//! Events of a batch as JSON lines.

use std::io::{self, Write};
use std::time::Duration;

use serde_json::{Value, json};
use tollgate_batch::BatchEvent;
use tollgate_provider::Class;

use crate::output::escape_json;

/// Writes an event to stdout. A slow reader slows the batch down, and loses nothing.
pub(crate) fn write(event: &BatchEvent<'_>) {
    if let Some(value) = line(event) {
        // A reader that closed the pipe wants no more events; the results are in their file.
        let _ = writeln!(io::stdout().lock(), "{}", escape_json(value.to_string()));
    }
}

fn line(event: &BatchEvent<'_>) -> Option<Value> {
    Some(match event {
        BatchEvent::Replied { id, scope, class, took, reason } => json!({
            "event": "replied", "id": id, "account": scope, "class": class_name(*class), "took_ms": ms(*took),
            "reason": reason,
        }),
        BatchEvent::Parked { id, scope } => json!({ "event": "parked", "id": id, "account": scope }),
        BatchEvent::HandedOut { id, scope } => {
            json!({ "event": "redistributed", "id": id, "account": scope })
        }
        BatchEvent::CoolingDown { scope, generation, left, reason } => json!({
            "event": "cooling_down", "account": scope, "generation": generation, "left_ms": ms(*left),
            "reason": reason,
        }),
        BatchEvent::CooledDown { scope, generation, participants, paused } => json!({
            "event": "cooled_down", "account": scope, "generation": generation,
            "participants": participants, "paused_ms": ms(*paused),
        }),
        BatchEvent::Retrying { id, class, pause } => {
            json!({ "event": "retrying", "id": id, "class": class.name(), "pause_ms": ms(*pause) })
        }
        BatchEvent::Finished { id, failed, done } => {
            json!({ "event": "finished", "id": id, "done": done, "failed": failed.map(|class| class.name()) })
        }
        BatchEvent::Closed { scope, closed } => {
            json!({ "event": "closed", "account": scope, "reason": &*closed.reason })
        }
        BatchEvent::Skipped { id, reason, .. } => {
            json!({ "event": "skipped", "id": id, "reason": reason.name() })
        }
        _ => return None,
    })
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Ok => "ok",
        Class::Throttled => "throttled",
        Class::Exhausted { .. } => "exhausted",
        Class::Overloaded => "overloaded",
        Class::Transient => "transient",
        Class::Fatal(_) => "fatal",
        _ => "other",
    }
}
