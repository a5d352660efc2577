//! `tollgate entity`.

mod bucket;
mod create;
mod list;
mod set_parent;
mod show;

use anyhow::Result;
use tollgate::catalog::Access;

use super::{cascade, disable, stored_limits};
use crate::args::{EntityCommand, EntityLimitsArgs, EntitySetLimitsArgs};
use crate::context::Context;
use crate::output::Output;
use crate::views::OwnedLevel;

/// Runs a command for entities.
pub(super) fn run(context: &Context, command: EntityCommand) -> Result<Output> {
    match command {
        EntityCommand::Create(args) => create::create(context, args),
        EntityCommand::Show { entity } => show::show(context, &entity),
        EntityCommand::Delete { entity } => create::delete(context, entity),
        EntityCommand::Children { entity, page } => list::children(context, entity, &page),
        EntityCommand::SetParent(args) => set_parent::set_parent(context, args),
        EntityCommand::SetLimits(EntitySetLimitsArgs { entity, resource, limits }) => {
            stored_limits::set(context, OwnedLevel::entity(entity, resource), &limits)
        }
        EntityCommand::GetLimits(args) => stored_limits::get(context, &level(args)),
        EntityCommand::DeleteLimits(args) => stored_limits::delete(context, &level(args)),
        EntityCommand::List(args) => list::list(context, &args),
        EntityCommand::ListResources => list::resources(context),
        EntityCommand::SetCascade { entity, cascade, resource } => {
            cascade::set(context, &OwnedLevel::entity(entity, resource), Some(cascade))
        }
        EntityCommand::UnsetCascade { entity, resource } => {
            cascade::set(context, &OwnedLevel::entity(entity, resource), None)
        }
        EntityCommand::Disable { entity, resource } => {
            let target = match resource {
                Some(resource) => disable::DisableTarget::Access(entity, resource, Some(Access::Off)),
                None => disable::DisableTarget::Entity(entity),
            };
            disable::toggle(context, target, disable::Toggle::Off)
        }
        EntityCommand::Enable { entity, resource, inherit } => {
            let access = (!inherit).then_some(Access::On);
            let target = match resource {
                Some(resource) => disable::DisableTarget::Access(entity, resource, access),
                None => disable::DisableTarget::Entity(entity),
            };
            disable::toggle(context, target, disable::Toggle::On)
        }
        EntityCommand::Reset(args) => bucket::reset(context, args),
        EntityCommand::TopUp(args) => bucket::top_up(context, args),
    }
}

fn level(args: EntityLimitsArgs) -> OwnedLevel {
    OwnedLevel::entity(args.entity, args.resource)
}
