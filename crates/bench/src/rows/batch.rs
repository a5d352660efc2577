//! Batches.

use super::Row;
use crate::batches;
use crate::contest::Contest;
use crate::finding::Bar;
use crate::footprint::{Allocator, Footprint};
use crate::meter::Meter;
use crate::options::Effort;
use crate::side::Peer;
use crate::solo::{Reading, Solo};
use anyhow::Result;

pub(crate) fn rows() -> Vec<Row> {
    vec![
        makespan("batch/makespan-10-a-second-burst-10", batches::burst_10, 1.05),
        makespan("batch/makespan-10-a-second-burst-600", batches::burst_600, 1.05),
        makespan("batch/makespan-halves", batches::halves, 1.08),
        makespan("batch/makespan-tokens", batches::tokens, 1.1),
        Row::Solo(Solo {
            name: "batch/refused-with-headers",
            unit: "%",
            read: batches::refused_with_headers,
            bar: Some(Bar::ValueAtMost(1.0)),
        }),
        Row::Contest(Contest {
            name: "batch/no-op-item",
            meter: Meter::ThreadCpu,
            ours: Some(batches::no_op),
            peer: Some(Peer { name: batches::TOKIO_QUEUE, side: batches::tokio_queue }),
            bar: Some(Bar::ValueAtMost(5_000.0)),
            crowd: 10_000,
        }),
        Row::Contest(Contest {
            name: "batch/item-a-tenth-refused",
            meter: Meter::ThreadCpu,
            ours: Some(batches::tenth_refused),
            peer: Some(Peer { name: batches::NONE_REFUSED, side: batches::none_refused }),
            bar: None,
            crowd: 10_000,
        }),
        Row::Footprint(Footprint {
            name: "batch/bytes-per-queued-item",
            ours: Some(batches::queued),
            peer: None,
            keys: Some(200_000),
            allocator: Allocator::AsIs,
            bar: Some(Bar::ValueAtMost(1_024.0)),
        }),
        Row::Solo(Solo {
            name: "batch/memory-of-1m-items",
            unit: "KiB",
            read: batches::streamed,
            bar: Some(Bar::ValueAtMost(1_024.0)),
        }),
    ]
}

fn makespan(name: &'static str, read: fn(&Effort) -> Result<Reading>, most: f64) -> Row {
    Row::Solo(Solo { name, unit: "x", read, bar: Some(Bar::ValueAtMost(most)) })
}
