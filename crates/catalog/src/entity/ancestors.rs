//! The ancestors of an entity that gets a parent.
//!
//! They are read one after the other, while other callers may move them. So the transaction tests
//! what was read: of two moves that together would make a cycle, one fails, reads again and finds
//! the cycle. No move is refused because of a path that never existed.

use tollgate_store::CHAIN_MAX;
use tollgate_store::records::{Item, Test, Value, Write};

use super::DELETING;
use crate::transaction::{Commit, RecordTxn};
use crate::{Catalog, CatalogError, Result, keys};

/// The entities from a parent to the root, as they were read.
#[derive(Default)]
pub(super) struct Ancestors {
    /// Each with its own parent, nearest first; the last one has none.
    path: Vec<(String, Option<String>)>,
}

impl Catalog {
    /// Reads the ancestors of `id` if `parent` becomes its parent; `None` if one of them was moved
    /// meanwhile.
    pub(super) async fn ancestors(&self, id: &str, parent: &str) -> Result<Option<Ancestors>> {
        let entity = id.to_owned();
        let mut ancestors = Ancestors::default();
        let mut next = Some(parent.to_owned());
        while let Some(ancestor) = next {
            let refusal = if ancestor == id {
                CatalogError::Cycle { entity, parent: parent.into() }
            } else if ancestors.path.len() + 1 == CHAIN_MAX {
                CatalogError::ChainTooLong(entity)
            } else if let Some(item) = self.ancestor(&ancestors, &ancestor).await? {
                next = item.text("parent_id").map(str::to_owned);
                ancestors.path.push((ancestor, next.clone()));
                continue;
            } else {
                CatalogError::ParentNotFound { entity, parent: ancestor }
            };
            return if self.is_unmoved(&ancestors).await? { Err(refusal) } else { Ok(None) };
        }
        Ok(ancestors.is_simple().then_some(ancestors))
    }

    /// Returns an ancestor, unless it is to be the parent and is being deleted.
    async fn ancestor(&self, below: &Ancestors, id: &str) -> Result<Option<Item>> {
        let item = self.get(keys::entity(self.namespace_id(), id)).await?;
        Ok(item.filter(|item| !below.path.is_empty() || !is_deleting(item)))
    }

    /// Returns true if the path that was read exists, all of it at once.
    async fn is_unmoved(&self, ancestors: &Ancestors) -> Result<bool> {
        if !ancestors.is_simple() {
            return Ok(false);
        }
        let mut tx = self.transaction();
        ancestors.check_unmoved(&mut tx, &[]);
        Ok(ancestors.path.is_empty() || tx.commit().await? == Commit::Done)
    }
}

impl Ancestors {
    /// Returns true if no entity is on the path twice, as happens when entities are moved while it
    /// is read.
    fn is_simple(&self) -> bool {
        let again =
            |(index, (id, _)): (usize, &(String, _))| self.path[..index].iter().any(|(one, _)| one == id);
        !self.path.iter().enumerate().any(again)
    }

    /// Returns what must still hold of an entity, if it is on the path.
    pub(super) fn tests_of(&self, id: &str) -> Vec<Test> {
        let on_path = self.path.iter().filter(|(ancestor, _)| ancestor == id);
        on_path.map(|(_, parent)| has_parent(parent.as_deref())).collect()
    }

    /// Tests that no entity on the path was moved, except those whose records are written anyway.
    pub(super) fn check_unmoved(&self, tx: &mut RecordTxn<'_>, written: &[&str]) {
        for (ancestor, parent) in &self.path {
            if !written.contains(&ancestor.as_str()) {
                let key = keys::entity(tx.namespace_id(), ancestor);
                tx.push(Write::Check(key, vec![has_parent(parent.as_deref())]));
            }
        }
    }
}

/// Returns the test that the parent is this one.
pub(super) fn has_parent(parent: Option<&str>) -> Test {
    Test::Is("parent_id".into(), parent.map_or(Value::Null, Value::from))
}

/// Returns true if a deletion of the entity has begun.
pub(super) fn is_deleting(item: &Item) -> bool {
    item.int(DELETING).unwrap_or(0) > 0
}
