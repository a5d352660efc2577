use serde::Serialize;
use tollgate::catalog::Counts;

use crate::asking::with_contents;
use crate::output::{TableCell, TextPage, grouped};

/// The contents of a namespace.
#[derive(Serialize)]
pub(crate) struct CountsView {
    pub(crate) entities: u64,
    pub(crate) entity_limits: u64,
    pub(crate) resource_limits: u64,
    pub(crate) system_limits: u64,
    pub(crate) disabled: u64,
    pub(crate) buckets: u64,
    pub(crate) usage_records: u64,
    pub(crate) audit_events: u64,
}

impl From<Counts> for CountsView {
    fn from(counts: Counts) -> CountsView {
        CountsView {
            entities: counts.entities,
            entity_limits: counts.entity_limits,
            resource_limits: counts.resource_limits,
            system_limits: counts.system_limits,
            disabled: counts.disabled,
            buckets: counts.buckets,
            usage_records: counts.usage_records,
            audit_events: counts.audit_events,
        }
    }
}

impl CountsView {
    /// Returns the number of levels that have limits.
    pub(crate) fn limits(&self) -> u64 {
        self.entity_limits + self.resource_limits + self.system_limits
    }

    /// Formats the contents for a question before they are deleted: ` with 3 entities and 2 buckets`.
    pub(crate) fn as_contents(&self) -> String {
        with_contents(&[
            (self.entities, "entity", "entities"),
            (self.limits(), "level of limits", "levels of limits"),
            (self.disabled, "disabled entry", "disabled entries"),
            (self.buckets, "bucket", "buckets"),
            (self.usage_records, "usage record", "usage records"),
            (self.audit_events, "audit event", "audit events"),
        ])
    }

    /// Writes the counts as text.
    pub(crate) fn text(&self, page: &mut TextPage) {
        let [entities, resources, system] =
            [self.entity_limits, self.resource_limits, self.system_limits].map(grouped);
        let limits = format!("{entities} for entities, {resources} for resources, {system} for the system");
        page.fields([
            ("entities", TableCell::from(grouped(self.entities))),
            ("limits", limits.into()),
            ("disabled", grouped(self.disabled).into()),
            ("buckets", grouped(self.buckets).into()),
            ("usage records", grouped(self.usage_records).into()),
            ("audit events", grouped(self.audit_events).into()),
        ]);
    }
}
