use std::path::PathBuf;

use clap::Subcommand;

use crate::names;

/// What can be done with a file of limits.
#[derive(Debug, Subcommand)]
pub(crate) enum LimitsCommand {
    /// Show what applying a file of limits would change
    #[command(after_help = FILE_HELP, after_long_help = FILE_LONG_HELP)]
    Plan {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Make the stored limits those of a file
    ///
    /// What the file had when it was last applied, and has no longer, is deleted; what others set by hand is left alone.
    /// Everything is looked at first, so a file with an error changes nothing. Entities are created and moved as the file
    /// says, each by itself, and never deleted; then the limits change, up to 47 levels in one transaction.
    #[command(after_help = "Examples:
  tollgate limits apply limits.toml
  tollgate limits apply limits.toml --yes")]
    Apply {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Compare a file of limits with what is stored: exit code 0 if they are equal, 1 if not
    #[command(after_help = "Example:
  tollgate limits diff limits.toml || echo the stored limits differ")]
    Diff {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Write the stored limits as a file
    #[command(after_help = "Examples:
  tollgate limits export > limits.toml
  tollgate limits export limits.toml --set prod")]
    Export {
        /// The file; stdout if not said
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Only what this managed set looks after
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
  set = \"prod\"              # which managed set it is; \"default\" if not said

  [system]                  # for all entities and resources
  limits = [\"rpm:1000\", \"tpm:100000/hour:20000\"]
  on_unavailable = \"allow\"  # block, allow or local

  [resource.\"gpt-4\"]
  limits = [\"rpm:500\", \"slots:4/at-once\"]

  [entity.\"key-1\"]
  name = \"the first key\"    # name, parent and cascade create the entity if need
  parent = \"acme\"           # be; what is not said of them stays as it is
  cascade = true
  limits = [\"rpm:100\"]      # for all resources

  [entity.\"key-1\".resource.\"gpt-4\"]
  limits = [\"rpm:20\"]";
