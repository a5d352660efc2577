//! The way up from an entity that is to be a parent.
//!
//! It is read one entity after the other, while others may move them. So whatever is made of it is tested in the
//! transaction: of two moves that together would make a circle, one fails, looks again and sees it. Nothing is refused
//! because of a way that was there at no moment.

use tollgate_store::CHAIN_MAX;
use tollgate_store::records::{Item, Test, Value, Write};

use super::DELETING;
use crate::transaction::{Commit, RecordTxn};
use crate::{Catalog, CatalogError, Result, keys};

/// The entities from a parent to the top, as they were read.
#[derive(Default)]
pub(super) struct Ancestors {
    /// Each with its own parent, nearest first; the last one has none.
    path: Vec<(String, Option<String>)>,
}

impl Catalog {
    /// Reads the way up from `parent`, which is to be that of `id`; `None` if an entity on it was moved meanwhile.
    pub(super) async fn ancestors(&self, id: &str, parent: &str) -> Result<Option<Ancestors>> {
        let entity = id.to_owned();
        let mut above = Ancestors::default();
        let mut next = Some(parent.to_owned());
        while let Some(ancestor) = next {
            let refusal = if ancestor == id {
                CatalogError::Cycle { entity, parent: parent.into() }
            } else if above.path.len() + 1 == CHAIN_MAX {
                CatalogError::ChainTooLong(entity)
            } else if let Some(item) = self.ancestor(&above, &ancestor).await? {
                next = item.text("parent_id").map(str::to_owned);
                above.path.push((ancestor, next.clone()));
                continue;
            } else {
                CatalogError::ParentNotFound { entity, parent: ancestor }
            };
            return if self.is_unmoved(&above).await? { Err(refusal) } else { Ok(None) };
        }
        Ok(above.is_simple().then_some(above))
    }

    /// An entity on the way, unless it is to be the parent and is being deleted.
    async fn ancestor(&self, below: &Ancestors, id: &str) -> Result<Option<Item>> {
        let item = self.get(keys::entity(self.namespace_id(), id)).await?;
        Ok(item.filter(|item| !below.path.is_empty() || !is_deleting(item)))
    }

    /// Whether the way that was read is there, all of it at once.
    async fn is_unmoved(&self, above: &Ancestors) -> Result<bool> {
        if !above.is_simple() {
            return Ok(false);
        }
        let mut tx = self.transaction();
        above.check_unmoved(&mut tx, &[]);
        Ok(above.path.is_empty() || tx.commit().await? == Commit::Done)
    }
}

impl Ancestors {
    /// Returns whether no entity is on the way twice, as happens when entities are moved while it is read.
    fn is_simple(&self) -> bool {
        let again =
            |(index, (id, _)): (usize, &(String, _))| self.path[..index].iter().any(|(one, _)| one == id);
        !self.path.iter().enumerate().any(again)
    }

    /// What must still hold of an entity, if it lies on the way.
    pub(super) fn tests_of(&self, id: &str) -> Vec<Test> {
        let on_the_way = self.path.iter().filter(|(ancestor, _)| ancestor == id);
        on_the_way.map(|(_, parent)| has_parent(parent.as_deref())).collect()
    }

    /// Tests that no entity on the way was moved, except those whose records are written anyway.
    pub(super) fn check_unmoved(&self, tx: &mut RecordTxn<'_>, written: &[&str]) {
        for (ancestor, parent) in &self.path {
            if !written.contains(&ancestor.as_str()) {
                let key = keys::entity(tx.namespace_id(), ancestor);
                tx.push(Write::Check(key, vec![has_parent(parent.as_deref())]));
            }
        }
    }
}

/// That the parent is this one.
pub(super) fn has_parent(parent: Option<&str>) -> Test {
    Test::Is("parent_id".into(), parent.map_or(Value::Null, Value::from))
}

/// Returns whether a deletion of the entity has begun.
pub(super) fn is_deleting(item: &Item) -> bool {
    item.int(DELETING).unwrap_or(0) > 0
}
