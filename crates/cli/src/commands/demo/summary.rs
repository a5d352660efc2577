//! The summary of the demo.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use tollgate::Limiter;
use tollgate::catalog::{UsageQuery, Window};

use super::accounts::AccountStatus;
use super::fleet::{Fleet, RESOURCE};
use super::tally::DemoCount;
use super::view::dollars;
use crate::duration_text;
use crate::output::{Answer, TableCell, TextPage, TextTable, grouped};

/// Commands to try next.
const NEXT: [(&str, &str); 4] = [
    ("tollgate system set-defaults -l rpm:60 -l slots:3/at-once", "for all entities"),
    ("tollgate run user-1 jobs --wait -- sleep 1", "in several shells"),
    ("tollgate explain user-1 jobs rpm=1", "which limit denies"),
    ("tollgate usage plot --entity user-1", "a chart of usage"),
];

/// The summary of the demo.
#[derive(Serialize)]
pub(super) struct DemoSummary {
    seconds: u64,
    seed: u64,
    /// The value of `--seconds`, if it was given.
    #[serde(skip)]
    asked: Option<u16>,
    #[serde(flatten)]
    total: DemoCount,
    entities: Vec<UsedByEntity>,
    accounts: Vec<UsedByAccount>,
}

/// The usage of an entity, and the counts of its workers.
#[derive(Serialize)]
struct UsedByEntity {
    entity: String,
    project: Option<String>,
    calls: u64,
    tokens: i64,
    /// Millionths of a dollar.
    spent_micros: i64,
    #[serde(flatten)]
    count: DemoCount,
}

/// What the provider of an account has counted.
#[derive(Serialize)]
struct UsedByAccount {
    account: &'static str,
    calls: u64,
    answered: u64,
    throttled: u64,
    tokens: u64,
}

impl DemoSummary {
    /// Reads the usage from the store, the counts of the workers and those of the providers.
    pub(super) fn of(
        fleet: &Fleet,
        limiter: &Limiter,
        (seconds, asked): (u64, Option<u16>),
        seed: u64,
    ) -> Result<DemoSummary> {
        let mut entities = Vec::new();
        for project in fleet.projects {
            let keys = || fleet.keys.iter().filter(|key| key.project == project);
            let count = keys().map(|key| key.tally.count()).sum();
            entities.push(UsedByEntity::of(limiter, project, None, count)?);
            for key in keys() {
                entities.push(UsedByEntity::of(limiter, key.name, Some(project), key.tally.count())?);
            }
        }
        let total = fleet.keys.iter().map(|key| key.tally.count()).sum();
        let accounts = fleet.accounts.status()?.into_iter().map(UsedByAccount::of).collect();
        Ok(DemoSummary { seconds, seed, asked, total, entities, accounts })
    }

    /// Returns each count with its name and what it means.
    fn meanings(&self) -> Vec<(String, &'static str, String)> {
        let DemoCount { admitted, denied, waited, waited_ms, over_used, throttled, no_account, .. } =
            self.total;
        let wait = duration_text::roughly(Duration::from_millis(waited_ms / waited.max(1)));
        let spent =
            self.entities.iter().filter(|used| used.project.is_none()).map(|used| used.spent_micros).sum();
        vec![
            (grouped(admitted), "admitted", "calls that all limits of a key and its project let through".into()),
            (grouped(waited), "waited", format!("of them did, for {wait} on average: the workers of acme wait")),
            (grouped(denied), "denied", "with the time to retry at: those of globex do not wait".into()),
            (
                grouped(throttled),
                "throttled",
                "by the provider with 429: blue allows less than its limits say, so it cools down, and green is \
                 called"
                    .into(),
            ),
            (grouped(no_account), "unsent", "because both accounts were busy or cooling down".into()),
            (grouped(over_used), "over-use", "tokens beyond the estimates, which later refills pay back".into()),
            (dollars(spent), "spent", "as settled; a budget denies a call that it cannot pay in full".into()),
        ]
    }
}

impl UsedByAccount {
    fn of(AccountStatus { name, stats, .. }: AccountStatus) -> UsedByAccount {
        UsedByAccount {
            account: name,
            calls: stats.calls,
            answered: stats.ok,
            throttled: stats.rejected,
            tokens: stats.tokens,
        }
    }
}

impl UsedByEntity {
    fn of(limiter: &Limiter, entity: &str, project: Option<&str>, count: DemoCount) -> Result<UsedByEntity> {
        let query = UsageQuery::of_entity(entity, Window::Hour).resource(RESOURCE);
        let used = limiter.catalog().usage_summary(query).wait()?;
        let total = |limit: &str| used.limits.get(limit).map_or(0, |usage| usage.total);
        Ok(UsedByEntity {
            entity: entity.into(),
            project: project.map(str::to_owned),
            calls: used.events,
            tokens: total("tpm"),
            spent_micros: total("spend"),
            count,
        })
    }

    fn cells(&self) -> [TableCell; 8] {
        let DemoCount { denied, waited, over_used, throttled, .. } = self.count;
        let name = match self.project {
            Some(_) => TableCell::from(format!("  {}", self.entity)),
            None => TableCell::name(&self.entity),
        };
        let [calls, denied, waited, throttled, over_used] =
            [self.calls, denied, waited, throttled, over_used].map(|number| TableCell::from(grouped(number)));
        let spent = dollars(self.spent_micros).into();
        [name, calls, denied, waited, throttled, grouped(self.tokens).into(), over_used, spent]
    }
}

impl Answer for DemoSummary {
    fn text(&self, page: &mut TextPage) {
        page.heading(format_args!("Results of {}s", self.seconds));
        let mut table = TextTable::bare().right(0).wrap(2);
        for (number, name, meaning) in self.meanings() {
            table.row([number.into(), TableCell::name(name), meaning.into()]);
        }
        page.table(&table);
        page.gap();
        let headings = ["ENTITY", "ADMITTED", "DENIED", "WAITED", "429", "TOKENS", "OVER-USE", "SPENT"];
        let mut table = (1..headings.len()).fold(TextTable::new(headings), TextTable::right);
        for used in &self.entities {
            table.row(used.cells());
        }
        page.table(&table);
        page.gap();
        let headings = ["ACCOUNT", "CALLS", "ANSWERED", "429", "TOKENS"];
        let mut table = (1..headings.len()).fold(TextTable::new(headings), TextTable::right);
        for UsedByAccount { account, calls, answered, throttled, tokens } in &self.accounts {
            let [calls, answered, throttled, tokens] =
                [calls, answered, throttled, tokens].map(|number| TableCell::from(grouped(number)));
            table.row([TableCell::name(account), calls, answered, throttled, tokens]);
        }
        page.table(&table);
        page.heading("Try next");
        let mut next = TextTable::bare().wrap(0).wrap(1);
        for (line, why) in NEXT {
            next.row([format!("  {line}").into(), TableCell::from(why)]);
        }
        page.table(&next);
        page.gap();
        let seconds = self.asked.map(|seconds| format!(" --seconds {seconds}")).unwrap_or_default();
        page.line(format!("repeat the same calls: tollgate demo --seed {}{seconds}", self.seed));
    }
}
