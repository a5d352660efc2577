//! The ordered map of everything that is not a bucket's state: a skip list.
//!
//! A node has as many links as its height, which follows from its key, so that processes need not share a random number
//! generator; most have one. Inserting or removing a node changes few words, which keeps the journal short.
//!
//! A node is: the length of its key and its height; its value; the node before it; the links; the key.

use std::cmp::Ordering;

use crate::alloc::words_for;
use crate::error::TxnAbort;
use crate::key::MapKey;
use crate::layout::{HEAD, hash};
use crate::tx::Tx;

/// The most links of a node: enough for a billion of them.
pub(crate) const HEIGHT_MAX: u64 = 15;

const VALUE: u64 = 1;
pub(crate) const BEFORE: u64 = 2;
pub(crate) const LINKS: u64 = 3;

/// A node of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapNode(pub(crate) u64);

/// The nodes before a position, one for each level.
type Path = [u64; HEIGHT_MAX as usize];

impl Tx<'_> {
    /// Makes an empty map.
    pub(crate) fn make_ordered(&mut self) -> Result<(), TxnAbort> {
        let head = self.alloc(LINKS + HEIGHT_MAX)?;
        self.set_new(head, HEIGHT_MAX << 32)?;
        for at in VALUE..LINKS + HEIGHT_MAX {
            self.set_new(head + at, 0)?;
        }
        self.set_root(HEAD, head)
    }

    /// Returns the value at a key.
    pub(crate) fn find(&self, key: &MapKey) -> Result<Option<(MapNode, u64)>, TxnAbort> {
        let (_, node) = self.path(key)?;
        match node {
            Some(node) if self.compare(node, key)? == Ordering::Equal => Ok(Some((node, self.value(node)?))),
            _ => Ok(None),
        }
    }

    /// Returns the value of a node.
    pub(crate) fn value(&self, node: MapNode) -> Result<u64, TxnAbort> {
        self.get(node.0 + VALUE)
    }

    /// Returns the block that a node has as its value.
    pub(crate) fn block_of(&self, node: MapNode) -> Result<u64, TxnAbort> {
        self.block_at(node.0 + VALUE)
    }

    /// Sets the value of a node.
    pub(crate) fn set_value(&mut self, node: MapNode, value: u64) -> Result<(), TxnAbort> {
        self.set(node.0 + VALUE, value)
    }

    /// Inserts a key that does not exist yet.
    pub(crate) fn insert(&mut self, key: &MapKey, value: u64) -> Result<MapNode, TxnAbort> {
        let (path, next) = self.path(key)?;
        let height = self.height_for(key);
        let len = key.bytes().len() as u64;
        let node = self.alloc(LINKS + height + words_for(len))?;
        self.set_new(node, len | height << 32)?;
        self.set_new(node + VALUE, value)?;
        self.set_new(node + BEFORE, path[0])?;
        key.with_words(|words, _| {
            let at = node + LINKS + height;
            (at..).zip(words).try_for_each(|(at, word)| self.set_new(at, *word))
        })?;
        for level in 0..height {
            let link = path[level as usize] + LINKS + level;
            self.set_new(node + LINKS + level, self.get(link)?)?;
            self.set(link, node)?;
        }
        if let Some(next) = next {
            self.set(next.0 + BEFORE, node)?;
        }
        Ok(MapNode(node))
    }

    /// Removes a key, and returns its value; `None` if it does not exist.
    pub(crate) fn remove(&mut self, key: &MapKey) -> Result<Option<u64>, TxnAbort> {
        let (path, node) = self.path(key)?;
        let Some(node) = node else { return Ok(None) };
        if self.compare(node, key)? != Ordering::Equal {
            return Ok(None);
        }
        let value = self.value(node)?;
        let (_, height) = self.shape(node)?;
        for level in 0..height {
            let link = path[level as usize] + LINKS + level;
            if self.get(link)? != node.0 {
                return Err(TxnAbort::Damaged("a link leads past what it should lead to"));
            }
            self.set(link, self.get(node.0 + LINKS + level)?)?;
        }
        if let Some(next) = self.link(node.0, 0)? {
            self.set(next.0 + BEFORE, path[0])?;
        }
        self.free(node.0);
        Ok(Some(value))
    }

    /// Returns the key of a node.
    pub(crate) fn key_of(&self, node: MapNode) -> Result<Vec<u8>, TxnAbort> {
        let (len, height) = self.shape(node)?;
        let mut bytes = Vec::with_capacity(len as usize + 8);
        for word in self.slice(node.0 + LINKS + height, words_for(len))? {
            bytes.extend(word.load(std::sync::atomic::Ordering::Relaxed).to_be_bytes());
        }
        bytes.truncate(len as usize);
        Ok(bytes)
    }

    /// Returns the first node whose key starts with this.
    pub(crate) fn first(&self, beginning: &MapKey) -> Result<Option<(MapNode, Vec<u8>)>, TxnAbort> {
        let mut found = None;
        self.scan(beginning, None, false, |node, key| {
            found = Some((node, key));
            Ok(false)
        })?;
        Ok(found)
    }

    /// Visits the nodes whose keys start with `beginning`, behind `after` if it is given, in reverse if `backwards`,
    /// for as long as `go_on` returns true.
    pub(crate) fn scan(
        &self,
        beginning: &MapKey,
        after: Option<&MapKey>,
        backwards: bool,
        mut go_on: impl FnMut(MapNode, Vec<u8>) -> Result<bool, TxnAbort>,
    ) -> Result<(), TxnAbort> {
        let mut next = match backwards {
            false => self.first_behind(beginning, after)?,
            true => self.last_before(beginning, after)?,
        };
        for _ in 0..self.steps_max() {
            let Some(node) = next else { return Ok(()) };
            let key = self.key_of(node)?;
            if !key.starts_with(beginning.bytes()) || !go_on(node, key)? {
                return Ok(());
            }
            next = match backwards {
                false => self.link(node.0, 0)?,
                true => Some(self.link_at(node.0 + BEFORE)?).filter(|before| *before != 0).map(MapNode),
            };
        }
        Err(TxnAbort::Damaged("its keys go round in a circle"))
    }

    fn first_behind(&self, beginning: &MapKey, after: Option<&MapKey>) -> Result<Option<MapNode>, TxnAbort> {
        let after = after.filter(|after| after.bytes() >= beginning.bytes());
        let (_, node) = self.path(after.unwrap_or(beginning))?;
        match (node, after) {
            (Some(node), Some(after)) if self.compare(node, after)? == Ordering::Equal => {
                self.link(node.0, 0)
            }
            (node, _) => Ok(node),
        }
    }

    fn last_before(&self, beginning: &MapKey, after: Option<&MapKey>) -> Result<Option<MapNode>, TxnAbort> {
        let end = beginning.behind();
        let end = after.filter(|after| after.bytes() < end.bytes()).unwrap_or(&end);
        let (path, _) = self.path(end)?;
        Ok(Some(MapNode(path[0])))
    }

    /// Returns the path to the first node whose key is not less, and that node.
    #[inline]
    fn path(&self, key: &MapKey) -> Result<(Path, Option<MapNode>), TxnAbort> {
        key.with_words(|words, len| {
            let mut at = self.block_at(HEAD)?;
            let (mut path, mut next) = ([at; HEIGHT_MAX as usize], None);
            let mut steps = 0;
            for level in (0..HEIGHT_MAX).rev() {
                loop {
                    let link = self.link(at, level)?;
                    // The node that the level above ended at need not be compared again.
                    if link == next && next.is_some() {
                        break;
                    }
                    match link {
                        Some(node) if self.compare_words(node, words, len)? == Ordering::Less => at = node.0,
                        other => {
                            next = other;
                            break;
                        }
                    }
                    steps += 1;
                    if steps > self.steps_max() * HEIGHT_MAX {
                        return Err(TxnAbort::Damaged("its links go round in a circle"));
                    }
                }
                path[level as usize] = at;
            }
            Ok((path, self.link(at, 0)?))
        })
    }

    #[inline]
    pub(crate) fn link(&self, node: u64, level: u64) -> Result<Option<MapNode>, TxnAbort> {
        Ok(Some(self.link_at(node + LINKS + level)?).filter(|next| *next != 0).map(MapNode))
    }

    fn compare(&self, node: MapNode, key: &MapKey) -> Result<Ordering, TxnAbort> {
        key.with_words(|words, len| self.compare_words(node, words, len))
    }

    #[inline]
    pub(crate) fn compare_words(&self, node: MapNode, words: &[u64], len: u64) -> Result<Ordering, TxnAbort> {
        let (there, height) = self.shape(node)?;
        let theirs = self.slice(node.0 + LINKS + height, words_for(there))?;
        for (their, word) in theirs.iter().zip(words) {
            match their.load(std::sync::atomic::Ordering::Relaxed).cmp(word) {
                Ordering::Equal => {}
                other => return Ok(other),
            }
        }
        Ok(there.cmp(&len))
    }

    /// Returns the length of a node's key, and its height.
    #[inline]
    pub(crate) fn shape(&self, node: MapNode) -> Result<(u64, u64), TxnAbort> {
        let shape = self.get(node.0)?;
        let (len, height) = (shape & 0xFFFF_FFFF, shape >> 32);
        if height == 0 || height > HEIGHT_MAX {
            return Err(TxnAbort::Damaged("a node has a height that none has"));
        }
        Ok((len, height))
    }

    fn height_for(&self, key: &MapKey) -> u64 {
        let hash = key.with_words(|words, len| hash(!self.arena.seed, words, len));
        (1 + u64::from(hash.trailing_zeros()) / 2).min(HEIGHT_MAX)
    }
}
