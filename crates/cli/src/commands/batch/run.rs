//! `tollgate batch run`.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tollgate::store::records::Records;
use tollgate::{Demand, Limit, LimitSet};
use tollgate_batch::journal::OnFailed;
use tollgate_batch::{Batch, Journal, Reply, Run, SharedCooldown, Summary, Try};
use tollgate_provider::{Class, Estimator};

use super::account::{self, Account, Accounts, Api, KeyAt};
use super::gate::Gate;
use super::header::{self, Header};
use super::http::Caller;
use super::input::{self, BadLines, Planned, Requests};
use super::last_error::LastError;
use super::output::Answered;
use super::patience;
use super::price::Prices;
use super::reasons::Reasons;
use super::view::SummaryAnswer;
use super::watch::Watch;
use super::{endpoint, events, export, price_table};
use crate::args::BatchRunArgs;
use crate::commands::server_ending::Ending;
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::output::{Format, Output};

/// Sends all requests, and tells what came of it.
pub(super) fn run(context: &Context, args: BatchRunArgs) -> Result<Output> {
    let Accounts { accounts, prices } = accounts(&args)?;
    let prices = match &args.prices {
        Some(path) => prices.or(Prices::open(path)?),
        None => prices,
    };
    let prices = prices.or(price_table::built_in());
    let (prices, estimator) = (Arc::new(prices), Arc::new(Estimator::new()));
    let used_prices = Arc::clone(&prices);
    let bad = Arc::new(BadLines::new(args.errors.clone().unwrap_or_else(|| errors_path(&args.output))));
    let bounded = args.max_cost.is_some();
    let requests = Requests::open(
        &args.requests,
        Arc::clone(&estimator),
        Arc::clone(&prices),
        bounded,
        Arc::clone(&bad),
    )?;
    let shared = args.share.as_deref().map(|name| shared(context, name)).transpose()?;
    let journal = journal(&args)?;
    let last_error = LastError::default();
    let batch = batch(&args, &accounts, shared, context.format, &last_error)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut reasons = Reasons::default();
    let (summary, earlier) = runtime.block_on(async {
        let mut ending = Ending::watch()?;
        let earlier = journal.finished();
        let caller = Arc::new(Calls {
            caller: Caller::new(args.proxy.as_ref())?,
            accounts: by_name(accounts),
            prices,
            estimator,
        });
        let run = batch.resume(journal, requests, move |attempt: Try<Planned>| {
            let caller = Arc::clone(&caller);
            async move { caller.call(&attempt).await }
        });
        let total = input::count_lines(&args.requests);
        let watch = Watch::new(context, total, Arc::clone(&bad), last_error);
        anyhow::Ok((watched(watch, run, &mut ending, &mut reasons).await?, earlier))
    })?;
    export::write(&args)?;
    if let Some(why) = bad.broken() {
        context.note(&why);
    }
    let is_good = summary.progress.failed == 0
        && summary.progress.unfinished == 0
        && summary.stopped.is_none()
        && bad.count() == 0
        && bad.broken().is_none();
    let answer = SummaryAnswer::new(&summary, reasons, &args.output, earlier, &bad).with_prices(&used_prices);
    let output = Output::new(answer).with_exit(if is_good { Exit::OK } else { Exit::FAILURE });
    Ok(output)
}

/// Reads outcomes until there are no more, and shows how far it has come. Told to end, it calls everything off; told
/// again, it does not even wait for that.
async fn watched(
    mut watch: Watch<'_>,
    mut run: Run<Answered>,
    ending: &mut Ending,
    reasons: &mut Reasons,
) -> Result<Summary> {
    let stopper = run.stopper();
    let mut is_ending = false;
    loop {
        tokio::select! {
            outcome = run.next() => match outcome {
                Some(outcome) => reasons.count(&outcome),
                None => break,
            },
            () = watch.due() => watch.show(&run),
            told = ending.told(None) => {
                told?;
                if is_ending {
                    return Err(anyhow::anyhow!("told to end twice; --resume goes on"));
                }
                is_ending = true;
                watch.end();
                stopper.shut_down();
            }
        }
    }
    drop(watch);
    run.finish().await.context("the batch was lost")
}

fn accounts(args: &BatchRunArgs) -> Result<Accounts> {
    let environment = |name: &str| std::env::var(name).ok();
    let headers: Vec<Header> =
        args.header.iter().map(header::parse).collect::<Result<_, _>>().map_err(Usage)?;
    if let Some(path) = &args.accounts {
        let mut accounts = Accounts::read(path, &environment)?;
        let limits: Vec<Limit> = args.limits.limits()?.iter().cloned().collect();
        for account in &mut accounts.accounts {
            account.limits.extend(limits.iter().cloned());
            account.headers.extend(headers.iter().cloned());
        }
        return Ok(accounts);
    }
    let (url, usual) = match args.api {
        Api::Openai => ("https://api.openai.com/v1", "OPENAI_API_KEY"),
        Api::Anthropic => ("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
        Api::Gemini => ("https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY"),
        Api::Azure => match &args.base_url {
            Some(url) => (url.as_str(), "AZURE_OPENAI_API_KEY"),
            None => {
                let why = "--api azure needs --base-url, such as https://NAME.openai.azure.com";
                return Err(Usage(why.into()).into());
            }
        },
    };
    let base_url =
        account::base_url(args.base_url.as_deref().unwrap_or(url)).map_err(|why| Usage(why.to_string()))?;
    // The key of one provider is none of the business of another: it goes elsewhere only if somebody says so.
    let is_theirs = args.base_url.is_none() || args.api == Api::Azure && endpoint::is_azure(&base_url);
    let is_usual = is_theirs && args.key_file.is_none() && environment(usual).is_some();
    let variable = args.key_env.clone().or_else(|| is_usual.then(|| usual.to_owned()));
    let key = KeyAt { variable, file: args.key_file.clone() }.read(&environment)?;
    let limits = args.limits.limits()?.iter().cloned().collect();
    let api_version = args.api_version.clone();
    endpoint::check_version(args.api, api_version.as_deref()).map_err(Usage)?;
    let account =
        Account { name: "default".into(), base_url, api: args.api, key, limits, api_version, headers };
    Ok(Accounts { accounts: vec![account], prices: Prices::default() })
}

fn errors_path(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".errors.jsonl");
    name.into()
}

fn journal(args: &BatchRunArgs) -> Result<Journal> {
    let path = export::journal_path(args);
    let is_there = |path: &Path| std::fs::metadata(path).is_ok_and(|found| found.len() > 0);
    let there = [&args.output, &path].into_iter().find(|path| is_there(path));
    if let (Some(there), false) = (there, args.resume) {
        let path = there.display();
        return Err(
            Usage(format!("{path} is there already; --resume goes on with it, or name another")).into()
        );
    }
    let on_failed = if args.retry_failed { OnFailed::Retry } else { OnFailed::Keep };
    export::check(args)?;
    Ok(Journal::open(path, on_failed)?)
}

fn shared(context: &Context, name: &str) -> Result<SharedCooldown> {
    let store = context.store_to_change()?;
    let clock = store.clock().clone();
    let records: Arc<dyn Records> = store;
    Ok(SharedCooldown::new(records, &format!("batch/{name}")).clock(clock))
}

fn batch(
    args: &BatchRunArgs,
    accounts: &[Account],
    shared: Option<SharedCooldown>,
    format: Format,
    last_error: &LastError,
) -> Result<Batch> {
    let mut batch = Batch::new()
        .workers(args.workers.into())
        .attempts(args.attempts.into())
        .attempt_deadline(args.call_timeout);
    for account in accounts {
        batch = match account.limits.is_empty() {
            true => batch.account(&*account.name),
            false => batch.account_with(&*account.name, LimitSet::new(account.limits.iter().cloned())?),
        };
    }
    batch = patience::apply(batch, &args.patience);
    let names = Names::of(accounts);
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
    let last_error = last_error.clone();
    Ok(batch.observer(move |event: &tollgate_batch::Event<'_>| {
        last_error.observe(event);
        if format == Format::Json {
            events::write(event);
        }
    }))
}

/// The names of limits that count calls, and of those that count tokens.
struct Names {
    calls: Vec<&'static str>,
    tokens: Vec<&'static str>,
}

impl Names {
    fn of(accounts: &[Account]) -> Names {
        let names = accounts.iter().flat_map(|account| &account.limits);
        let names: BTreeSet<String> =
            names.filter(|limit| !limit.is_resource()).map(|limit| limit.name().to_string()).collect();
        // A few words that are needed for as long as the process lives, which is as long as its one batch.
        let names = names.into_iter().map(|name| &*name.leak());
        let (tokens, calls) = names.partition(|name| counts_tokens(name));
        Names { calls, tokens }
    }

    /// What a call of so many tokens takes. What an account does not have is left out there.
    fn demand(&self, tokens: u64) -> Demand<'static> {
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

/// Whether a limit counts tokens, by its name: `tpm`, `tpd`, `input_tokens`.
fn counts_tokens(name: &str) -> bool {
    matches!(name, "tpm" | "tpd" | "tps" | "tph") || name.contains("token")
}

fn by_name(accounts: Vec<Account>) -> HashMap<String, (Account, Gate)> {
    accounts.into_iter().map(|account| (account.name.clone(), (account, Gate::default()))).collect()
}

/// Makes the calls of a batch.
struct Calls {
    caller: Caller,
    accounts: HashMap<String, (Account, Gate)>,
    prices: Arc<Prices>,
    estimator: Arc<Estimator>,
}

impl Calls {
    async fn call(&self, attempt: &Try<Planned>) -> Reply<Answered> {
        let Planned { request, model, estimate } = attempt.payload();
        let (account, gate) = &self.accounts[attempt.scope()];
        let call = self.caller.call(account, request.path.as_deref(), model, request.body.get());
        let replied = match gate.pass(call).await {
            Ok(replied) => replied,
            Err(refusal) => return Reply::refused(refusal),
        };
        let hint = replied.hint.clone();
        if hint.class != Class::Ok {
            let reply = Reply::refused(hint);
            return match Answered::rejected(account, &replied) {
                Some(rejected) => reply.rejected(rejected),
                None => reply,
            };
        }
        let cost = hint.usage.and_then(|tokens| {
            self.estimator.learn(estimate, tokens);
            Some(self.prices.of(model)?.micros(tokens))
        });
        let reply = match Answered::new(&account.name, replied) {
            Ok(answered) => Reply::done(answered, hint),
            Err(why) => Reply::invalid(why, hint),
        };
        match cost {
            Some(cost) => reply.cost_micros(cost),
            None => reply,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_count_calls_or_tokens_by_their_names() {
        for (name, tokens) in [("rpm", false), ("tpm", true), ("input_tokens", true), ("calls", false)] {
            assert_eq!(counts_tokens(name), tokens, "{name}");
        }
    }

    #[test]
    fn lines_that_are_no_requests_go_beside_the_results() {
        assert_eq!(errors_path(Path::new("out/results.jsonl")), Path::new("out/results.jsonl.errors.jsonl"));
    }
}
