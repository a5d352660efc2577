use clap::Args;

/// How long to watch.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate demo
  tollgate demo --seconds 5 --seed 7

Keys of two projects call an API that is not there, by limits in a file of its
own, which is gone afterwards. Nothing else is read or written.")]
pub(crate) struct DemoArgs {
    /// How long, in seconds [default: 15]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=3600))]
    pub(crate) seconds: Option<u16>,
    /// Where the random numbers begin, to have the same calls again [default: another one each time]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
}
