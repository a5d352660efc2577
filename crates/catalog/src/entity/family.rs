//! Parents: who is above whom.
//!
//! A move reads the way up from the new parent, and the transaction tests that it is still the same. So of two moves
//! that together would make a circle, one fails, looks again and sees it.

use tollgate_store::records::{Change, Fields, Index, Item, Test, Value, Write};
use tollgate_store::{CHAIN_MAX, Reply};

use super::{DELETING, Entity};
use crate::audit::{Action, Subject};
use crate::transaction::{ATTEMPTS_MAX, Commit, Transaction};
use crate::{Catalog, CatalogError, Result, keys, name};

/// The way up from an entity that is to be a parent.
pub(super) struct Ancestors {
    /// Each with its own parent, nearest first; the last one has none.
    path: Vec<(String, Option<String>)>,
}

/// An entity that is to have another parent.
struct Move<'a> {
    id: &'a str,
    from: Option<String>,
    to: Option<&'a str>,
}

impl Catalog {
    /// Gives an entity another parent, or none, and says whether it had another one before.
    ///
    /// # Cancel safety
    ///
    /// Cancelled before it is done, all of it is applied or nothing.
    ///
    /// # Errors
    ///
    /// [`EntityNotFound`](CatalogError::EntityNotFound), [`ParentNotFound`](CatalogError::ParentNotFound),
    /// [`Cycle`](CatalogError::Cycle), [`ChainTooLong`](CatalogError::ChainTooLong), a name that is not valid, a namespace
    /// that is gone, or the store's.
    pub fn set_parent<'a>(&'a self, id: &'a str, parent: Option<&'a str>) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            parent.iter().try_for_each(|parent| name::PARENT.check(parent))?;
            for _ in 0..ATTEMPTS_MAX {
                let from = self.present_entity(id).await?.parent;
                if from.as_deref() == parent {
                    return Ok(false);
                }
                if let Commit::Done = self.try_move(&Move { id, from, to: parent }).await? {
                    return Ok(true);
                }
            }
            Err(CatalogError::Contended(format!("entity {id:?}")))
        })
    }

    /// Says whether the calls of an entity take from its parent too, and whether that is news.
    ///
    /// # Cancel safety
    ///
    /// Cancelled before it is done, all of it is applied or nothing.
    ///
    /// # Errors
    ///
    /// [`EntityNotFound`](CatalogError::EntityNotFound), a name that is not valid, a namespace that is gone, or the
    /// store's.
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

    /// Whether an entity was created. Tables that others wrote may name parents that were not.
    pub(super) async fn exists(&self, id: &str) -> Result<bool> {
        Ok(self.get(keys::entity(self.namespace_id(), id)).await?.is_some())
    }

    async fn present_entity(&self, id: &str) -> Result<Entity> {
        let item = self.get(keys::entity(self.namespace_id(), id)).await?;
        let present = item.filter(|item| !is_deleting(item));
        present.map(|item| Entity::of(id, &item)).ok_or_else(|| CatalogError::EntityNotFound(id.into()))
    }

    async fn try_move(&self, step: &Move<'_>) -> Result<Commit> {
        let ns = self.namespace_id();
        let above = match step.to {
            Some(parent) => self.ancestors(step.id, parent).await?,
            None => Ancestors { path: Vec::new() },
        };
        let mut tx = self.transaction();
        tx.push(step.own_write(ns));
        if let Some(from) = &step.from
            && self.exists(from).await?
        {
            let fewer = vec![Change::Add("children".into(), -1)];
            let mut tests = above.tests_of(from);
            tests.push(Test::Exists);
            tx.push(Write::Change(keys::entity(ns, from), fewer, tests));
        }
        if let Some(to) = step.to {
            let more = vec![Change::Add("children".into(), 1)];
            let mut tests = above.tests_of(to);
            tests.extend([Test::Exists, Test::AtMost(DELETING.into(), 0)]);
            tx.push(Write::Change(keys::entity(ns, to), more, tests));
        }
        let counted: Vec<&str> = step.from.as_deref().into_iter().chain(step.to).collect();
        above.check_unmoved(&mut tx, &counted);
        let details = Fields::from([
            ("parent_id".into(), step.to.map(str::to_owned).into()),
            ("former_parent_id".into(), step.from.clone().into()),
        ]);
        tx.audit(Subject::Entity(step.id), Action::ParentSet, None, details)?;
        tx.commit().await
    }

    /// The way up from `parent`, which is to be that of `id`.
    pub(super) async fn ancestors(&self, id: &str, parent: &str) -> Result<Ancestors> {
        let (entity, top) = (id.to_owned(), parent.to_owned());
        let mut path: Vec<(String, Option<String>)> = Vec::new();
        let mut next = Some(parent.to_owned());
        while let Some(ancestor) = next {
            if ancestor == id {
                return Err(CatalogError::Cycle { entity, parent: top });
            }
            if path.len() + 1 == CHAIN_MAX {
                return Err(CatalogError::ChainTooLong(entity));
            }
            let item = self.get(keys::entity(self.namespace_id(), &ancestor)).await?;
            let Some(item) = item.filter(|item| !path.is_empty() || !is_deleting(item)) else {
                return Err(CatalogError::ParentNotFound { entity, parent: ancestor });
            };
            next = item.text("parent_id").map(str::to_owned);
            path.push((ancestor, next.clone()));
        }
        Ok(Ancestors { path })
    }
}

fn is_deleting(item: &Item) -> bool {
    item.int(DELETING).unwrap_or(0) > 0
}

/// That the parent is this one.
fn has_parent(parent: Option<&str>) -> Test {
    Test::Is("parent_id".into(), parent.map_or(Value::Null, Value::from))
}

impl Move<'_> {
    fn own_write(&self, ns: &str) -> Write {
        let place = match self.to {
            Some(parent) => Change::Place(Index::Children, keys::child_place(ns, parent, self.id)),
            None => Change::Displace(Index::Children),
        };
        let parent = Change::Set("parent_id".into(), self.to.map(str::to_owned).into());
        let tests = vec![has_parent(self.from.as_deref()), Test::AtMost(DELETING.into(), 0)];
        Write::Change(keys::entity(ns, self.id), vec![parent, place], tests)
    }
}

impl Ancestors {
    /// What must still hold of an entity, if it lies on the way.
    pub(super) fn tests_of(&self, id: &str) -> Vec<Test> {
        let on_the_way = self.path.iter().filter(|(ancestor, _)| ancestor == id);
        on_the_way.map(|(_, parent)| has_parent(parent.as_deref())).collect()
    }

    /// Tests that nobody on the way was moved, but those whose records are written anyway.
    pub(super) fn check_unmoved(&self, tx: &mut Transaction<'_>, written: &[&str]) {
        for (ancestor, parent) in &self.path {
            if !written.contains(&ancestor.as_str()) {
                let key = keys::entity(tx.namespace_id(), ancestor);
                tx.push(Write::Check(key, vec![has_parent(parent.as_deref())]));
            }
        }
    }
}
