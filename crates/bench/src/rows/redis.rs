//! A server of Redis.

use super::BenchRow;
use crate::result::Threshold;
use crate::servers;
use crate::single::Solo;

pub(crate) fn rows() -> Vec<BenchRow> {
    let at_most = |name, unit, read, most| {
        BenchRow::Solo(Solo { name, unit, read, bar: Some(Threshold::ValueAtMost(most)) })
    };
    vec![
        at_most("redis/calls-acquire", "calls", servers::calls_of_acquire, 1.0),
        at_most("redis/server-cpu-3-limits-over-bare", "x", servers::processor_of_acquire, 1.3),
        at_most("redis/server-cpu-chain-3x3-over-1x3", "x", servers::processor_of_chain, 2.0),
        BenchRow::Solo(Solo {
            name: "redis/acquires-64-at-once",
            unit: "/s",
            read: servers::throughput,
            bar: None,
        }),
    ]
}
