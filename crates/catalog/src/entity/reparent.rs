//! Changes of an entity: its parent, whether it cascades, and its name.

use tollgate_store::Reply;
use tollgate_store::records::{Change, Fields, Index, Test, Write};

use super::ancestors::{Ancestors, has_parent, is_deleting};
use super::create::check_text;
use super::{DELETING, Entity};
use crate::audit::{Action, Subject};
use crate::transaction::{ATTEMPTS_MAX, Commit};
use crate::{Catalog, CatalogError, Result, keys, name};

/// A change of an entity's parent.
struct Reparenting<'a> {
    id: &'a str,
    from: Option<String>,
    to: Option<&'a str>,
}

impl Catalog {
    /// Sets or removes the parent of an entity. Returns true if that changed anything.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing.
    ///
    /// # Errors
    ///
    /// [`EntityNotFound`](CatalogError::EntityNotFound),
    /// [`ParentNotFound`](CatalogError::ParentNotFound), [`Cycle`](CatalogError::Cycle),
    /// [`ChainTooLong`](CatalogError::ChainTooLong), an invalid name, a deleted namespace, or an
    /// error of the store.
    pub fn set_parent<'a>(&'a self, id: &'a str, parent: Option<&'a str>) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            parent.iter().try_for_each(|parent| name::PARENT.check(parent))?;
            for _ in 0..ATTEMPTS_MAX {
                let from = self.present_entity(id).await?.parent;
                if from.as_deref() == parent {
                    return Ok(false);
                }
                if self.try_move(&Reparenting { id, from, to: parent }).await? {
                    return Ok(true);
                }
            }
            Err(CatalogError::Contended(format!("entity {id:?}")))
        })
    }

    /// Sets whether the calls of an entity are charged to its parent, too. Returns true if that
    /// changed anything.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing.
    ///
    /// # Errors
    ///
    /// [`EntityNotFound`](CatalogError::EntityNotFound), an invalid name, a deleted namespace, or
    /// an error of the store.
    pub fn set_cascades<'a>(&'a self, id: &'a str, cascades: bool) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            for _ in 0..ATTEMPTS_MAX {
                if self.present_entity(id).await?.cascades == cascades {
                    return Ok(false);
                }
                let mut tx = self.transaction();
                let change = Change::Set("cascade".into(), cascades.into());
                let tests = vec![Test::Is("cascade".into(), (!cascades).into())];
                tx.push(Write::Change(keys::entity(self.namespace_id(), id), vec![change], tests));
                let details = Fields::from([("cascade".into(), cascades.into())]);
                tx.audit(Subject::Entity(id), Action::CascadeSet, None, details)?;
                if let Commit::Done = tx.commit().await? {
                    return Ok(true);
                }
            }
            Err(CatalogError::Contended(format!("entity {id:?}")))
        })
    }

    /// Sets the display name of an entity. Returns true if that changed anything.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing.
    ///
    /// # Errors
    ///
    /// [`EntityNotFound`](CatalogError::EntityNotFound), [`Invalid`](CatalogError::Invalid) for one
    /// that is too long, a deleted namespace, or an error of the store.
    pub fn set_name<'a>(&'a self, id: &'a str, new: &'a str) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            check_text("the name of an entity", new)?;
            if self.present_entity(id).await?.name == new {
                return Ok(false);
            }
            let mut tx = self.transaction();
            let tests = vec![Test::Exists, Test::AtMost(DELETING.into(), 0)];
            let change = Change::Set("name".into(), new.into());
            tx.push(Write::Change(keys::entity(self.namespace_id(), id), vec![change], tests));
            let details = Fields::from([("name".into(), new.into())]);
            tx.audit(Subject::Entity(id), Action::NameSet, None, details)?;
            match tx.commit().await? {
                Commit::Done => Ok(true),
                Commit::Failed(_) => Err(CatalogError::EntityNotFound(id.into())),
            }
        })
    }

    /// Returns the write that decreases the number of children of a parent. Tables that other
    /// programs wrote may name parents that do not exist.
    pub(super) async fn decrement_children(&self, parent: &str, mut tests: Vec<Test>) -> Result<Write> {
        let key = keys::entity(self.namespace_id(), parent);
        if self.get(key.clone()).await?.is_none() {
            return Ok(Write::Check(key, vec![Test::Absent]));
        }
        tests.push(Test::Exists);
        Ok(Write::Change(key, vec![Change::Add("children".into(), -1)], tests))
    }

    async fn present_entity(&self, id: &str) -> Result<Entity> {
        let item = self.get(keys::entity(self.namespace_id(), id)).await?;
        let present = item.filter(|item| !is_deleting(item));
        present.map(|item| Entity::of(id, &item)).ok_or_else(|| CatalogError::EntityNotFound(id.into()))
    }

    /// Moves the entity. Returns false if other callers moved an entity on the path meanwhile.
    async fn try_move(&self, step: &Reparenting<'_>) -> Result<bool> {
        let ns = self.namespace_id();
        let ancestors = match step.to {
            Some(parent) => self.ancestors(step.id, parent).await?,
            None => Some(Ancestors::default()),
        };
        let Some(ancestors) = ancestors else { return Ok(false) };
        let mut tx = self.transaction();
        tx.push(step.own_write(ns));
        if let Some(from) = &step.from {
            tx.push(self.decrement_children(from, ancestors.tests_of(from)).await?);
        }
        if let Some(to) = step.to {
            let more = vec![Change::Add("children".into(), 1)];
            let mut tests = ancestors.tests_of(to);
            tests.extend([Test::Exists, Test::AtMost(DELETING.into(), 0)]);
            tx.push(Write::Change(keys::entity(ns, to), more, tests));
        }
        let counted: Vec<&str> = step.from.as_deref().into_iter().chain(step.to).collect();
        ancestors.check_unmoved(&mut tx, &counted);
        let details = Fields::from([
            ("parent_id".into(), step.to.map(str::to_owned).into()),
            ("former_parent_id".into(), step.from.clone().into()),
        ]);
        tx.audit(Subject::Entity(step.id), Action::ParentSet, None, details)?;
        Ok(tx.commit().await? == Commit::Done)
    }
}

impl Reparenting<'_> {
    fn own_write(&self, ns: &str) -> Write {
        let index = match self.to {
            Some(parent) => Change::Place(Index::Children, keys::child_index_key(ns, parent, self.id)),
            None => Change::Displace(Index::Children),
        };
        let parent = Change::Set("parent_id".into(), self.to.map(str::to_owned).into());
        let tests = vec![has_parent(self.from.as_deref()), Test::AtMost(DELETING.into(), 0)];
        Write::Change(keys::entity(ns, self.id), vec![parent, index], tests)
    }
}
