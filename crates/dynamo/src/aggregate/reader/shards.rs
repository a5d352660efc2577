//! Shards of a stream, and how far each is read.

use std::collections::BTreeMap;

use super::StreamProgress;

/// A shard, as the service describes it.
#[derive(Clone, Debug)]
pub(super) struct Described {
    pub(super) id: String,
    pub(super) parent: Option<String>,
}

/// The position from which a shard is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ShardPosition {
    Oldest,
    Latest,
    After(String),
}

/// The shards of a stream.
#[derive(Default)]
pub(super) struct Shards(BTreeMap<String, Shard>);

struct Shard {
    parent: Option<String>,
    position: ShardPosition,
    iterator: Option<String>,
    has_ended: bool,
    /// Pages without a record in this round.
    empty: u32,
    /// It is still listed by the service.
    is_listed: bool,
}

impl Shards {
    pub(super) fn learn(&mut self, described: Described, position: ShardPosition) {
        let fresh = || Shard {
            parent: described.parent.clone(),
            position,
            iterator: None,
            has_ended: false,
            empty: 0,
            is_listed: true,
        };
        self.0.entry(described.id).or_insert_with(fresh).is_listed = true;
    }

    /// Forgets shards that are read and not listed any more: the service lists them for a day.
    pub(super) fn settle(&mut self) {
        self.0.retain(|_, shard| shard.is_listed || !shard.has_ended);
        self.0.values_mut().for_each(|shard| shard.is_listed = false);
    }

    pub(super) fn begin_round(&mut self) {
        self.0.values_mut().for_each(|shard| shard.empty = 0);
    }

    /// Returns a shard that may have more: it has not ended, its parent has, and it had a record lately.
    pub(super) fn next_to_read(&self, empty_max: u32) -> Option<String> {
        let is_ready = |shard: &Shard| {
            let parent = shard.parent.as_ref().and_then(|parent| self.0.get(parent));
            !shard.has_ended && shard.empty < empty_max && parent.is_none_or(|parent| parent.has_ended)
        };
        let ready = self.0.iter().filter(|(_, shard)| is_ready(shard));
        ready.min_by_key(|(_, shard)| shard.empty).map(|(id, _)| id.clone())
    }

    pub(super) fn iterator(&self, id: &str) -> Option<String> {
        self.0.get(id)?.iterator.clone()
    }

    pub(super) fn position(&self, id: &str) -> ShardPosition {
        self.0.get(id).map_or(ShardPosition::Oldest, |shard| shard.position.clone())
    }

    /// Notes that the caller has the records at this iterator; they come again unless the caller finishes them.
    pub(super) fn holds(&mut self, id: &str, iterator: String) {
        self.change(id, |shard| shard.iterator = Some(iterator));
    }

    /// Notes that a page was read, whose last record has this number; the next is at this iterator, `None` at the
    /// shard's end.
    pub(super) fn went_on(&mut self, id: &str, next: Option<String>, last: Option<String>) {
        self.change(id, |shard| {
            shard.has_ended = next.is_none();
            shard.iterator = next;
            match last {
                Some(last) => {
                    shard.position = ShardPosition::After(last);
                    shard.empty = 0;
                }
                None => shard.empty += 1,
            }
        });
    }

    /// Drops an iterator that has expired: iterators last for some minutes.
    pub(super) fn lost_iterator(&mut self, id: &str) {
        self.change(id, |shard| {
            shard.iterator = None;
            shard.empty += 1;
        });
    }

    /// Starts again at the oldest record, because the next one is gone: the service keeps records for a day.
    pub(super) fn fell_behind(&mut self, id: &str) {
        self.change(id, |shard| {
            shard.iterator = None;
            shard.position = ShardPosition::Oldest;
            shard.empty += 1;
        });
    }

    pub(super) fn progress(&self) -> StreamProgress {
        let ended = self.0.values().filter(|shard| shard.has_ended).count();
        StreamProgress { open: self.0.len() - ended, ended }
    }

    fn change(&mut self, id: &str, change: impl FnOnce(&mut Shard)) {
        if let Some(shard) = self.0.get_mut(id) {
            change(shard);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family() -> Shards {
        let mut shards = Shards::default();
        for (id, parent) in [("1", None), ("2", Some("1")), ("3", Some("gone"))] {
            let described = Described { id: id.into(), parent: parent.map(str::to_owned) };
            shards.learn(described, ShardPosition::Oldest);
        }
        shards.settle();
        shards
    }

    #[test]
    fn a_child_is_read_when_its_parent_has_ended() {
        let mut shards = family();
        assert_eq!(shards.next_to_read(1).as_deref(), Some("1"));
        shards.went_on("1", Some("next".into()), None);
        assert_eq!(shards.next_to_read(1).as_deref(), Some("3"));
        shards.went_on("3", Some("next".into()), None);
        assert_eq!(shards.next_to_read(1), None);
        shards.went_on("1", None, Some("17".into()));
        assert_eq!(shards.next_to_read(1).as_deref(), Some("2"));
        assert_eq!(shards.progress(), StreamProgress { open: 2, ended: 1 });
    }

    #[test]
    fn what_is_lost_is_read_again_from_where_it_was() {
        let mut shards = family();
        shards.went_on("1", Some("next".into()), Some("17".into()));
        shards.lost_iterator("1");
        assert_eq!((shards.iterator("1"), shards.position("1")), (None, ShardPosition::After("17".into())));
        shards.fell_behind("1");
        assert_eq!(shards.position("1"), ShardPosition::Oldest);
    }

    #[test]
    fn a_shard_that_is_read_and_not_listed_is_forgotten() {
        let mut shards = family();
        shards.went_on("1", None, None);
        shards.settle();
        assert_eq!(shards.progress(), StreamProgress { open: 2, ended: 0 });
    }
}
