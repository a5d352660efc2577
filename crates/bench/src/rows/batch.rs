//! Batches.

use super::BenchRow;
use crate::batches;
use crate::comparison::Contest;
use crate::footprint::{Allocator, Footprint};
use crate::meter::TimeKind;
use crate::options::Effort;
use crate::result::Threshold;
use crate::single::{Solo, SoloValue};
use crate::subject::Peer;
use anyhow::Result;

pub(crate) fn rows() -> Vec<BenchRow> {
    vec![
        makespan("batch/makespan-10-a-second-burst-10", batches::burst_10, 1.05),
        makespan("batch/makespan-10-a-second-burst-600", batches::burst_600, 1.05),
        makespan("batch/makespan-halves", batches::halves, 1.08),
        makespan("batch/makespan-tokens", batches::tokens, 1.1),
        BenchRow::Solo(Solo {
            name: "batch/refused-with-headers",
            unit: "%",
            read: batches::refused_with_headers,
            bar: Some(Threshold::ValueAtMost(1.0)),
        }),
        BenchRow::Contest(Contest {
            name: "batch/no-op-item",
            meter: TimeKind::ThreadCpu,
            ours: Some(batches::no_op),
            peer: Some(Peer { name: batches::TOKIO_QUEUE, side: batches::tokio_queue }),
            bar: Some(Threshold::ValueAtMost(5_000.0)),
            crowd: 10_000,
        }),
        BenchRow::Contest(Contest {
            name: "batch/item-a-tenth-refused",
            meter: TimeKind::ThreadCpu,
            ours: Some(batches::tenth_refused),
            peer: Some(Peer { name: batches::NONE_REFUSED, side: batches::none_refused }),
            bar: None,
            crowd: 10_000,
        }),
        BenchRow::Footprint(Footprint {
            name: "batch/bytes-per-queued-item",
            ours: Some(batches::queued),
            peer: None,
            keys: Some(200_000),
            allocator: Allocator::AsIs,
            bar: Some(Threshold::ValueAtMost(1_024.0)),
        }),
        BenchRow::Solo(Solo {
            name: "batch/memory-of-1m-items",
            unit: "KiB",
            read: batches::streamed,
            bar: Some(Threshold::ValueAtMost(1_024.0)),
        }),
    ]
}

fn makespan(name: &'static str, read: fn(&Effort) -> Result<SoloValue>, most: f64) -> BenchRow {
    BenchRow::Solo(Solo { name, unit: "x", read, bar: Some(Threshold::ValueAtMost(most)) })
}
