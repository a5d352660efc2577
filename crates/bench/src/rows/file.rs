//! The embedded file.

use super::Row;
use crate::contest::{Contest, FEW};
use crate::files;
use crate::finding::Bar;
use crate::meter::Meter;
use crate::side::Peer;

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::Contest(Contest {
            name: "file/acquire-normal-1-caller",
            meter: Meter::Wall,
            ours: Some(files::one_caller),
            peer: Some(Peer { name: files::SQLITE, side: files::bare_transaction }),
            bar: Some(Bar::CostAtMost(2.0)),
            crowd: FEW,
        }),
        Row::Contest(Contest {
            name: "file/acquire-full-64-callers",
            meter: Meter::Wall,
            ours: Some(files::many_callers),
            peer: Some(Peer { name: files::FDATASYNC, side: files::raw_sync }),
            bar: Some(Bar::GainAtLeast(10.0)),
            crowd: files::CALLERS * 100,
        }),
    ]
}
