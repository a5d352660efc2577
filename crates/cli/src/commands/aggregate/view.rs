use serde::Serialize;
use tollgate_dynamo::aggregate::{BatchOutcome, FailedRecord};

use crate::output::{Answer, TableCell, TextPage, TextTable, grouped, style};

/// The output of `tollgate aggregate`.
#[derive(Serialize)]
pub(super) struct Aggregated {
    records: usize,
    written: usize,
    remains: usize,
    archived: usize,
    doubled: usize,
    unreadable: Vec<String>,
    failed: Vec<FailedRecordView>,
}

#[derive(Serialize)]
struct FailedRecordView {
    sequence: String,
    why: String,
}

impl From<BatchOutcome> for Aggregated {
    fn from(outcome: BatchOutcome) -> Aggregated {
        let BatchOutcome { records, written, remains, archived, doubled, unreadable, failed, .. } = outcome;
        let failed =
            failed.into_iter().map(|FailedRecord { sequence, why, .. }| FailedRecordView { sequence, why });
        Aggregated { records, written, remains, archived, doubled, unreadable, failed: failed.collect() }
    }
}

impl Answer for Aggregated {
    fn text(&self, page: &mut TextPage) {
        page.fields([
            ("records", TableCell::from(grouped(self.records))),
            ("written", format!("{} times a bucket", grouped(self.written)).into()),
            ("expired", format!("{} buckets", grouped(self.remains)).into()),
            ("archived", format!("{} audit events", grouped(self.archived)).into()),
            ("doubled", format!("{} hot buckets", grouped(self.doubled)).into()),
        ]);
        if !self.unreadable.is_empty() {
            page.heading("unreadable");
            for record in &self.unreadable {
                page.line(record);
            }
        }
        if !self.failed.is_empty() {
            page.gap();
            let mut table = TextTable::new(["FAILED", "WHY"]).wrap(1);
            for FailedRecordView { sequence, why } in &self.failed {
                table.row([TableCell::styled(sequence, style::BAD), why.into()]);
            }
            page.table(&table);
        }
    }
}
