//! `tollgate batch run`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tollgate::store::records::Records;
use tollgate::{Demand, Limit, LimitSet};
use tollgate_batch::{Batch, BatchEvent, ItemAttempt, Run, SharedCooldown, SkipReason, Summary};
use tollgate_provider::Estimator;

use super::account::{self, AccountConfig, AccountConfigs, Api, KeyAt};
use super::calls::{BatchCalls, by_name};
use super::closed::ClosedAccounts;
use super::dry_run::dry_run;
use super::feed::Feed;
use super::header::{self, Header};
use super::http::HttpCaller;
use super::input::{self, BadLines, PlannedRequest, Requests};
use super::key::{self, Chosen, Recipient, Ways};
use super::last_error::LastError;
use super::output::Answered;
use super::price::Prices;
use super::reachability::Reachability;
use super::reasons::Reasons;
use super::throttling;
use super::view::BatchSummaryAnswer;
use super::watch::ProgressView;
use super::{changed, duplicate, endpoint, events, export, files, price_table, survey};
use crate::args::BatchRunArgs;
use crate::commands::shutdown::ServerSignal;
use crate::context::Context;
use crate::exit::{Exit, UsageError};
use crate::limit_text::counts_tokens;
use crate::output::{Format, Output, grouped};

/// Sends all requests, and returns the summary.
pub(super) fn run(context: &Context, args: BatchRunArgs) -> Result<Output> {
    let accounts = accounts(&args)?;
    let bad = Arc::new(BadLines::new(files::errors_path(&args), &args.requests));
    let lines = input::open(&args.requests)?;
    files::check(&args, &bad)?;
    let total = survey::check(&args, &accounts.prices)?;
    let caller = HttpCaller::new(args.proxy.as_ref())?;
    for notice in &accounts.notices {
        context.note(notice);
    }
    if context.dry_run {
        return dry_run(&args, &accounts);
    }
    let AccountConfigs { accounts, prices, .. } = accounts;
    let prices = Arc::new(prices);
    let estimator = Arc::new(Estimator::new());
    let used_prices = Arc::clone(&prices);
    let bounded = args.max_cost.is_some();
    let requests =
        Requests::new(lines, Arc::clone(&estimator), Arc::clone(&prices), bounded, Arc::clone(&bad));
    let shared = args.share.as_deref().map(|name| shared(context, name)).transpose()?;
    let journal = files::open_results(&args)?;
    bad.empty_old().with_context(|| format!("{} cannot be written", bad.path().display()))?;
    let closed = ClosedAccounts::default();
    let last_error = LastError::default();
    let batch = batch(&args, &accounts, shared)?;
    let batch =
        batch.observer(observer(context.format, &bad, &closed, &last_error, export::journal_path(&args)));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut reasons = Reasons::default();
    let reachability = Arc::new(Reachability::default());
    let summary = runtime.block_on(async {
        let mut shutdown = ServerSignal::watch()?;
        let reachability = Arc::clone(&reachability);
        let caller = Arc::new(BatchCalls {
            caller,
            accounts: by_name(accounts),
            prices,
            estimator,
            reachability: Arc::clone(&reachability),
            attempts: args.attempts.into(),
        });
        let run = batch.resume_stream(
            journal,
            Feed::new(requests)?,
            move |attempt: ItemAttempt<PlannedRequest>| {
                let caller = Arc::clone(&caller);
                async move { caller.call(&attempt).await }
            },
        );
        let watch = ProgressView::new(context, total, Arc::clone(&bad), last_error);
        watched(watch, run, &mut shutdown, &mut reasons, &closed, &reachability).await
    })?;
    for notice in closed.take_notices() {
        context.warn(notice);
    }
    warn_of_bad_lines(context, &summary, &bad);
    // The journal has all results, so the summary is shown even if they cannot be written in their format.
    let unwritten = export::write(&args).err().map(|why| format!("{why:#}"));
    if let Some(why) = &unwritten {
        context.warn(why);
    }
    let unreachable = reachability.reason();
    if let (Some(reason), Format::Json) = (&unreachable, context.format) {
        // In text output it is part of the summary.
        context.warn(reason);
    }
    let exit = match (&unreachable, is_good(&summary, &bad) && unwritten.is_none()) {
        (Some(_), _) => Exit::UNAVAILABLE,
        (None, true) => Exit::OK,
        (None, false) => Exit::FAILURE,
    };
    let answer = BatchSummaryAnswer::new(&summary, reasons, &args.output, &bad).with_prices(&used_prices);
    let answer = answer.with_journal(&export::journal_path(&args), unwritten);
    let answer = answer.with_stop_reason(unreachable);
    Ok(Output::new(answer).with_exit(exit))
}

/// Returns true if every request of the input succeeded, and no account was closed.
fn is_good(summary: &Summary, bad: &BadLines) -> bool {
    let progress = &summary.progress;
    let without = progress.failed + progress.failed_before + progress.unfinished;
    let passed_over = progress.duplicates + progress.changed + bad.count();
    let is_open = summary.scopes.iter().all(|scope| scope.closed.is_none());
    without + passed_over == 0 && is_open && summary.stopped.is_none() && bad.broken().is_none()
}

/// Reports on stderr which lines of the input were not sent, because the screen may not have shown it.
fn warn_of_bad_lines(context: &Context, summary: &Summary, bad: &BadLines) {
    let progress = &summary.progress;
    let parts = [
        ("invalid lines", bad.count()),
        ("duplicate ids", progress.duplicates),
        ("changed since their result", progress.changed),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{what}: {}", grouped(*count)))
        .collect();
    if let (false, Some(first)) = (parts.is_empty(), bad.first()) {
        let parts = parts.join(", ");
        let path = bad.path().display();
        context.warn(format_args!("lines that were not sent are in {path}: {parts}; {first}"));
    }
    if let Some(why) = bad.broken() {
        context.warn(&why);
    }
}

/// Returns the observer of a batch: it updates the view, writes skipped requests to the errors file, and prints events.
fn observer(
    format: Format,
    bad: &Arc<BadLines>,
    closed: &ClosedAccounts,
    last_error: &LastError,
    results: PathBuf,
) -> impl Fn(&BatchEvent<'_>) + Send + use<> + 'static {
    let bad = Arc::clone(bad);
    let closed = closed.clone();
    let last_error = last_error.clone();
    move |event| {
        closed.observe(event);
        last_error.observe(event);
        match event {
            BatchEvent::Skipped { id, index, reason: SkipReason::Duplicate } => {
                bad.put_item_aside(*index, id, &duplicate(id));
            }
            BatchEvent::Skipped { id, index, reason: SkipReason::Changed } => {
                bad.put_item_aside(*index, id, &changed(id, &results));
            }
            _ => {}
        }
        if format == Format::Json {
            events::write(event);
        }
    }
}

/// Reads outcomes until the batch ends, and shows progress. The first signal shuts the batch down gracefully; the second one
/// ends it at once.
async fn watched(
    mut watch: ProgressView<'_>,
    mut run: Run<Answered>,
    shutdown: &mut ServerSignal,
    reasons: &mut Reasons,
    closed: &ClosedAccounts,
    reachability: &Reachability,
) -> Result<Summary> {
    let stopper = run.stopper();
    let mut is_ending = false;
    loop {
        tokio::select! {
            outcome = run.next() => match outcome {
                Some(outcome) => reasons.count(&outcome),
                None => break,
            },
            () = watch.due() => {
                for notice in closed.take_notices() {
                    watch.warn(&notice);
                }
                watch.show(&run);
            }
            () = reachability.unreachable() => stopper.shut_down(),
            signal = shutdown.wait(None) => {
                signal?;
                if is_ending {
                    return Err(anyhow::anyhow!("ended by a second signal; --resume continues"));
                }
                is_ending = true;
                watch.end();
                stopper.shut_down();
            }
        }
    }
    drop(watch);
    run.finish().await.context("the batch ended unexpectedly")
}

/// Reads accounts with their keys and prices.
fn accounts(args: &BatchRunArgs) -> Result<AccountConfigs> {
    let environment = |name: &str| std::env::var(name).ok();
    let headers: Vec<Header> =
        args.header.iter().map(header::parse).collect::<Result<_, _>>().map_err(UsageError)?;
    let mut accounts = match &args.accounts {
        Some(path) => {
            let mut accounts = AccountConfigs::read(path, &environment)?;
            let limits: Vec<Limit> = args.limits.limits()?.iter().cloned().collect();
            for account in &mut accounts.accounts {
                account.limits.extend(limits.iter().cloned());
            }
            accounts
        }
        None => single_account(args, &environment)?,
    };
    for account in &mut accounts.accounts {
        account.headers.extend(headers.iter().cloned());
    }
    if let Some(path) = &args.prices {
        accounts.prices = accounts.prices.or(Prices::open(path)?);
    }
    accounts.prices = accounts.prices.or(price_table::built_in());
    Ok(accounts)
}

/// Returns the account that the options describe.
fn single_account(
    args: &BatchRunArgs,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<AccountConfigs> {
    let url = match (&args.base_url, args.api) {
        (Some(url), _) => url,
        (None, Api::Openai) => "https://api.openai.com/v1",
        (None, Api::Anthropic) => "https://api.anthropic.com",
        (None, Api::Gemini) => "https://generativelanguage.googleapis.com/v1beta",
        (None, Api::Azure) => {
            let why = "--api azure needs --base-url, such as https://NAME.openai.azure.com";
            return Err(UsageError(why.into()).into());
        }
    };
    let base_url = account::base_url(url).map_err(|why| UsageError(why.to_string()))?;
    let at = KeyAt { variable: args.key_env.clone(), file: args.key_file.clone() };
    let recipient = Recipient { api: args.api, base_url: &base_url, at, ways: Ways::Options };
    let Chosen { key, notice } = key::choose(recipient, environment)?;
    let limits = args.limits.limits()?.iter().cloned().collect();
    let api_version = args.api_version.clone();
    endpoint::check_version(args.api, api_version.as_deref()).map_err(UsageError)?;
    let account = AccountConfig {
        name: "default".into(),
        base_url,
        api: args.api,
        key,
        limits,
        api_version,
        headers: Vec::new(),
    };
    Ok(AccountConfigs {
        accounts: vec![account],
        prices: Prices::default(),
        notices: notice.into_iter().collect(),
    })
}

fn shared(context: &Context, name: &str) -> Result<SharedCooldown> {
    let store = context.store_to_change()?;
    let clock = store.clock().clone();
    let records: Arc<dyn Records> = store;
    Ok(SharedCooldown::new(records, &format!("batch/{name}")).clock(clock))
}

fn batch(args: &BatchRunArgs, accounts: &[AccountConfig], shared: Option<SharedCooldown>) -> Result<Batch> {
    let mut batch = Batch::new()
        .workers(args.workers.into())
        .attempts(args.attempts.into())
        .attempt_deadline(args.call_timeout);
    for account in accounts {
        batch = if account.limits.is_empty() {
            batch.account(&*account.name)
        } else {
            // Calls name the limits of all accounts, because any of them may get the call.
            let limits = LimitSet::builder().limits(account.limits.iter().cloned()).skip_unknown();
            batch.account_with(&*account.name, limits.build()?)
        };
    }
    batch = throttling::apply(batch, &args.retry);
    let names = LimitRoles::of(accounts);
    batch = batch.demand(move |tokens| names.demand(tokens));
    if let Some(deadline) = args.deadline {
        batch = batch.deadline(deadline);
    }
    if let Some(tokens) = args.max_tokens {
        batch = batch.max_tokens(tokens);
    }
    if let Some(cost) = args.max_cost {
        batch = batch.max_cost_micros(cost);
    }
    if let Some(shared) = shared {
        batch = batch.share(shared);
    }
    Ok(batch)
}

/// The names of limits that count calls, and of those that count tokens.
struct LimitRoles {
    calls: Vec<&'static str>,
    tokens: Vec<&'static str>,
}

impl LimitRoles {
    fn of(accounts: &[AccountConfig]) -> LimitRoles {
        let names = accounts.iter().flat_map(|account| &account.limits);
        let names: BTreeSet<String> =
            names.filter(|limit| !limit.is_resource()).map(|limit| limit.name().to_string()).collect();
        // The leaked names are few, and needed for the whole life of the process, which runs one batch.
        let names = names.into_iter().map(|name| &*name.leak());
        let (tokens, calls) = names.partition(|name| counts_tokens(name));
        LimitRoles { calls, tokens }
    }

    /// Returns the demand of a call of `tokens` tokens. An account skips the limits that it does not have.
    fn demand(&self, tokens: u64) -> Demand {
        let mut demand = Demand::new();
        for name in &self.calls {
            demand = demand.with(name, 1);
        }
        for name in &self.tokens {
            demand = demand.with(name, tokens);
        }
        demand
    }
}
