use clap::{Args, Subcommand};

use super::{LimitArgs, PageArgs};
use crate::demand_text::{self, Amount};
use crate::names;

/// The commands for entities.
#[derive(Debug, Subcommand)]
pub(crate) enum EntityCommand {
    /// Create an entity; needed only for a parent, a name or metadata
    #[command(after_help = "Examples:
  tollgate entity create acme --name \"Acme Ltd\" -m plan=gold
  tollgate entity create key-1 --parent acme --cascade")]
    Create(EntityCreateArgs),
    /// Show an entity: its parent, its limits and what is left in its buckets
    #[command(after_help = "Example:\n  tollgate entity show key-1")]
    Show {
        /// The entity
        #[arg(value_name = "ENTITY", value_parser = names::entity)]
        entity: String,
    },
    /// Delete an entity with its limits, buckets and usage
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
        /// The page of the list.
        #[command(flatten)]
        page: PageArgs,
    },
    /// Give an entity another parent, or none
    #[command(after_help = "Examples:
  tollgate entity set-parent key-1 acme --cascade true
  tollgate entity set-parent key-1 --none")]
    SetParent(EntitySetParentArgs),
    /// Set the limits of an entity, replacing the stored ones
    #[command(after_help = "Examples:
  tollgate entity set-limits key-1 -l rpm:100 -l tpm:10000/hour:20000
  tollgate entity set-limits key-1 --resource gpt-4 -l rpm:20")]
    SetLimits(EntitySetLimitsArgs),
    /// Show the stored limits of an entity
    #[command(after_help = "Example:\n  tollgate entity get-limits key-1 --resource gpt-4")]
    GetLimits(EntityLimitsArgs),
    /// Delete the stored limits of an entity
    #[command(after_help = "Example:\n  tollgate entity delete-limits key-1 --resource gpt-4")]
    DeleteLimits(EntityLimitsArgs),
    /// List entities
    #[command(after_help = "Examples:
  tollgate entity list
  tollgate entity list --with-custom-limits gpt-4")]
    List(EntityListArgs),
    /// List the resources for which entities have their own limits
    #[command(after_help = "Example:\n  tollgate entity list-resources")]
    ListResources,
    /// Set whether calls of an entity are also charged to its parent, overriding the resource
    #[command(after_help = "Examples:
  tollgate entity set-cascade key-1 false --resource budget
  tollgate entity set-cascade key-1 true")]
    SetCascade {
        /// The entity
        #[arg(value_name = "ENTITY", value_parser = names::entity)]
        entity: String,
        /// Whether calls are also charged to the parent
        #[arg(value_name = "BOOL", action = clap::ArgAction::Set)]
        cascade: bool,
        /// Only calls to this resource
        #[arg(short, long, value_name = "RESOURCE", value_parser = names::resource)]
        resource: Option<String>,
    },
    /// Undo set-cascade, so that the resource or the entity's own setting decides
    #[command(after_help = "Example:\n  tollgate entity unset-cascade key-1 --resource budget")]
    UnsetCascade {
        /// The entity
        #[arg(value_name = "ENTITY", value_parser = names::entity)]
        entity: String,
        /// Only for calls to this resource
        #[arg(short, long, value_name = "RESOURCE", value_parser = names::resource)]
        resource: Option<String>,
    },
    /// Deny every call of an entity, and of the entities that cascade to it
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
        /// Only calls to this resource, even if the resource itself is disabled
        #[arg(short, long, value_name = "RESOURCE", value_parser = names::resource)]
        resource: Option<String>,
        /// Undo enable and disable for the entity and the resource, so that the resource's own setting decides
        #[arg(long, requires = "resource")]
        inherit: bool,
    },
    /// Reset a bucket of an entity, as if nothing had been used
    #[command(after_help = "Example:\n  tollgate entity reset key-1 gpt-4 --key ticket-812")]
    Reset(EntityResetArgs),
    /// Add credit to a bucket of an entity, up to its capacity
    #[command(after_help = "Example:\n  tollgate entity top-up key-1 gpt-4 tpm=5000 --key invoice-17")]
    TopUp(EntityTopUpArgs),
}

/// The arguments of `tollgate entity create`.
#[derive(Args, Debug)]
pub(crate) struct EntityCreateArgs {
    /// Its id
    #[arg(value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: String,
    /// Display name
    #[arg(long, visible_alias = "display-name", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Its parent, which must exist
    #[arg(long, value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) parent: Option<String>,
    /// Also charge its calls to its parent
    #[arg(long, requires = "parent")]
    pub(crate) cascade: bool,
    /// Metadata; may be repeated
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) metadata: Vec<(String, String)>,
}

/// The arguments of `tollgate entity set-parent`.
#[derive(Args, Debug)]
pub(crate) struct EntitySetParentArgs {
    /// The entity
    #[arg(value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: String,
    /// Its new parent
    #[arg(value_name = "PARENT", value_parser = names::entity, required_unless_present = "none")]
    pub(crate) parent: Option<String>,
    /// Remove its parent
    #[arg(long, conflicts_with = "parent")]
    pub(crate) none: bool,
    /// Whether its calls are also charged to its parent [default: unchanged]
    #[arg(long, value_name = "BOOL")]
    pub(crate) cascade: Option<bool>,
}

/// The arguments of `tollgate entity set-limits`.
#[derive(Args, Debug)]
pub(crate) struct EntitySetLimitsArgs {
    /// The entity
    #[arg(value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: String,
    /// Only for this resource [default: all resources without their own limits]
    #[arg(short, long, value_name = "RESOURCE", value_parser = names::resource)]
    pub(crate) resource: Option<String>,
    /// The limits.
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// The arguments of `tollgate entity get-limits` and `delete-limits`.
#[derive(Args, Debug)]
pub(crate) struct EntityLimitsArgs {
    /// The entity
    #[arg(value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: String,
    /// Limits for this resource [default: for all resources without their own limits]
    #[arg(short, long, value_name = "RESOURCE", value_parser = names::resource)]
    pub(crate) resource: Option<String>,
}

/// The arguments of `tollgate entity list`.
#[derive(Args, Debug)]
pub(crate) struct EntityListArgs {
    /// Only entities with their own limits for this resource, or _default_ for all resources
    #[arg(long, value_name = "RESOURCE", value_parser = resource_or_default)]
    pub(crate) with_custom_limits: Option<String>,
    /// The page of the list.
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

/// The arguments of `tollgate entity reset`.
#[derive(Args, Debug)]
pub(crate) struct EntityResetArgs {
    /// The entity
    #[arg(value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: String,
    /// The resource
    #[arg(value_name = "RESOURCE", value_parser = names::resource)]
    pub(crate) resource: String,
    /// Idempotency key: repeated commands with the same key have one effect
    #[arg(long, value_name = "KEY", value_parser = names::key)]
    pub(crate) key: Option<String>,
}

/// The arguments of `tollgate entity top-up`.
#[derive(Args, Debug)]
pub(crate) struct EntityTopUpArgs {
    /// The entity
    #[arg(value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: String,
    /// The resource
    #[arg(value_name = "RESOURCE", value_parser = names::resource)]
    pub(crate) resource: String,
    /// Amount of each limit
    #[arg(required = true, value_name = "LIMIT=AMOUNT", value_parser = demand_text::parse)]
    pub(crate) amounts: Vec<Amount>,
    /// Idempotency key: repeated commands with the same key have one effect
    #[arg(long, value_name = "KEY", value_parser = names::key)]
    pub(crate) key: Option<String>,
}

fn resource_or_default(text: &str) -> Result<String, String> {
    if text == tollgate::catalog::DEFAULT_RESOURCE { Ok(text.into()) } else { names::resource(text) }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err("it has no '=' with a key before it; valid is KEY=VALUE, such as plan=gold".into()),
    }
}
