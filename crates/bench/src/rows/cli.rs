//! The command, as a process.

use super::Row;
use crate::command;
use crate::finding::Bar;
use crate::refused_calls;
use crate::solo::Solo;
use crate::viewing;

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::Solo(Solo {
            name: "cli/entity-show-100k",
            unit: "ms",
            read: command::entity_show,
            bar: Some(Bar::ValueAtMost(50.0)),
        }),
        Row::Solo(Solo {
            name: "cli/top-1M-file",
            unit: "s",
            read: viewing::top_of_file,
            bar: Some(Bar::ValueAtMost(2.0)),
        }),
        Row::Solo(Solo {
            name: "cli/top-1M-shm",
            unit: "s",
            read: viewing::top_of_shm,
            bar: Some(Bar::ValueAtMost(2.0)),
        }),
        Row::Solo(Solo {
            name: "cli/simulate-1M",
            unit: "s",
            read: command::simulate,
            bar: Some(Bar::ValueAtMost(3.0)),
        }),
        Row::Solo(Solo {
            name: "cli/batch-a-tenth-refused",
            unit: "x",
            read: refused_calls::tenth_refused,
            bar: Some(Bar::ValueAtMost(1.0)),
        }),
    ]
}
