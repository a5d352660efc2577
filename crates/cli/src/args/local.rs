use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What can be done without AWS.
#[derive(Debug, Subcommand)]
pub(crate) enum LocalCommand {
    /// Serve DynamoDB on this host, with a table for limits
    Up(LocalUpArgs),
}

/// Where, and for how long.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate local up
  tollgate local up --port 0 --tables tables.db

An embedded engine answers on a loopback address until Ctrl-C or SIGTERM ends
it, for development and tests. Any process that reaches the port may do
everything.")]
pub(crate) struct LocalUpArgs {
    /// The port; 0 for any that is free
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    pub(crate) port: u16,
    /// The file that tables are kept in [default: none, they are gone at the end]
    #[arg(long, value_name = "FILE")]
    pub(crate) tables: Option<PathBuf>,
    /// The table to make for limits, unless it is there
    #[arg(long, value_name = "NAME", default_value = "limits")]
    pub(crate) table: String,
    /// End after so many seconds [default: only when told to]
    #[arg(long, value_name = "COUNT")]
    pub(crate) seconds: Option<u32>,
}
