//! Buckets that are hot are put into more items before any caller is throttled.

use aws_sdk_dynamodb::types::AttributeValue;

use crate::world::World;

#[test]
fn a_hot_bucket_is_doubled_once_for_a_batch_however_often_it_comes() {
    let world = World::new();
    world.take("user-1", 10);
    let record = world.stream().pop().unwrap();
    let at = |revision: u32| {
        let mut record = record.clone();
        record.new.as_mut().unwrap().insert("rv".into(), AttributeValue::N(revision.to_string()));
        record
    };
    let namespace = world.limiter.catalog().namespace_id();
    let shards = || world.store.shards_of(namespace, "user-1", "gpt-4").wait().unwrap();
    assert_eq!((world.handle(&[at(1), at(700)]).doubled, shards()), (0, 1));
    let hot = [at(1), at(900)];
    assert_eq!((world.handle(&hot).doubled, shards()), (1, 2));
    assert_eq!((world.handle(&hot).doubled, shards()), (0, 2));
    // What was in the bucket is in it still.
    world.take("user-1", 10_000 - 10);
}
