//! What fails fails alone.

use tollgate::store::records::{Change, ItemKey, Records, Value, Write};
use tollgate_dynamo::aggregate::StreamRecord;

use crate::world::World;

#[test]
fn a_bucket_that_fails_fails_its_own_records_from_the_first_on() {
    let world = World::new();
    world.take("user-1", 10);
    world.take("user-2", 10);
    world.take("user-1", 10);
    // A value that no writer can add to.
    let namespace = world.limiter.catalog().namespace_id();
    let key = ItemKey::new(format!("{namespace}/USAGE#user-1"), "#USAGE#gpt-4#daily#2026-11-15T00:00:00Z");
    let broken = Write::Change(key.clone(), vec![Change::Set("tpm".into(), Value::Text("x".into()))], vec![]);
    world.store.write(&[broken]).wait().unwrap();
    let stream = world.stream();
    let outcome = world.aggregator().handle(&stream).wait();
    let is_of_user_1 =
        |record: &&StreamRecord| record.keys["PK"].as_s().is_ok_and(|key| key.contains("BUCKET#user-1#"));
    let expected: Vec<&str> =
        stream.iter().filter(is_of_user_1).map(|record| record.sequence.as_str()).collect();
    let failed: Vec<&str> = outcome.failed.iter().map(|failed| failed.sequence.as_str()).collect();
    assert_eq!(failed, expected);
    assert_eq!((failed.len(), outcome.written), (2, 1));
    assert_eq!(world.usage("user-2")["daily#2026-11-15T00:00:00Z"], [1, 10, 1]);
    // Mended, the same batch goes through.
    world.store.write(&[Write::Delete(key, vec![])]).wait().unwrap();
    world.handle(&stream);
    assert_eq!(world.usage("user-1")["daily#2026-11-15T00:00:00Z"], [2, 20, 2]);
    assert_eq!(world.usage("user-2")["daily#2026-11-15T00:00:00Z"], [1, 10, 1]);
}

#[test]
fn an_item_that_nobody_understands_holds_up_nothing() {
    let world = World::new();
    world.take("user-1", 10);
    let mut stream = world.stream();
    let mut odd = stream.last().unwrap().clone();
    odd.new.as_mut().unwrap().remove("rf");
    stream.push(odd);
    let outcome = world.aggregator().handle(&stream).wait();
    assert_eq!((outcome.failed.len(), outcome.unreadable.len(), outcome.written), (0, 1, 1));
}
