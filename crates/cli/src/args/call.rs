use clap::Args;

use crate::demand_text::{self, Amount};
use crate::names;

/// The entity, the resource and the amounts of a call.
#[derive(Args, Debug)]
pub(crate) struct CallArgs {
    /// Entity to charge
    #[arg(value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: String,
    /// Resource to use
    #[arg(value_name = "RESOURCE", value_parser = names::resource)]
    pub(crate) resource: String,
    /// Amount of each limit; 1 of each concurrency limit that is not named
    #[arg(value_name = "LIMIT=AMOUNT", value_parser = demand_text::parse)]
    pub(crate) amounts: Vec<Amount>,
}
