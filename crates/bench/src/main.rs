//! Benchmarks: Tollgate beside its peers, interleaved in one run.

fn main() {}
