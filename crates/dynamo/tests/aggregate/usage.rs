//! Usage is the same, however often and however the stream is delivered.

use std::collections::BTreeMap;

use tollgate::Span;
use tollgate::store::usage::UsageRetention;
use tollgate_dynamo::aggregate::{Aggregator, StreamRecord};

use crate::common;
use crate::world::World;

/// Two entities, in the first hour of a day and in its fifteenth.
fn a_day() -> World {
    let world = World::new();
    for _ in 0..3 {
        world.take("user-1", 10);
        world.take("user-2", 7);
    }
    world.wait(14 * 3_600);
    world.take("user-1", 100);
    world
}

fn expected() -> BTreeMap<String, [i64; 3]> {
    let windows = [
        ("daily#2026-11-15T00:00:00Z", [4, 130, 4]),
        ("hourly#2026-11-15T00:00:00Z", [3, 30, 3]),
        ("hourly#2026-11-15T14:00:00Z", [1, 100, 1]),
        ("monthly#2026-11-01T00:00:00Z", [4, 130, 4]),
    ];
    windows.map(|(window, sums)| (window.to_owned(), sums)).into()
}

#[test]
fn a_day_with_its_first_hour_and_its_fifteenth_has_the_right_hours_and_the_right_day() {
    let world = a_day();
    assert_eq!(world.handle(&world.stream()).written, 2);
    assert_eq!(world.usage("user-1"), expected());
}

#[test]
fn the_same_stream_twice_in_other_batches_and_in_another_order_gives_the_same_usage() {
    type Cut = fn(&[StreamRecord]) -> Vec<Vec<StreamRecord>>;
    let cuts: [Cut; 3] = [
        |all| vec![all.to_vec()],
        |all| all.iter().map(|record| vec![record.clone()]).collect(),
        |all| all.chunks(3).rev().map(<[StreamRecord]>::to_vec).collect(),
    ];
    for cut in cuts {
        let world = a_day();
        let stream = world.stream();
        for cut in [cut, cut, cuts[0]] {
            for batch in cut(&stream) {
                world.handle(&batch);
            }
            assert_eq!(world.usage("user-1"), expected());
        }
    }
}

#[test]
fn a_bucket_that_is_new_counts() {
    let world = World::new();
    world.take("user-1", 5);
    world.handle(&world.stream());
    assert_eq!(world.usage("user-1")["hourly#2026-11-15T00:00:00Z"], [1, 5, 1]);
}

#[test]
fn what_an_aggregator_writes_gives_it_nothing_to_do() {
    // Within an hour, or the limiter would write down what was used in the one before, too.
    let world = World::new();
    (0..3).for_each(|_| world.take("user-1", 10));
    let before = world.stream();
    world.handle(&before);
    let after = world.stream();
    assert!(after.len() > before.len());
    let calls = world.engine.calls();
    let outcome = world.handle(&after[before.len()..]);
    assert_eq!((outcome.written, outcome.remains), (0, 0));
    assert_eq!((world.engine.calls() - calls).all(), 0);
}

#[test]
fn two_aggregators_at_once_count_once() {
    let world = a_day();
    let stream = world.stream();
    let (one, two) = (world.aggregator(), Aggregator::new(world.store.clone()));
    std::thread::scope(|scope| {
        for aggregator in [&one, &two] {
            scope.spawn(|| assert_eq!(aggregator.handle(&stream).wait().failed, []));
        }
    });
    assert_eq!(world.usage("user-1"), expected());
}

#[test]
fn an_aggregator_keeps_usage_for_as_long_as_its_store_is_told() {
    let world = World::new();
    let store = common::builder(world.hands.clock()).http_client(world.engine.http_client());
    let store = store.usage_retention(UsageRetention::uniform(Span::from_secs(10 * 86_400)));
    let aggregator = Aggregator::new(store.build().wait().expect("the engine has what it takes"));
    world.take("lives", 10);
    assert_eq!(aggregator.handle(&world.stream()).wait().written, 1);
    // A bucket from defaults of a minute is kept for seven. What was used of this one is only seen in its end.
    world.take("ends", 10);
    world.wait(500);
    assert!(world.engine.delete_expired().is_ok());
    let ends: Vec<_> = world.stream().into_iter().filter(|record| record.has_expired).collect();
    assert_eq!(aggregator.handle(&ends).wait().remains, 1);
    for (days, is_there) in [(9, true), (2, false)] {
        world.wait(days * 86_400);
        for entity in ["lives", "ends"] {
            let usage = world.usage(entity);
            assert_eq!(usage.contains_key("hourly#2026-11-15T00:00:00Z"), is_there, "{entity}: {usage:?}");
            assert!(usage.contains_key("monthly#2026-11-01T00:00:00Z"), "{entity}: {usage:?}");
        }
    }
}
