//! The embedded file.

use super::BenchRow;
use crate::comparison::{Contest, FEW};
use crate::files;
use crate::meter::TimeKind;
use crate::result::Threshold;
use crate::subject::Peer;

pub(crate) fn rows() -> Vec<BenchRow> {
    vec![
        BenchRow::Contest(Contest {
            name: "file/acquire-normal-1-caller",
            meter: TimeKind::Wall,
            ours: Some(files::one_caller),
            peer: Some(Peer { name: files::SQLITE, side: files::bare_transaction }),
            bar: Some(Threshold::CostAtMost(2.0)),
            crowd: FEW,
        }),
        BenchRow::Contest(Contest {
            name: "file/acquire-full-64-callers",
            meter: TimeKind::Wall,
            ours: Some(files::many_callers),
            peer: Some(Peer { name: files::FDATASYNC, side: files::raw_sync }),
            bar: Some(Threshold::GainAtLeast(10.0)),
            crowd: files::CALLERS * 100,
        }),
    ]
}
