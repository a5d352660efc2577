//! A command that runs when the limits allow it, and gives back when it ends.

mod exit_status;
#[cfg(unix)]
mod signals;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

use anyhow::Result;
use serde::Serialize;
use tollgate::Event;
use tollgate::LimiterLease;

use self::exit_status::ProcessEnd;
use super::call::{Called, LimiterCall, one_of_each};
use crate::args::RunArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::style::{self, paint};
use crate::output::{Answer, Format, Output, TextPage, harmless};
use crate::units::Units;

/// Acquires, runs and settles.
pub(super) fn run(context: &Context, args: RunArgs) -> Result<Output> {
    let limiter = context.limiter_builder()?.observer(say_if_lost).build();
    let units = Units::of_call(limiter.catalog(), &args.entity, &args.resource)?;
    let amounts = match &args.amounts[..] {
        [] => one_of_each(&limiter, &args.entity, &args.resource)?,
        given => given.to_vec(),
    };
    let amounts = units.exact(&amounts)?;
    let call = LimiterCall {
        entity: &args.entity,
        resource: &args.resource,
        amounts: &amounts,
        also: &[],
        units: &units,
        patience: args.patience,
        detached: None,
    };
    let lease = match call.take(context, &limiter)? {
        Ok(lease) => lease,
        Err(refused) => return Ok(refused),
    };
    let called = call.admitted(context, &lease);
    let taken = call.taken(&limiter, &lease)?;
    if lease.is_degraded() {
        let policy = "it runs by what the system says for that case (on_unavailable)";
        context.note(format_args!("the store did not answer; {policy}, without the limits of others"));
    }
    let ended = if context.dry_run { ProcessEnd::NotRun } else { execute(context, &args) };
    let refunded = settle(lease, &ended, &args);
    ended.tell(&args.command);
    if context.format == Format::Text && !context.dry_run {
        return Ok(Output::silent(ended.exit()));
    }
    let command = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let exit = ended.exit();
    let answer =
        RunAnswer { called, taken, command, exit_code: ended.code(), signal: ended.signal(), refunded };
    Ok(Output::new(answer).with_exit(exit))
}

/// Reports that another command may hold the slots of this one, as soon as the limiter notices. The command goes on:
/// only its caller knows whether it may.
fn say_if_lost(event: &Event<'_>) {
    if matches!(event, Event::ExpiredLease) {
        let error = paint(style::BAD, "error:");
        let why = "it was reset, or nothing was heard of it for too long; another may run at the same time";
        // A write error is ignored: if stderr is closed, there is no reader to report it to.
        let _ = writeln!(anstream::stderr(), "{error} what the command held was lost: {why}");
    }
}

/// Runs the command to its end. Meanwhile the limiter keeps what it holds.
fn execute(context: &Context, args: &RunArgs) -> ProcessEnd {
    let Some((program, rest)) = args.command.split_first() else { return ProcessEnd::NotRun };
    let mut command = Command::new(program);
    command.args(rest);
    if context.format == Format::Json {
        // Stdout is for our answer.
        command.stdout(Stdio::from(io::stderr()));
    }
    match watch(&mut command) {
        Ok(status) => ProcessEnd::Status(status),
        Err(why) => ProcessEnd::Failed(why),
    }
}

#[cfg(unix)]
fn watch(command: &mut Command) -> io::Result<std::process::ExitStatus> {
    // Before the command is there, so that no signal is lost on it.
    let signals = signals::Signals::listen()?;
    let child: Child = command.spawn()?;
    signals.pass_on_until_the_end(child)
}

#[cfg(not(unix))]
fn watch(command: &mut Command) -> io::Result<std::process::ExitStatus> {
    let mut child: Child = command.spawn()?;
    child.wait()
}

/// Ends the lease, and answers whether everything was given back. If that cannot be written down it is said, but the
/// command has run: its exit code stays ours.
fn settle(lease: LimiterLease<'_>, ended: &ProcessEnd, args: &RunArgs) -> bool {
    // If the lease was lost since the last heartbeat, that is reported; a store that is away cannot say.
    let _ = lease.heartbeat().wait();
    let refunds = !ended.was_run() || (args.refund_on_failure && !ended.is_success());
    let settled = if refunds { lease.cancel().wait() } else { lease.commit().wait() };
    if let Err(why) = settled {
        // A write error is ignored: if stderr is closed, there is no reader to report it to.
        let error = paint(style::BAD, "error:");
        let why = harmless(&why.to_string());
        let _ = writeln!(anstream::stderr(), "{error} the end of the command cannot be written down: {why}");
        return false;
    }
    refunds
}

#[derive(Serialize)]
struct RunAnswer {
    #[serde(flatten)]
    called: Called,
    taken: BTreeMap<String, u64>,
    command: Vec<String>,
    /// `null` if it was not run, or if a signal ended it.
    exit_code: Option<i32>,
    signal: Option<i32>,
    refunded: bool,
}

impl Answer for RunAnswer {
    /// Asked for in a dry run: otherwise the command has said what there is to say.
    fn text(&self, page: &mut TextPage) {
        page.remark(format_args!("would run {}", self.command.join(" ")));
    }
}

impl ProcessEnd {
    /// Returns the exit code that says the same to the process that started us.
    fn exit(&self) -> Exit {
        Exit(self.shell_code())
    }
}
