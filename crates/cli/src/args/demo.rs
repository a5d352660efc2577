use clap::Args;

/// The arguments of `tollgate demo`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate demo
  tollgate demo --seconds 5 --seed 7

API keys of two projects call mock providers in this process, over two accounts.
The limits, the accounts and the decisions are real; they are in a temporary
file that is deleted at the end. Nothing else is read or written.")]
pub(crate) struct DemoArgs {
    /// Duration in seconds [default: 15]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=3600))]
    pub(crate) seconds: Option<u16>,
    /// Random seed, to repeat the same calls [default: random]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
}
