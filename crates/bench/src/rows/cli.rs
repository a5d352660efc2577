//! The command, as a process.

use super::BenchRow;
use crate::command;
use crate::refused_calls;
use crate::result::Threshold;
use crate::single::Solo;
use crate::viewing;

pub(crate) fn rows() -> Vec<BenchRow> {
    vec![
        BenchRow::Solo(Solo {
            name: "cli/entity-show-100k",
            unit: "ms",
            read: command::entity_show,
            bar: Some(Threshold::ValueAtMost(50.0)),
        }),
        BenchRow::Solo(Solo {
            name: "cli/top-1M-file",
            unit: "s",
            read: viewing::top_of_file,
            bar: Some(Threshold::ValueAtMost(2.0)),
        }),
        BenchRow::Solo(Solo {
            name: "cli/top-1M-shm",
            unit: "s",
            read: viewing::top_of_shm,
            bar: Some(Threshold::ValueAtMost(2.0)),
        }),
        BenchRow::Solo(Solo {
            name: "cli/simulate-1M",
            unit: "s",
            read: command::simulate,
            bar: Some(Threshold::ValueAtMost(3.0)),
        }),
        BenchRow::Solo(Solo {
            name: "cli/batch-a-tenth-refused",
            unit: "x",
            read: refused_calls::tenth_refused,
            bar: Some(Threshold::ValueAtMost(1.0)),
        }),
    ]
}
