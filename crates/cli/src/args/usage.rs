use clap::{Args, Subcommand};
use tollgate::Tick;
use tollgate::catalog::{UsageQuery, Window};

use super::PageArgs;
use crate::names;
use crate::time_text::TimeArg;

/// The commands for usage.
#[derive(Debug, Subcommand)]
pub(crate) enum UsageCommand {
    /// List the usage of each window
    #[command(after_help = "Examples:
  tollgate usage list --entity key-1 --window day
  tollgate usage list --resource gpt-4 --from 2026-11-01 --until 2026-12-01

A call that is also charged to parents is in the row of each of them; OF
CHILDREN is the part of a row that calls of children used. ADMITTED counts calls
when they are admitted: a call that is cancelled later stays counted.")]
    List(UsageListArgs),
    /// Sum usage
    #[command(after_help = "Examples:
  tollgate usage summary --entity key-1 --window hour --from 24h
  tollgate usage summary --window day

Without --entity a call counts once, however many parents it is charged to.
With one, the calls of its children count as well.")]
    Summary(UsageSelection),
    /// Plot usage, one bar for each window
    #[command(after_help = "Examples:
  tollgate usage plot --entity key-1
  tollgate usage plot --resource gpt-4 --window day --limit tpm

Without --entity a call counts once, however many parents it is charged to.")]
    Plot(UsagePlotArgs),
}

/// The usage to select: entity, resource and time.
#[derive(Args, Debug)]
pub(crate) struct UsageSelection {
    /// Only usage of this entity
    #[arg(short, long, value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: Option<String>,
    /// Only usage of this resource
    #[arg(short, long, value_name = "RESOURCE", value_parser = names::resource)]
    pub(crate) resource: Option<String>,
    /// Length of a window: hour, day or month (UTC); also hourly, daily and monthly
    #[arg(short, long, value_name = "WINDOW", default_value = "hour", value_parser = window)]
    pub(crate) window: Window,
    /// Only windows that begin at this time or later: 2026-11-15, 2026-11-15T14:00:00Z, or 24h for a day ago
    #[arg(long, visible_alias = "start", value_name = "TIME", value_parser = TimeArg::parse)]
    pub(crate) from: Option<TimeArg>,
    /// Only windows that begin before this time
    #[arg(long, visible_alias = "end", value_name = "TIME", value_parser = TimeArg::parse)]
    pub(crate) until: Option<TimeArg>,
}

/// The arguments of `tollgate usage list`.
#[derive(Args, Debug)]
pub(crate) struct UsageListArgs {
    /// The usage to select.
    #[command(flatten)]
    pub(crate) selection: UsageSelection,
    /// The page of the list.
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

/// The arguments of `tollgate usage plot`.
#[derive(Args, Debug)]
pub(crate) struct UsagePlotArgs {
    /// The usage to select.
    #[command(flatten)]
    pub(crate) selection: UsageSelection,
    /// Only this limit [default: every limit that was used]
    #[arg(long, value_name = "NAME")]
    pub(crate) limit: Option<String>,
}

/// The windows and their names.
pub(crate) const WINDOWS: [(&str, Window); 3] =
    [("hour", Window::Hour), ("day", Window::Day), ("month", Window::Month)];

/// Aliases of the windows.
const WINDOWS_TOO: [(&str, Window); 3] =
    [("hourly", Window::Hour), ("daily", Window::Day), ("monthly", Window::Month)];

fn window(text: &str) -> Result<Window, String> {
    let known = WINDOWS.iter().chain(&WINDOWS_TOO).find(|(word, _)| *word == text);
    known.map(|(_, window)| *window).ok_or_else(|| "valid are hour, day and month".into())
}

impl UsageSelection {
    /// Returns the name of the window.
    pub(crate) fn window_word(&self) -> &'static str {
        WINDOWS.iter().find(|(_, window)| *window == self.window).map_or("window", |(word, _)| word)
    }

    /// Converts the arguments to a query, with relative times seen from `now`.
    pub(crate) fn query(&self, now: Tick) -> UsageQuery {
        let mut query = match (&self.entity, &self.resource) {
            (Some(entity), _) => UsageQuery::of_entity(entity, self.window),
            (None, _) => UsageQuery::of_all_entities(self.window),
        };
        if let Some(resource) = &self.resource {
            query = query.resource(resource);
        }
        if let Some(from) = self.from {
            query = query.from(from.seen_from(now));
        }
        match self.until {
            Some(until) => query.until(until.seen_from(now)),
            None => query,
        }
    }

    /// Describes the selection in text output.
    pub(crate) fn name(&self) -> String {
        match (&self.entity, &self.resource) {
            (Some(entity), Some(resource)) => format!("entity {entity}, resource {resource}"),
            (Some(entity), None) => format!("entity {entity}"),
            (None, Some(resource)) => format!("resource {resource}"),
            (None, None) => "all entities".into(),
        }
    }
}
