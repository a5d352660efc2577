//! The limiter on a Redis server.

mod common;

use std::sync::Arc;

use tollgate::Clock;
use tollgate::store::Backend;

fn open(clock: Clock) -> Arc<dyn Backend> {
    Arc::new(common::on_redis(clock))
}

tollgate_conformance::limiter_suite!(open);
