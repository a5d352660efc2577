//! The summary of the demo.

use anyhow::Result;
use serde::Serialize;
use tollgate::Limiter;
use tollgate::catalog::{UsageQuery, Window};

use super::fleet::{Fleet, RESOURCE};
use super::tally::DemoCount;
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
}

/// The usage of an entity, and the counts of its workers.
#[derive(Serialize)]
struct UsedByEntity {
    entity: String,
    project: Option<String>,
    calls: u64,
    tokens: i64,
    #[serde(flatten)]
    count: DemoCount,
}

impl DemoSummary {
    /// Reads the usage from the store and the counts of the workers.
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
        Ok(DemoSummary { seconds, seed, asked, total, entities })
    }
}

impl UsedByEntity {
    fn of(limiter: &Limiter, entity: &str, project: Option<&str>, count: DemoCount) -> Result<UsedByEntity> {
        let query = UsageQuery::of_entity(entity, Window::Hour).resource(RESOURCE);
        let used = limiter.catalog().usage_summary(query).wait()?;
        Ok(UsedByEntity {
            entity: entity.into(),
            project: project.map(str::to_owned),
            calls: used.events,
            tokens: used.limits.get("tpm").map_or(0, |usage| usage.total),
            count,
        })
    }
}

impl Answer for DemoSummary {
    fn text(&self, page: &mut TextPage) {
        let DemoCount { admitted, refused, waited, waited_ms, over_used, .. } = self.total;
        page.heading(format_args!("Results of {}s", self.seconds));
        let wait = duration_text::roughly(std::time::Duration::from_millis(waited_ms / waited.max(1)));
        page.fields([
            ("admitted", TableCell::from(grouped(admitted))),
            ("denied", grouped(refused).into()),
            ("waited", format!("{}, for {wait} on average", grouped(waited)).into()),
            ("over-use", format!("{} tokens, repaid from later refills", grouped(over_used)).into()),
        ]);
        page.gap();
        let headings = ["ENTITY", "ADMITTED", "DENIED", "WAITED", "TOKENS USED", "OVER-USE"];
        let mut table = (1..headings.len()).fold(TextTable::new(headings), TextTable::right);
        for used in &self.entities {
            table.row(used.cells());
        }
        page.table(&table);
        page.heading("Try next");
        let mut next = TextTable::bare();
        for (line, why) in NEXT {
            next.row([format!("  {line}").into(), TableCell::from(why)]);
        }
        page.table(&next);
        page.gap();
        let seconds = self.asked.map(|seconds| format!(" --seconds {seconds}")).unwrap_or_default();
        page.line(format!("repeat the same calls: tollgate demo --seed {}{seconds}", self.seed));
    }
}

impl UsedByEntity {
    fn cells(&self) -> [TableCell; 6] {
        let DemoCount { refused, waited, over_used, .. } = self.count;
        let name = match self.project {
            Some(_) => TableCell::from(format!("  {}", self.entity)),
            None => TableCell::name(&self.entity),
        };
        let [calls, refused, waited, over_used] =
            [self.calls, refused, waited, over_used].map(|number| TableCell::from(grouped(number)));
        [name, calls, refused, waited, grouped(self.tokens).into(), over_used]
    }
}
