//! The limiter on memory.

use super::BenchRow;
use crate::comparison::{Contest, FEW};
use crate::entities;
use crate::footprint::{Allocator, Footprint};
use crate::instructions::Instructions;
use crate::meter::TimeKind;
use crate::result::Threshold;
use crate::subject::Peer;

pub(crate) fn rows() -> Vec<BenchRow> {
    vec![
        BenchRow::Contest(Contest {
            name: "limiter/acquire-settle-2-limits",
            meter: TimeKind::ThreadCpu,
            ours: Some(entities::hot_entity),
            peer: Some(Peer { name: entities::LIMIT_SET, side: entities::hot_set }),
            bar: Some(Threshold::CostAtMost(2.0)),
            crowd: FEW,
        }),
        BenchRow::Contest(Contest {
            name: "limiter/acquire-settle-with-parent",
            meter: TimeKind::ThreadCpu,
            ours: Some(entities::hot_child),
            peer: Some(Peer { name: entities::LIMIT_SET, side: entities::hot_set }),
            bar: Some(Threshold::CostAtMost(4.0)),
            crowd: FEW,
        }),
        BenchRow::Contest(Contest {
            name: "limiter/resolve-beside-1M-entities",
            meter: TimeKind::ThreadCpu,
            ours: Some(entities::resolve_beside_a_million),
            peer: Some(Peer { name: entities::FEW, side: entities::resolve_beside_a_thousand }),
            bar: Some(Threshold::CostAtMost(1.5)),
            crowd: FEW,
        }),
        BenchRow::Footprint(Footprint {
            name: "limiter/bytes-per-entity",
            ours: Some(entities::fill),
            peer: None,
            keys: Some(1_000_000),
            allocator: Allocator::AsIs,
            bar: Some(Threshold::ValueAtMost(260.0)),
        }),
        BenchRow::Instructions(Instructions {
            name: "limiter/instructions/acquire-settle-2-limits",
            of: "limiter/acquire-settle-2-limits",
            bar: None,
        }),
    ]
}
