use clap::Args;

use crate::demand_text::{self, Amount};

/// A ticket, and what became of it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate settle \"$ticket\" tpm=700    # more is owed, less comes back
  tollgate settle \"$ticket\" --commit   # it was used as it was taken
  tollgate settle \"$ticket\" --cancel   # nothing of it happened

It counts once: settling a ticket again changes nothing, and the answer says so.")]
pub(crate) struct SettleArgs {
    /// What `tollgate acquire` printed
    #[arg(value_name = "TICKET")]
    pub(crate) ticket: String,
    /// What was really used of a limit; what is not named counts as it was taken
    #[arg(value_name = "LIMIT=AMOUNT", value_parser = demand_text::parse, required_unless_present_any = ["commit", "cancel"])]
    pub(crate) amounts: Vec<Amount>,
    /// Let it count as it was taken
    #[arg(long, conflicts_with_all = ["cancel", "amounts"])]
    pub(crate) commit: bool,
    /// Give everything back: the call was never made
    #[arg(long, conflicts_with = "amounts")]
    pub(crate) cancel: bool,
}
