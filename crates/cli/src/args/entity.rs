use clap::{Args, Subcommand};

use super::{LimitArgs, PageArgs};
use crate::demand_text::{self, Amount};
use crate::names;

/// What can be done with entities.
#[derive(Debug, Subcommand)]
pub(crate) enum EntityCommand {
    /// Create an entity; one that has no parent and no name need not be created
    #[command(after_help = "Examples:
  tollgate entity create acme --name \"Acme Ltd\" -m plan=gold
  tollgate entity create key-1 --parent acme --cascade")]
    Create(EntityCreateArgs),
    /// Show an entity: its parent, its limits and how its buckets stand
    #[command(after_help = "Example:\n  tollgate entity show key-1")]
    Show {
        /// The entity
        #[arg(value_name = "ENTITY", value_parser = names::entity)]
        entity: String,
    },
    /// Delete an entity, with its limits, its buckets and its usage
    #[command(after_help = "Example:\n  tollgate entity delete key-1")]
    Delete {
        /// The entity
        #[arg(value_name = "ENTITY", value_parser = names::entity)]
        entity: String,
    },
    /// List the children of an entity
    #[command(after_help = "Example:\n  tollgate entity children acme")]
    Children {
        /// The entity
        #[arg(value_name = "ENTITY", value_parser = names::entity)]
        entity: String,
        /// Which part of the list.
        #[command(flatten)]
        page: PageArgs,
    },
    /// Give an entity another parent, or none
    #[command(after_help = "Examples:
  tollgate entity set-parent key-1 acme --cascade true
  tollgate entity set-parent key-1 --none")]
    SetParent(EntitySetParentArgs),
    /// Store limits for an entity, in place of those that are there
    #[command(after_help = "Examples:
  tollgate entity set-limits key-1 -l rpm:100 -l tpm:10000/hour:20000
  tollgate entity set-limits key-1 --resource gpt-4 -l rpm:20")]
    SetLimits(EntitySetLimitsArgs),
    /// Show the limits that are stored for an entity
    #[command(after_help = "Example:\n  tollgate entity get-limits key-1 --resource gpt-4")]
    GetLimits(EntityLimitsArgs),
    /// Delete the limits that are stored for an entity
    #[command(after_help = "Example:\n  tollgate entity delete-limits key-1 --resource gpt-4")]
    DeleteLimits(EntityLimitsArgs),
    /// List entities
    #[command(after_help = "Examples:
  tollgate entity list
  tollgate entity list --with-custom-limits gpt-4")]
    List(EntityListArgs),
    /// List the resources for which entities have limits of their own
    #[command(after_help = "Example:\n  tollgate entity list-resources")]
    ListResources,
    /// Say whether calls of an entity are charged to its parent, too, whatever the resource says
    #[command(after_help = "Examples:
  tollgate entity set-cascade key-1 false --resource budget
  tollgate entity set-cascade key-1 true")]
    SetCascade {
        /// The entity
        #[arg(value_name = "ENTITY", value_parser = names::entity)]
        entity: String,
        /// Whether they are
        #[arg(value_name = "BOOL", action = clap::ArgAction::Set)]
        cascade: bool,
        /// Only calls to this resource
        #[arg(short, long, value_name = "RESOURCE", value_parser = names::resource)]
        resource: Option<String>,
    },
    /// Take that back, so that the resource decides, or the entity itself
    #[command(after_help = "Example:\n  tollgate entity unset-cascade key-1 --resource budget")]
    UnsetCascade {
        /// The entity
        #[arg(value_name = "ENTITY", value_parser = names::entity)]
        entity: String,
        /// Only for calls to this resource
        #[arg(short, long, value_name = "RESOURCE", value_parser = names::resource)]
        resource: Option<String>,
    },
    /// Refuse every call of an entity, and of those that cascade to it
    #[command(after_help = "Examples:
  tollgate entity disable key-1
  tollgate entity disable key-1 --resource gpt-4")]
    Disable {
        /// The entity
        #[arg(value_name = "ENTITY", value_parser = names::entity)]
        entity: String,
        /// Only calls to this resource
        #[arg(short, long, value_name = "RESOURCE", value_parser = names::resource)]
        resource: Option<String>,
    },
    /// Admit the calls of an entity again
    #[command(after_help = "Examples:
  tollgate entity enable key-1
  tollgate entity enable key-1 --resource gpt-4
  tollgate entity enable key-1 --resource gpt-4 --inherit")]
    Enable {
        /// The entity
        #[arg(value_name = "ENTITY", value_parser = names::entity)]
        entity: String,
        /// Calls to this resource, though the resource itself is disabled
        #[arg(short, long, value_name = "RESOURCE", value_parser = names::resource)]
        resource: Option<String>,
        /// Take back what was said of the entity and the resource, so that the resource's own switch holds
        #[arg(long, requires = "resource")]
        inherit: bool,
    },
    /// Make a bucket of an entity as if nothing had been used
    #[command(after_help = "Example:\n  tollgate entity reset key-1 gpt-4 --key ticket-812")]
    Reset(EntityResetArgs),
    /// Give a bucket of an entity credit, up to what is full
    #[command(after_help = "Example:\n  tollgate entity top-up key-1 gpt-4 tpm=5000 --key invoice-17")]
    TopUp(EntityTopUpArgs),
}

/// An entity to be created.
#[derive(Args, Debug)]
pub(crate) struct EntityCreateArgs {
    /// Its id
    #[arg(value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: String,
    /// What people call it
    #[arg(long, visible_alias = "display-name", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Its parent, which must exist
    #[arg(long, value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) parent: Option<String>,
    /// Charge its calls to its parent, too
    #[arg(long, requires = "parent")]
    pub(crate) cascade: bool,
    /// Something else to be known
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) metadata: Vec<(String, String)>,
}

/// An entity and its parent to be.
#[derive(Args, Debug)]
pub(crate) struct EntitySetParentArgs {
    /// The entity
    #[arg(value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: String,
    /// Its parent from now on
    #[arg(value_name = "PARENT", value_parser = names::entity, required_unless_present = "none")]
    pub(crate) parent: Option<String>,
    /// It has no parent from now on
    #[arg(long, conflicts_with = "parent")]
    pub(crate) none: bool,
    /// Whether its calls are charged to its parent, too; if not said, that stays as it is
    #[arg(long, value_name = "BOOL")]
    pub(crate) cascade: Option<bool>,
}

/// An entity and its limits to be.
#[derive(Args, Debug)]
pub(crate) struct EntitySetLimitsArgs {
    /// The entity
    #[arg(value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: String,
    /// Only for this resource; for all others if not said
    #[arg(short, long, value_name = "RESOURCE", value_parser = names::resource)]
    pub(crate) resource: Option<String>,
    /// The limits.
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// The limits of an entity.
#[derive(Args, Debug)]
pub(crate) struct EntityLimitsArgs {
    /// The entity
    #[arg(value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: String,
    /// Those for this resource; if not said, those for all that have none of their own
    #[arg(short, long, value_name = "RESOURCE", value_parser = names::resource)]
    pub(crate) resource: Option<String>,
}

/// Which entities.
#[derive(Args, Debug)]
pub(crate) struct EntityListArgs {
    /// Only those with limits of their own for this resource, or _default_ for all resources
    #[arg(long, value_name = "RESOURCE", value_parser = resource_or_default)]
    pub(crate) with_custom_limits: Option<String>,
    /// Which part of the list.
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

/// A bucket to be reset.
#[derive(Args, Debug)]
pub(crate) struct EntityResetArgs {
    /// The entity
    #[arg(value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: String,
    /// The resource
    #[arg(value_name = "RESOURCE", value_parser = names::resource)]
    pub(crate) resource: String,
    /// Do it once for this key, however often it is asked
    #[arg(long, value_name = "KEY", value_parser = names::key)]
    pub(crate) key: Option<String>,
}

/// A bucket to be given credit.
#[derive(Args, Debug)]
pub(crate) struct EntityTopUpArgs {
    /// The entity
    #[arg(value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: String,
    /// The resource
    #[arg(value_name = "RESOURCE", value_parser = names::resource)]
    pub(crate) resource: String,
    /// How much of which limit
    #[arg(required = true, value_name = "LIMIT=AMOUNT", value_parser = demand_text::parse)]
    pub(crate) amounts: Vec<Amount>,
    /// Do it once for this key, however often it is asked
    #[arg(long, value_name = "KEY", value_parser = names::key)]
    pub(crate) key: Option<String>,
}

fn resource_or_default(text: &str) -> Result<String, String> {
    if text == tollgate::catalog::DEFAULT_RESOURCE { Ok(text.into()) } else { names::resource(text) }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err("there is no '=' with a key before it; valid is KEY=VALUE, such as plan=gold".into()),
    }
}
