//! Of a namespace that is purged nothing is left, whatever the stream still says of it.

use std::sync::Arc;

use tollgate::Registry;

use crate::world::World;

#[test]
fn a_namespace_that_is_purged_leaves_no_item() {
    let world = World::new();
    world.take("user-1", 10);
    world.wait(500);
    // One bucket expires, the other is in use.
    world.take("user-2", 10);
    assert_eq!(world.engine.delete_expired(), Ok(1));
    let namespace = world.limiter.catalog().namespace_id();
    let registry = Registry::new(Arc::new(world.store.clone()));
    registry.delete("default").wait().unwrap();
    registry.purge(namespace, |_| {}).wait().unwrap();
    assert_eq!(world.items_of(namespace), [""; 0]);
    let stream = world.stream();
    assert!(stream.iter().any(|record| record.has_expired));
    world.handle(&stream);
    assert_eq!(world.items_of(namespace), [""; 0]);
}
