//! `tollgate simulate`: replays a log of calls against other limits.
//!
//! The limits are stored in memory, with a manual clock that follows the log, and every call is made again. So the results
//! are those of the limiter itself.

mod log;
mod names;
mod replay;
mod tally;
mod view;
mod waiting;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tollgate::{Limiter, ManualClock, Memory, Span, Tick};

use super::limits::{LimitsPlan, carry_out, stored_as_file};
use crate::args::SimulateArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::limits_file::{self, LevelConfig, LimitsFile};
use crate::output::{Output, grouped};
use crate::views::OwnedLevel;
use log::{LoggedCall, each_line};
use names::LimitNames;
use replay::{Replay, SimWaitPolicy};
use tally::SimTally;
use view::SimulateAnswer;

/// The maximum number of invalid lines that are reported.
const MALFORMED_SHOWN: u64 = 5;

/// How many lines are read between two updates of the progress line.
const PROGRESS_EVERY: u64 = 50_000;

/// Replays a log.
pub(super) fn run(context: &Context, args: SimulateArgs) -> Result<Output> {
    let (wanted, source) = limits_of(context, &args)?;
    let clock = ManualClock::at(Tick::ZERO);
    let limiter = limiter_with(&wanted, &clock)?;
    let policy =
        if args.wait { SimWaitPolicy::Waits(args.timeout.map(Span::covering)) } else { SimWaitPolicy::None };
    let limits = LimitNames::new(wanted.levels.values().map(|config| &config.limits))?;
    let mut replay = Replay::new(limiter, clock, limits, policy, SimTally::new(args.max));
    let malformed = read(context, &args.log, &mut replay)?;
    let replayed = replay.finish();
    let all = &replayed.tally.all;
    // The simulation has no result if no call could be decided.
    let is_failed = all.failed == all.calls && all.calls + malformed > 0;
    let answer = SimulateAnswer::new(&args, source, malformed, &replayed);
    let exit = if is_failed || answer.exceeds_max_denied { Exit::FAILURE } else { Exit::OK };
    Ok(Output::new(answer).with_exit(exit))
}

/// Returns the limits to replay against, and their source.
fn limits_of(context: &Context, args: &SimulateArgs) -> Result<(LimitsFile, String)> {
    if let Some(file) = &args.limits {
        return Ok((limits_file::read(file)?, file.display().to_string()));
    }
    if !args.all_entities.is_empty() {
        let mut file = LimitsFile::new(limits_file::DEFAULT_SET);
        let config = LevelConfig { limits: args.all_entities.limits()?, on_unavailable: None };
        file.levels.insert(OwnedLevel::system(), config);
        return Ok((file, "the same for all entities".into()));
    }
    let stored = stored_as_file(&context.catalog()?, None)?;
    Ok((stored, format!("those of namespace {}", context.settings.namespace.value)))
}

fn limiter_with(wanted: &LimitsFile, clock: &ManualClock) -> Result<Limiter> {
    let store = Arc::new(Memory::builder().clock(clock.clock()).build());
    let limiter = Limiter::open(store, tollgate::limiter::DEFAULT_NAMESPACE).wait()?;
    let plan = LimitsPlan::new(limiter.catalog(), Path::new("limits"), wanted)?;
    carry_out(limiter.catalog(), &plan, |_| {})?;
    // The queue is unbounded, because the replay reports how long each call waits.
    Ok(Limiter::builder(limiter.catalog().clone()).waiters_max(usize::MAX).build())
}

/// Replays every line, and returns how many were invalid.
fn read(context: &Context, path: &Path, replay: &mut Replay) -> Result<u64> {
    let log: Box<dyn BufRead> = match path.to_str() {
        Some("-") => Box::new(io::stdin().lock()),
        _ => {
            let file = File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
            Box::new(BufReader::with_capacity(1 << 18, file))
        }
    };
    let mut progress = context.progress();
    let mut malformed = 0;
    each_line(log, |number, line| {
        let call = match line {
            Some(line) => parsed(line, replay.limits()),
            None => Err("the line is too long".into()),
        };
        match call {
            Ok(call) => replay.make(number, &call),
            Err(why) => {
                malformed += 1;
                if malformed <= MALFORMED_SHOWN {
                    // The parser's own position is that inside the line.
                    let why = why.split(" at line 1 column").next().unwrap_or_default();
                    context.note(format_args!("{}:{number}: {why}", path.display()));
                }
            }
        }
        if number.is_multiple_of(PROGRESS_EVERY) {
            progress.show(format_args!("{} lines", grouped(number)));
        }
        Ok(())
    })
    .with_context(|| format!("{} cannot be read", path.display()))?;
    if malformed > MALFORMED_SHOWN {
        context.note(format_args!("and {} more invalid lines", malformed - MALFORMED_SHOWN));
    }
    Ok(malformed)
}

/// Parses a line. Validating UTF-8 for the whole line once is cheaper than for each string.
fn parsed<'a>(line: &'a [u8], limits: &LimitNames) -> Result<LoggedCall<'a>, String> {
    let line = std::str::from_utf8(line).map_err(|_| "the line is not valid UTF-8")?;
    let mut call: LoggedCall<'a> = serde_json::from_str(line).map_err(|why| why.to_string())?;
    call.count(limits)?;
    Ok(call)
}
