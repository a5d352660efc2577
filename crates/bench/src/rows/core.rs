//! The hot paths in memory, the memory of keys, and the cost of waiting.

use super::BenchRow;
use crate::comparison::{Contest, FEW};
use crate::footprint::{Allocator, Fill, Footprint};
use crate::idle;
use crate::instructions::Instructions;
use crate::meter::TimeKind;
use crate::peers::{governor, limitador};
use crate::result::Threshold;
use crate::single::Solo;
use crate::slow_down::SlowDown;
use crate::subject::{Build, Peer};
use crate::subjects;
use crate::wake;

pub(crate) fn rows() -> Vec<BenchRow> {
    let mut rows = single_bucket();
    rows.extend(many_keys());
    rows.extend(memory());
    rows.extend(waiting());
    rows.extend(counts());
    rows
}

fn single_bucket() -> Vec<BenchRow> {
    vec![
        BenchRow::Contest(Contest {
            name: "core/try_acquire-1-limit",
            meter: TimeKind::ThreadCpu,
            ours: Some(subjects::one_limit),
            peer: governor(governor::one_limit),
            bar: Some(Threshold::CostAtMost(1.6)),
            crowd: FEW,
        }),
        BenchRow::Contest(Contest {
            name: "core/acquire-settle-3-limits",
            meter: TimeKind::ThreadCpu,
            ours: Some(subjects::three_limits_settled),
            peer: governor(governor::three_limits_in_a_row),
            bar: Some(Threshold::CostAtMost(1.6)),
            crowd: FEW,
        }),
        BenchRow::Contest(Contest {
            name: "core/chain-3x3",
            meter: TimeKind::ThreadCpu,
            ours: Some(subjects::chain_of_three),
            peer: governor(governor::three_limits_in_a_row),
            bar: Some(Threshold::CostAtMost(3.0)),
            crowd: FEW,
        }),
        BenchRow::Contest(Contest {
            name: "core/check-3-limits-vs-limitador",
            meter: TimeKind::ThreadCpu,
            ours: Some(subjects::three_limits),
            peer: limitador(limitador::three_limits),
            bar: Some(Threshold::GainAtLeast(8.0)),
            crowd: FEW,
        }),
        BenchRow::Contest(Contest {
            name: "core/acquire-settle-3-limits-vs-limitador",
            meter: TimeKind::ThreadCpu,
            ours: Some(subjects::three_limits_settled),
            peer: limitador(limitador::reserve_and_commit_three_limits),
            bar: Some(Threshold::GainAtLeast(50.0)),
            crowd: FEW,
        }),
    ]
}

fn many_keys() -> Vec<BenchRow> {
    vec![
        BenchRow::Contest(Contest {
            name: "core/keyed-hot",
            meter: TimeKind::ThreadCpu,
            ours: Some(subjects::one_hot_key),
            peer: governor(governor::one_hot_key),
            bar: None,
            crowd: FEW,
        }),
        BenchRow::Contest(Contest {
            name: "core/keyed-1M-random",
            meter: TimeKind::ThreadCpu,
            ours: Some(subjects::million_keys),
            peer: governor(governor::million_keys),
            bar: Some(Threshold::CostAtMost(1.5)),
            crowd: FEW,
        }),
        BenchRow::SlowDown(SlowDown {
            name: "core/two-threads-slow-down",
            ours: subjects::one_shared_key,
            peer: Peer { name: governor::NAME, side: governor::one_shared_key },
            bar: Some(Threshold::CostAtMost(1.5)),
        }),
    ]
}

fn memory() -> Vec<BenchRow> {
    vec![
        BenchRow::Footprint(Footprint {
            name: "core/bytes-per-idle-key",
            ours: Some(subjects::fill),
            peer: Some(Peer { name: governor::NAME, side: governor::fill as Fill }),
            keys: None,
            allocator: Allocator::AsIs,
            bar: Some(Threshold::ValueAtMost(128.0)),
        }),
        BenchRow::Footprint(Footprint {
            name: "core/bytes-after-sweep",
            ours: Some(subjects::fill_and_sweep),
            peer: None,
            keys: None,
            allocator: Allocator::AsIs,
            bar: None,
        }),
        BenchRow::Footprint(Footprint {
            name: "core/bytes-after-sweep-no-tcache",
            ours: Some(subjects::fill_and_sweep),
            peer: None,
            keys: None,
            allocator: Allocator::NoThreadCache,
            bar: Some(Threshold::ValueAtMost(8.0)),
        }),
    ]
}

fn waiting() -> Vec<BenchRow> {
    vec![
        BenchRow::Solo(Solo { name: "core/wake-thread", unit: "us", read: wake::thread, bar: None }),
        BenchRow::Solo(Solo { name: "core/wake-task", unit: "us", read: wake::task, bar: None }),
        BenchRow::Solo(Solo {
            name: "core/idle-waiters-cpu",
            unit: "ms",
            read: idle::waiters_cpu,
            bar: Some(Threshold::ValueAtMost(10.0)),
        }),
    ]
}

fn counts() -> Vec<BenchRow> {
    vec![
        BenchRow::Instructions(Instructions {
            name: "core/instructions/try_acquire-1-limit",
            of: "core/try_acquire-1-limit",
            bar: None,
        }),
        BenchRow::Instructions(Instructions {
            name: "core/instructions/chain-3x3",
            of: "core/chain-3x3",
            bar: None,
        }),
        BenchRow::Instructions(Instructions {
            name: "core/instructions/keyed-hot",
            of: "core/keyed-hot",
            bar: None,
        }),
        BenchRow::Instructions(Instructions {
            name: "core/instructions/acquire-settle-3-limits",
            of: "core/acquire-settle-3-limits",
            bar: None,
        }),
    ]
}

fn governor(side: Build) -> Option<Peer<Build>> {
    Some(Peer { name: governor::NAME, side })
}

fn limitador(side: Build) -> Option<Peer<Build>> {
    Some(Peer { name: limitador::NAME, side })
}
