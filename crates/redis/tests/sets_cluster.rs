//! Limit sets on a cluster of three nodes.

mod common;

use std::sync::Arc;

use tollgate::Clock;
use tollgate::store::Backend;

fn open(clock: Clock) -> Arc<dyn Backend> {
    Arc::new(common::on_cluster(clock))
}

tollgate_conformance::set_suite!(open);
