use clap::Args;

use crate::demand_text::{self, Amount};

/// The arguments of `tollgate settle`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate settle \"$ticket\" tpm=700    # excess becomes debt, the rest a refund
  tollgate settle \"$ticket\" --commit   # used exactly what was acquired
  tollgate settle \"$ticket\" --cancel   # the call was never made

Settling is idempotent: settling a ticket again changes nothing, and the output
says so.")]
pub(crate) struct SettleArgs {
    /// Ticket that `tollgate acquire` printed
    #[arg(value_name = "TICKET")]
    pub(crate) ticket: String,
    /// Amount of a limit that was really used; limits that are not named are charged as acquired
    #[arg(value_name = "LIMIT=AMOUNT", value_parser = demand_text::parse, required_unless_present_any = ["commit", "cancel"])]
    pub(crate) amounts: Vec<Amount>,
    /// Charge exactly what was acquired
    #[arg(long, conflicts_with_all = ["cancel", "amounts"])]
    pub(crate) commit: bool,
    /// Refund everything: the call was never made
    #[arg(long, conflicts_with = "amounts")]
    pub(crate) cancel: bool,
}
