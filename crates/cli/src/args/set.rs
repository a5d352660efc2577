use std::time::Duration;

use clap::{Args, Subcommand};
use tollgate::SETS_NAMESPACE;

use super::LimitArgs;
use crate::{duration_text, names};

/// What can be done with limit sets that programs keep in a store.
#[derive(Debug, Subcommand)]
pub(crate) enum SetCommand {
    /// List the limit sets that programs have opened, with how each limit stands
    ///
    /// A set whose limits are all full is shown as idle.
    #[command(after_help = "Examples:\n  tollgate set list\n  tollgate set list --in accounts")]
    List {
        /// Which sets.
        #[command(flatten)]
        place: SetPlaceArgs,
    },
    /// Show a limit set: its limits, how they stand, and whether it is cooling down
    #[command(after_help = "Example:\n  tollgate set show openai/blue")]
    Show(SetArgs),
    /// Admit no calls to a limit set for a time
    ///
    /// Extends a cooldown that lasts, and never shortens one.
    #[command(after_help = "Example:\n  tollgate set cool-down openai/blue 30s")]
    CoolDown {
        /// The set.
        #[command(flatten)]
        set: SetArgs,
        /// How long
        #[arg(value_name = "TIME", value_parser = duration_text::parse)]
        time: Duration,
    },
    /// End the cooldown of a limit set
    #[command(after_help = "Example:\n  tollgate set resume openai/blue")]
    Resume(SetArgs),
    /// Replace limits of a limit set, for every process that shares it
    ///
    /// What was used is carried over. It holds until the next replacement, or until a program opens the set with limits
    /// of a later version.
    #[command(after_help = "Example:\n  tollgate set replace openai/blue -l rpm:250")]
    Replace {
        /// The set.
        #[command(flatten)]
        set: SetArgs,
        /// The limits, each in place of the one of the same name.
        #[command(flatten)]
        limits: LimitArgs,
    },
}

/// Where limit sets are.
#[derive(Args, Debug)]
pub(crate) struct SetPlaceArgs {
    /// The namespace of the limit sets, as the programs name it
    // Its name is not that of the field: that is the global one of the namespace to work in.
    #[arg(
        id = "in",
        long = "in",
        value_name = "NAMESPACE",
        default_value = SETS_NAMESPACE,
        value_parser = names::set_namespace
    )]
    pub(crate) namespace: String,
}

/// A limit set.
#[derive(Args, Debug)]
pub(crate) struct SetArgs {
    /// Its name
    #[arg(value_name = "SET", value_parser = names::limit_set)]
    pub(crate) name: String,
    /// Where it is.
    #[command(flatten)]
    pub(crate) place: SetPlaceArgs,
}
