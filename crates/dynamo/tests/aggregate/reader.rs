//! Reading the stream, where no Lambda does.

use tollgate_dynamo::aggregate::{StreamReader, StreamStart};

use crate::world::World;

/// Reads to the end, and how many records there were.
fn read(world: &World, start: StreamStart) -> usize {
    let mut reader = StreamReader::open(&world.other, start).wait().expect("the stream can be read");
    let mut records = 0;
    while let Some(batch) = reader.next_batch().wait().expect("the stream can be read") {
        records += batch.records.len();
        reader.done(&batch).wait().expect("the stream can be read");
    }
    records
}

#[test]
fn a_reader_goes_on_where_the_last_one_was_done_and_does_not_read_of_itself() {
    let world = World::new();
    world.take("user-1", 1);
    assert!(read(&world, StreamStart::Checkpoint) > 1);
    assert_eq!(read(&world, StreamStart::Checkpoint), 0);
    world.take("user-1", 1);
    assert_eq!(read(&world, StreamStart::Checkpoint), 1);
    assert!(read(&world, StreamStart::Oldest) > 2);
}

#[test]
fn what_is_not_done_comes_again() {
    let world = World::new();
    let mut reader = StreamReader::open(&world.other, StreamStart::Oldest).wait().unwrap();
    let batch = reader.next_batch().wait().unwrap().unwrap();
    let again = reader.next_batch().wait().unwrap().unwrap();
    assert_eq!(batch.records, again.records);
}

#[test]
fn from_the_latest_on_nothing_old_is_read() {
    let world = World::new();
    let mut reader = StreamReader::open(&world.other, StreamStart::Latest).wait().unwrap();
    assert!(reader.next_batch().wait().unwrap().is_none());
    world.take("user-1", 1);
    assert_eq!(reader.next_batch().wait().unwrap().unwrap().records.len(), 1);
}
