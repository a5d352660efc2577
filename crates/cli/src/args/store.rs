use clap::Args;

/// Help for `tollgate status`.
pub(super) const STATUS: &str = "Example:\n  tollgate status --json";

/// Help for `tollgate version`.
pub(super) const VERSION: &str = "Example:\n  tollgate version";

/// Help for `tollgate check`.
pub(super) const CHECK: &str = "Example:\n  tollgate check --store file:limits.db";

/// Help for `tollgate upgrade`.
pub(super) const UPGRADE: &str = "Example:\n  tollgate upgrade --dry-run\n  tollgate upgrade --yes";

/// The arguments of `tollgate upgrade`.
#[derive(Args, Debug)]
pub(crate) struct UpgradeArgs {
    /// Drop data that this version cannot represent
    #[arg(long)]
    pub(crate) drop_unknown: bool,
}
