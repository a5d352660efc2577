use std::time::Duration;

use clap::{Args, Subcommand};
use tollgate::SETS_NAMESPACE;

use super::LimitArgs;
use crate::{duration_text, names};

/// The commands for limit sets that programs open in a store.
#[derive(Debug, Subcommand)]
pub(crate) enum SetCommand {
    /// List the limit sets that programs have opened, with what is left of each limit
    ///
    /// A set whose limits are all full is shown as idle.
    #[command(after_help = "Examples:\n  tollgate set list\n  tollgate set list --in accounts")]
    List {
        /// The namespace of the sets.
        #[command(flatten)]
        location: SetNamespaceArgs,
    },
    /// Show a limit set: its limits, what is left of them, and its cooldown
    #[command(after_help = "Example:\n  tollgate set show openai/blue")]
    Show(SetArgs),
    /// Start a cooldown of a limit set: deny all its calls for a time
    ///
    /// Extends a running cooldown, and never shortens it.
    #[command(after_help = "Example:\n  tollgate set cool-down openai/blue 30s")]
    CoolDown {
        /// The set.
        #[command(flatten)]
        set: SetArgs,
        /// Duration of the cooldown
        #[arg(value_name = "TIME", value_parser = duration_text::parse)]
        time: Duration,
    },
    /// End the cooldown of a limit set
    #[command(after_help = "Example:\n  tollgate set resume openai/blue")]
    Resume(SetArgs),
    /// Replace limits of a limit set, for every process that shares it
    ///
    /// Usage is carried over. The limits hold until the next replacement, or until a program opens the set with limits
    /// of a later version.
    #[command(after_help = "Example:\n  tollgate set replace openai/blue -l rpm:250")]
    Replace {
        /// The set.
        #[command(flatten)]
        set: SetArgs,
        /// The limits, each replacing the one of the same name.
        #[command(flatten)]
        limits: LimitArgs,
    },
}

/// The namespace of limit sets.
#[derive(Args, Debug)]
pub(crate) struct SetNamespaceArgs {
    /// Namespace of the limit sets, as programs name it
    // The id differs from the field because `namespace` is the id of the global option.
    #[arg(
        id = "in",
        long = "in",
        value_name = "NAMESPACE",
        default_value = SETS_NAMESPACE,
        value_parser = names::set_namespace
    )]
    pub(crate) namespace: String,
}

/// The name of a limit set, and its namespace.
#[derive(Args, Debug)]
pub(crate) struct SetArgs {
    /// Name of the limit set
    #[arg(value_name = "SET", value_parser = names::limit_set)]
    pub(crate) name: String,
    /// Its namespace.
    #[command(flatten)]
    pub(crate) location: SetNamespaceArgs,
}
