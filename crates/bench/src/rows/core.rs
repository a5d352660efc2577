//! The hot paths in memory, what keys take, and what waiting takes.

use super::Row;
use crate::contest::{Contest, FEW};
use crate::finding::Bar;
use crate::footprint::{Allocator, Fill, Footprint};
use crate::idle;
use crate::instructions::Instructions;
use crate::meter::Meter;
use crate::ours;
use crate::peers::{governor, limitador};
use crate::side::{Build, Peer};
use crate::slow_down::SlowDown;
use crate::solo::Solo;
use crate::wake;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = single_bucket();
    rows.extend(many_keys());
    rows.extend(memory());
    rows.extend(waiting());
    rows.extend(counts());
    rows
}

fn single_bucket() -> Vec<Row> {
    vec![
        Row::Contest(Contest {
            name: "core/try_acquire-1-limit",
            meter: Meter::ThreadCpu,
            ours: Some(ours::one_limit),
            peer: governor(governor::one_limit),
            bar: Some(Bar::CostAtMost(2.0)),
            crowd: FEW,
        }),
        Row::Contest(Contest {
            name: "core/acquire-settle-3-limits",
            meter: Meter::ThreadCpu,
            ours: Some(ours::three_limits_settled),
            peer: governor(governor::three_limits_in_a_row),
            bar: Some(Bar::CostAtMost(2.0)),
            crowd: FEW,
        }),
        Row::Contest(Contest {
            name: "core/chain-3x3",
            meter: Meter::ThreadCpu,
            ours: Some(ours::chain_of_three),
            peer: governor(governor::three_limits_in_a_row),
            bar: Some(Bar::CostAtMost(3.0)),
            crowd: FEW,
        }),
        Row::Contest(Contest {
            name: "core/check-3-limits-vs-limitador",
            meter: Meter::ThreadCpu,
            ours: Some(ours::three_limits),
            peer: limitador(limitador::three_limits),
            bar: Some(Bar::GainAtLeast(8.0)),
            crowd: FEW,
        }),
        Row::Contest(Contest {
            name: "core/acquire-settle-3-limits-vs-limitador",
            meter: Meter::ThreadCpu,
            ours: Some(ours::three_limits_settled),
            peer: limitador(limitador::reserve_and_commit_three_limits),
            bar: Some(Bar::GainAtLeast(50.0)),
            crowd: FEW,
        }),
    ]
}

fn many_keys() -> Vec<Row> {
    vec![
        Row::Contest(Contest {
            name: "core/keyed-hot",
            meter: Meter::ThreadCpu,
            ours: Some(ours::one_hot_key),
            peer: governor(governor::one_hot_key),
            bar: None,
            crowd: FEW,
        }),
        Row::Contest(Contest {
            name: "core/keyed-1M-random",
            meter: Meter::ThreadCpu,
            ours: Some(ours::million_keys),
            peer: governor(governor::million_keys),
            bar: Some(Bar::CostAtMost(1.5)),
            crowd: FEW,
        }),
        Row::SlowDown(SlowDown {
            name: "core/two-threads-slow-down",
            ours: ours::one_shared_key,
            peer: Peer { name: governor::NAME, side: governor::one_shared_key },
            bar: Some(Bar::CostAtMost(1.5)),
        }),
    ]
}

fn memory() -> Vec<Row> {
    vec![
        Row::Footprint(Footprint {
            name: "core/bytes-per-idle-key",
            ours: Some(ours::fill),
            peer: Some(Peer { name: governor::NAME, side: governor::fill as Fill }),
            keys: None,
            allocator: Allocator::AsIs,
            bar: Some(Bar::ValueAtMost(128.0)),
        }),
        Row::Footprint(Footprint {
            name: "core/bytes-after-sweep",
            ours: Some(ours::fill_and_sweep),
            peer: None,
            keys: None,
            allocator: Allocator::AsIs,
            bar: None,
        }),
        Row::Footprint(Footprint {
            name: "core/bytes-after-sweep-no-tcache",
            ours: Some(ours::fill_and_sweep),
            peer: None,
            keys: None,
            allocator: Allocator::NoThreadCache,
            bar: Some(Bar::ValueAtMost(8.0)),
        }),
    ]
}

fn waiting() -> Vec<Row> {
    vec![
        Row::Solo(Solo { name: "core/wake-thread", unit: "us", read: wake::thread, bar: None }),
        Row::Solo(Solo { name: "core/wake-task", unit: "us", read: wake::task, bar: None }),
        Row::Solo(Solo {
            name: "core/idle-waiters-cpu",
            unit: "ms",
            read: idle::waiters_cpu,
            bar: Some(Bar::ValueAtMost(10.0)),
        }),
    ]
}

fn counts() -> Vec<Row> {
    vec![
        Row::Instructions(Instructions {
            name: "core/instructions/try_acquire-1-limit",
            of: "core/try_acquire-1-limit",
            bar: None,
        }),
        Row::Instructions(Instructions {
            name: "core/instructions/chain-3x3",
            of: "core/chain-3x3",
            bar: None,
        }),
        Row::Instructions(Instructions {
            name: "core/instructions/keyed-hot",
            of: "core/keyed-hot",
            bar: None,
        }),
        Row::Instructions(Instructions {
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
