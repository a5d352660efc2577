use std::path::PathBuf;

use clap::Subcommand;

use crate::names;

/// The commands for a limits file.
#[derive(Debug, Subcommand)]
pub(crate) enum LimitsCommand {
    /// Show what applying a limits file would change
    #[command(after_help = FILE_HELP, after_long_help = FILE_LONG_HELP)]
    Plan {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Apply a limits file to the stored limits
    ///
    /// Limits that were removed from the file since it was last applied are deleted; limits that were set by hand are left
    /// alone. The whole file is validated first, so a file with an error changes nothing. Entities are created and moved one
    /// by one and never deleted; then the limits change, up to 47 levels in one transaction.
    #[command(after_help = "Examples:
  tollgate limits apply limits.toml
  tollgate limits apply limits.toml --yes")]
    Apply {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Compare a limits file with the stored limits: exit code 0 if they are equal, 1 if not
    #[command(after_help = "Example:
  tollgate limits diff limits.toml || echo the stored limits differ")]
    Diff {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Export the stored limits as a limits file
    #[command(after_help = "Examples:
  tollgate limits export > limits.toml
  tollgate limits export limits.toml --set prod")]
    Export {
        /// File to write [default: stdout]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Only limits that this managed set manages
        #[arg(long, value_name = "SET", value_parser = names::managed_set)]
        set: Option<String>,
    },
}

const FILE_HELP: &str = "\
Example:
  tollgate limits plan limits.toml";

const FILE_LONG_HELP: &str = "\
Example:
  tollgate limits plan limits.toml

The file:
  set = \"prod\"              # the managed set; \"default\" by default

  [system]                  # for all entities and resources
  limits = [\"rpm:1000\", \"tpm:100000/hour:20000\"]
  on_unavailable = \"allow\"  # block, allow or local

  [resource.\"gpt-4\"]
  limits = [\"rpm:500\", \"slots:4/at-once\"]

  [entity.\"key-1\"]
  name = \"the first key\"    # name, parent and cascade create the entity if it
  parent = \"acme\"           # does not exist; those left out stay unchanged
  cascade = true
  limits = [\"rpm:100\"]      # for all resources

  [entity.\"key-1\".resource.\"gpt-4\"]
  limits = [\"rpm:20\"]";
