//! `tollgate batch run --dry-run`: reports what would be sent, and the maximum cost.

use anyhow::Result;
use serde::Serialize;

use super::account::{AccountConfig, AccountConfigs};
use super::price::{PriceSource, shown};
use super::survey::Survey;
use crate::args::BatchRunArgs;
use crate::exit::Exit;
use crate::output::{Answer, Output, TableCell, TextPage, TextTable, counted, grouped};

/// Reads requests, results, accounts and prices, and reports what a run would do. Nothing is sent or written.
pub(super) fn dry_run(args: &BatchRunArgs, accounts: &AccountConfigs) -> Result<Output> {
    let survey = Survey::of(args, &accounts.prices)?;
    let is_good = survey.bad_lines + survey.duplicates + survey.changed + survey.failed_before == 0;
    let is_priced = survey.requests == 0 || survey.requests > survey.without_price;
    let answer = DryRunAnswer {
        dry_run: true,
        requests: survey.requests,
        earlier: survey.done_before,
        failed_before: survey.failed_before,
        changed: survey.changed,
        duplicates: survey.duplicates,
        bad_lines: survey.bad_lines,
        first_bad: survey.first_bad,
        tokens_max: survey.tokens_max,
        cost_micros_max: is_priced.then_some(survey.cost_micros_max),
        prices: accounts.prices.used(),
        without_price: survey.without_price,
        accounts: accounts.accounts.iter().map(DryRunAccountLine::of).collect(),
        results: args.output.display().to_string(),
    };
    Ok(Output::new(answer).with_exit(if is_good { Exit::OK } else { Exit::FAILURE }))
}

/// The output of a dry run.
#[derive(Serialize)]
struct DryRunAnswer {
    dry_run: bool,
    /// Requests that would be sent.
    requests: u64,
    /// Requests that an earlier run has done.
    earlier: u64,
    failed_before: u64,
    changed: u64,
    duplicates: u64,
    bad_lines: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_bad: Option<String>,
    tokens_max: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_micros_max: Option<u64>,
    /// Where the prices come from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prices: Vec<PriceSource>,
    without_price: u64,
    accounts: Vec<DryRunAccountLine>,
    results: String,
}

#[derive(Serialize)]
struct DryRunAccountLine {
    name: String,
    base_url: String,
    has_key: bool,
}

impl DryRunAccountLine {
    fn of(account: &AccountConfig) -> DryRunAccountLine {
        let AccountConfig { name, base_url, key, .. } = account;
        DryRunAccountLine { name: name.clone(), base_url: base_url.clone(), has_key: key.is_some() }
    }
}

impl Answer for DryRunAnswer {
    fn is_line(&self) -> bool {
        true
    }

    fn text(&self, page: &mut TextPage) {
        let mut table = TextTable::bare().wrap(1);
        let mut row = |name: &str, cell: String| table.row([TableCell::name(name), TableCell::from(cell)]);
        row("would be sent", counted(self.requests, "request", "requests"));
        for (name, count) in [
            ("done before", self.earlier),
            ("failed before", self.failed_before),
            ("changed since", self.changed),
            ("duplicate ids", self.duplicates),
            ("invalid lines", self.bad_lines),
        ] {
            if count > 0 {
                row(name, grouped(count));
            }
        }
        if let Some(first) = &self.first_bad {
            row("first error", first.clone());
        }
        row("tokens", format!("{} at most, by estimate", grouped(self.tokens_max)));
        row("cost", self.cost());
        for DryRunAccountLine { name, base_url, has_key } in &self.accounts {
            let key = if *has_key { "with a key" } else { "without a key" };
            row("account", format!("{name}: {base_url}, {key}"));
        }
        row("results", self.results.clone());
        page.table(&table);
        page.remark("nothing was sent or written");
    }
}

impl DryRunAnswer {
    fn cost(&self) -> String {
        let unknown = counted(self.without_price, "request", "requests");
        let Some(micros) = self.cost_micros_max else {
            return "not known: no model of the requests has a price; --prices gives it one".into();
        };
        let mut cost = format!("{} at most, by estimate", shown(micros));
        if !self.prices.is_empty() {
            let sources: Vec<String> = self.prices.iter().map(ToString::to_string).collect();
            cost.push_str(&format!(", by prices {}", sources.join("; ")));
        }
        if self.without_price > 0 {
            cost.push_str(&format!(", without {unknown} that have no price"));
        }
        cost
    }
}
