//! Giving an entity another parent, or another name.

use tollgate_store::Reply;
use tollgate_store::records::{Change, Fields, Index, Test, Write};

use super::ancestors::{Ancestors, has_parent, is_deleting};
use super::create::check_text;
use super::{DELETING, Entity};
use crate::audit::{Action, Subject};
use crate::transaction::{ATTEMPTS_MAX, Commit};
use crate::{Catalog, CatalogError, Result, keys, name};

/// An entity that is to have another parent.
struct Reparenting<'a> {
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
                if self.try_move(&Reparenting { id, from, to: parent }).await? {
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

    /// Gives an entity another name, and says whether it had another one before.
    ///
    /// # Cancel safety
    ///
    /// Cancelled before it is done, all of it is applied or nothing.
    ///
    /// # Errors
    ///
    /// [`EntityNotFound`](CatalogError::EntityNotFound), [`Invalid`](CatalogError::Invalid) for one that is too long, a
    /// namespace that is gone, or the store's.
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

    /// The write that counts one child less of a parent. Tables that others wrote may name parents that are not there.
    pub(super) async fn one_child_less(&self, parent: &str, mut tests: Vec<Test>) -> Result<Write> {
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

    /// Returns whether it was moved; if not, other callers meanwhile moved an entity that matters.
    async fn try_move(&self, step: &Reparenting<'_>) -> Result<bool> {
        let ns = self.namespace_id();
        let above = match step.to {
            Some(parent) => self.ancestors(step.id, parent).await?,
            None => Some(Ancestors::default()),
        };
        let Some(above) = above else { return Ok(false) };
        let mut tx = self.transaction();
        tx.push(step.own_write(ns));
        if let Some(from) = &step.from {
            tx.push(self.one_child_less(from, above.tests_of(from)).await?);
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
        Ok(tx.commit().await? == Commit::Done)
    }
}

impl Reparenting<'_> {
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
