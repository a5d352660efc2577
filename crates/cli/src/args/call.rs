use clap::Args;

use crate::demand_text::{self, Amount};
use crate::names;

/// Who wants how much of what.
#[derive(Args, Debug)]
pub(crate) struct CallArgs {
    /// The entity that pays
    #[arg(value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: String,
    /// The resource that is used
    #[arg(value_name = "RESOURCE", value_parser = names::resource)]
    pub(crate) resource: String,
    /// How much of which limit; concurrency that is not named takes 1
    #[arg(value_name = "LIMIT=AMOUNT", value_parser = demand_text::parse)]
    pub(crate) amounts: Vec<Amount>,
}
