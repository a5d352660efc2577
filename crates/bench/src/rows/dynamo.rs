//! A table of DynamoDB.

use super::BenchRow;
use crate::comparison::{Contest, FEW};
use crate::meter::TimeKind;
use crate::result::Threshold;
use crate::single::Solo;
use crate::subject::Peer;
use crate::tables;

pub(crate) fn rows() -> Vec<BenchRow> {
    let solo = |name, unit, read, most| {
        BenchRow::Solo(Solo { name, unit, read, bar: Some(Threshold::ValueAtMost(most)) })
    };
    vec![
        BenchRow::Contest(Contest {
            name: "dynamo/acquire-cpu",
            meter: TimeKind::ThreadCpu,
            ours: Some(tables::acquire),
            peer: Some(Peer { name: tables::SDK, side: tables::bare_update }),
            bar: Some(Threshold::CostAtMost(1.25)),
            crowd: FEW,
        }),
        solo("dynamo/calls-acquire", "calls", tables::calls_of_acquire, 1.0),
        solo("dynamo/calls-cascade", "calls", tables::calls_of_cascade, 2.0),
        solo("dynamo/calls-ahead-1000-per-s", "calls/s", tables::calls_ahead, 20.0),
        solo("dynamo/hot-16-shards-unevenness", "%", tables::unevenness, 20.0),
    ]
}
