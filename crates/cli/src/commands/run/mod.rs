//! `tollgate run`: runs a command under limits.

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
use crate::output::{Answer, Format, Output, TextPage, escape};
use crate::units::Units;

/// Acquires, runs and settles.
pub(super) fn run(context: &Context, args: RunArgs) -> Result<Output> {
    let limiter = context.limiter_builder()?.observer(report_expired_lease).build();
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
        wait: args.wait,
        detached: None,
    };
    let lease = match call.take(context, &limiter)? {
        Ok(lease) => lease,
        Err(denied) => return Ok(denied),
    };
    let called = call.admitted(context, &lease);
    let taken = call.taken(&limiter, &lease)?;
    if lease.is_degraded() {
        let policy = "it runs by the policy for that case (on_unavailable)";
        context.note(format_args!("the store did not answer; {policy}, without the shared limits"));
    }
    let ended = if context.dry_run { ProcessEnd::NotRun } else { execute(context, &args) };
    let refunded = settle(lease, &ended, &args);
    ended.print_error(&args.command);
    if context.format == Format::Text && !context.dry_run {
        return Ok(Output::silent(ended.exit()));
    }
    let command = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let exit = ended.exit();
    let answer =
        RunAnswer { called, taken, command, exit_code: ended.code(), signal: ended.signal(), refunded };
    Ok(Output::new(answer).with_exit(exit))
}

/// Prints an error as soon as the lease of the command has expired, so that another command may hold its slots. The command
/// keeps running: only its caller can decide what to do.
fn report_expired_lease(event: &Event<'_>) {
    if matches!(event, Event::ExpiredLease) {
        let error = paint(style::BAD, "error:");
        let why = "it was reset, or its heartbeat was overdue; another command may run at the same time";
        // A write error is ignored: if stderr is closed, there is no reader to report it to.
        let _ = writeln!(anstream::stderr(), "{error} the lease of the command has expired: {why}");
    }
}

/// Runs the command to its end. Meanwhile the limiter renews the lease.
fn execute(context: &Context, args: &RunArgs) -> ProcessEnd {
    let Some((program, rest)) = args.command.split_first() else { return ProcessEnd::NotRun };
    let mut command = Command::new(program);
    command.args(rest);
    if context.format == Format::Json {
        // Stdout is for our own JSON.
        command.stdout(Stdio::from(io::stderr()));
    }
    match watch(&mut command) {
        Ok(status) => ProcessEnd::Status(status),
        Err(why) => ProcessEnd::Failed(why),
    }
}

#[cfg(unix)]
fn watch(command: &mut Command) -> io::Result<std::process::ExitStatus> {
    // Before the command is started, so that no signal is lost.
    let signals = signals::Signals::listen()?;
    let child: Child = command.spawn()?;
    signals.forward_until_exit(child)
}

#[cfg(not(unix))]
fn watch(command: &mut Command) -> io::Result<std::process::ExitStatus> {
    let mut child: Child = command.spawn()?;
    child.wait()
}

/// Ends the lease, and returns whether everything was refunded. An error of the store is printed, but does not change the
/// exit code, because the command has run.
fn settle(lease: LimiterLease<'_>, ended: &ProcessEnd, args: &RunArgs) -> bool {
    // Reports a lease that expired since the last heartbeat; an unavailable store is ignored.
    let _ = lease.heartbeat().wait();
    let refunds = !ended.was_run() || (args.refund_on_failure && !ended.is_success());
    let settled = if refunds { lease.cancel().wait() } else { lease.commit().wait() };
    if let Err(why) = settled {
        // A write error is ignored: if stderr is closed, there is no reader to report it to.
        let error = paint(style::BAD, "error:");
        let why = escape(&why.to_string());
        let _ = writeln!(anstream::stderr(), "{error} the lease of the command cannot be ended: {why}");
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
    /// Called in a dry run only: otherwise there is no output but that of the command.
    fn text(&self, page: &mut TextPage) {
        page.remark(format_args!("would run {}", self.command.join(" ")));
    }
}

impl ProcessEnd {
    /// Returns the exit code of this process.
    fn exit(&self) -> Exit {
        Exit(self.shell_code())
    }
}
