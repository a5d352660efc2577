//! Memory that processes share.

use super::Row;
use crate::contest::{Contest, FEW};
use crate::finding::Bar;
use crate::many_buckets;
use crate::meter::Meter;
use crate::processes;
use crate::side::Peer;
use crate::solo::Solo;

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::Contest(Contest {
            name: "shm/acquire-settle-3-limits",
            meter: Meter::ThreadCpu,
            ours: Some(processes::one_process),
            peer: Some(Peer { name: processes::MEMORY, side: processes::own_memory }),
            bar: Some(Bar::CostAtMost(8.0)),
            crowd: FEW,
        }),
        Row::Solo(Solo {
            name: "shm/4-processes-one-bucket",
            unit: "ns",
            read: processes::four_processes,
            // 500,000 operations a second.
            bar: Some(Bar::ValueAtMost(2_000.0)),
        }),
        Row::Solo(Solo {
            name: "shm/bytes-per-bucket-of-a-million",
            unit: "B",
            read: many_buckets::million,
            // So that a million fit into the gigabyte that a store may grow to.
            bar: Some(Bar::ValueAtMost(1_000.0)),
        }),
        Row::Solo(Solo { name: "shm/release-to-wake-up", unit: "us", read: processes::wake, bar: None }),
    ]
}
