//! Buckets that expire.

use tollgate_dynamo::aggregate::{EventKind, StreamRecord};

use crate::world::World;

fn is_end(record: &StreamRecord) -> bool {
    record.kind == EventKind::Remove && record.has_expired
}

#[test]
fn what_was_left_of_a_bucket_that_expired_is_counted_once() {
    let world = World::new();
    world.take("user-1", 10);
    world.take("user-1", 20);
    // A bucket from defaults of a minute is kept for seven.
    world.wait(500);
    assert_eq!(world.engine.delete_expired(), Ok(1));
    let (ends, lives): (Vec<_>, Vec<_>) = world.stream().into_iter().partition(is_end);
    assert_eq!(ends.len(), 1);
    for _ in 0..2 {
        assert_eq!(world.handle(&ends).remains, 1);
        assert_eq!(world.usage("user-1")["hourly#2026-11-15T00:00:00Z"], [2, 30, 2]);
    }
    // What the stream says of its life comes late, and finds no bucket.
    world.handle(&lives);
    assert_eq!(world.usage("user-1")["daily#2026-11-15T00:00:00Z"], [2, 30, 2]);
    // The next bucket of the same name is another one.
    world.take("user-1", 40);
    world.wait(500);
    assert_eq!(world.engine.delete_expired(), Ok(1));
    world.handle(&world.stream());
    assert_eq!(world.usage("user-1")["daily#2026-11-15T00:00:00Z"], [3, 70, 3]);
}

#[test]
fn what_was_written_down_before_a_bucket_expired_is_not_counted_again() {
    let world = World::new();
    world.take("user-1", 10);
    world.handle(&world.stream());
    world.take("user-1", 20);
    world.wait(500);
    assert_eq!(world.engine.delete_expired(), Ok(1));
    world.handle(&world.stream());
    assert_eq!(world.usage("user-1")["daily#2026-11-15T00:00:00Z"], [2, 30, 2]);
}

#[test]
fn a_bucket_that_somebody_deletes_is_forgotten() {
    let world = World::new();
    world.take("user-1", 10);
    world.wait(500);
    assert_eq!(world.engine.delete_expired(), Ok(1));
    let mut ends: Vec<StreamRecord> = world.stream().into_iter().filter(is_end).collect();
    ends.iter_mut().for_each(|record| record.has_expired = false);
    assert_eq!(world.handle(&ends).remains, 0);
    assert!(world.usage("user-1").is_empty());
}

#[test]
fn the_mark_that_it_is_done_expires_itself() {
    let world = World::new();
    world.take("user-1", 10);
    world.wait(500);
    assert_eq!(world.engine.delete_expired(), Ok(1));
    world.handle(&world.stream());
    let namespace = world.limiter.catalog().namespace_id();
    let marks = || world.items_of(namespace).iter().filter(|key| key.contains("#DONE#")).count();
    assert_eq!(marks(), 1);
    world.wait(3 * 86_400 + 1);
    assert_eq!(world.engine.delete_expired(), Ok(1));
    assert_eq!(marks(), 0);
}
