use clap::Args;

use crate::names;

/// The arguments of `tollgate peek`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tollgate peek user-1 gpt-4")]
pub(crate) struct PeekArgs {
    /// The entity
    #[arg(value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: String,
    /// The resource
    #[arg(value_name = "RESOURCE", value_parser = names::resource)]
    pub(crate) resource: String,
}
