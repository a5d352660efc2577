//! Memory that processes share.

use super::BenchRow;
use crate::comparison::{Contest, FEW};
use crate::entities;
use crate::many_buckets;
use crate::meter::TimeKind;
use crate::processes;
use crate::result::Threshold;
use crate::single::Solo;
use crate::subject::Peer;
use crate::subjects;

pub(crate) fn rows() -> Vec<BenchRow> {
    vec![
        BenchRow::Contest(Contest {
            name: "shm/acquire-settle-3-limits",
            meter: TimeKind::ThreadCpu,
            ours: Some(processes::one_process),
            peer: Some(Peer { name: processes::MEMORY, side: processes::own_memory }),
            bar: Some(Threshold::CostAtMost(8.0)),
            crowd: FEW,
        }),
        BenchRow::Contest(Contest {
            name: "shm/acquire-settle-3-limits-vs-set",
            meter: TimeKind::ThreadCpu,
            ours: Some(processes::one_process),
            peer: Some(Peer { name: entities::LIMIT_SET, side: subjects::three_limits_settled }),
            bar: None,
            crowd: FEW,
        }),
        BenchRow::Solo(Solo {
            name: "shm/4-processes-one-bucket",
            unit: "ns",
            read: processes::four_processes,
            // 500,000 operations a second.
            bar: Some(Threshold::ValueAtMost(2_000.0)),
        }),
        BenchRow::Solo(Solo {
            name: "shm/bytes-per-bucket-of-a-million",
            unit: "B",
            read: many_buckets::million,
            // So that a million fit into the gigabyte that a store may grow to.
            bar: Some(Threshold::ValueAtMost(1_000.0)),
        }),
        BenchRow::Solo(Solo { name: "shm/release-to-wake-up", unit: "us", read: processes::wake, bar: None }),
    ]
}
