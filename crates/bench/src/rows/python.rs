//! The Python package.

use super::BenchRow;
use crate::python::PythonRow;
use crate::result::Threshold;

pub(crate) fn rows() -> Vec<BenchRow> {
    let contest = |name, peer, most| PythonRow {
        name,
        unit: "ns",
        peer: Some(peer),
        bar: Some(Threshold::CostAtMost(most)),
    };
    let rows = [
        contest("python/acquire", "ratelimit", 0.3),
        contest("python/acquire-settle", "limits, one limit", 0.25),
        contest("python/await-acquire", "aiolimiter", 0.4),
        contest("python/wake-one-by-one", "call_soon_threadsafe", 0.7),
        contest("python/wake-1000-at-once", "call_soon_threadsafe each", 0.2),
        contest("python/concurry-cycle", "concurry", 0.03),
        PythonRow { name: "python/import", unit: "ms", peer: None, bar: Some(Threshold::ValueAtMost(30.0)) },
    ];
    rows.map(BenchRow::Python).into()
}
