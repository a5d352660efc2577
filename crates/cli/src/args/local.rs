use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The commands for development without AWS.
#[derive(Debug, Subcommand)]
pub(crate) enum LocalCommand {
    /// Start a local DynamoDB server with a table for limits
    Up(LocalUpArgs),
}

/// The arguments of `tollgate local up`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate local up
  tollgate local up --port 0 --tables tables.db

An embedded engine for development and tests. It listens on a loopback address
until Ctrl-C or SIGTERM. It checks no credentials: any process that reaches the
port has full access.")]
pub(crate) struct LocalUpArgs {
    /// Port to listen on; 0 for any free port
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    pub(crate) port: u16,
    /// File to keep tables in [default: none, tables are lost at the end]
    #[arg(long, value_name = "FILE")]
    pub(crate) tables: Option<PathBuf>,
    /// Table to create for limits, if it does not exist
    #[arg(long, value_name = "NAME", default_value = "limits")]
    pub(crate) table: String,
    /// End after this many seconds [default: run until Ctrl-C or SIGTERM]
    #[arg(long, value_name = "COUNT")]
    pub(crate) seconds: Option<u32>,
}
