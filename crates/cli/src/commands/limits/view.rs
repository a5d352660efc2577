//! Plans as JSON and as text.

use std::collections::BTreeSet;
use std::path::Path;

use anstyle::Style;
use serde::Serialize;
use tollgate::OnUnavailable;

use super::plan::{EntityStep, LevelStep, LimitsPlan};
use crate::context::Context;
use crate::limit_text;
use crate::limits_file::{EntityPart, LevelConfig};
use crate::output::style::{self, paint};
use crate::output::{Answer, TextPage, counted, grouped};
use crate::views::{LevelView, LimitView, OwnedLevel, action_label, limit_views};

/// The maximum number of unmanaged levels in text output.
const UNMANAGED_SHOWN: usize = 10;

/// The output about a plan.
#[derive(Serialize)]
pub(super) struct PlanAnswer {
    namespace: String,
    file: String,
    set: String,
    entities: Vec<PlannedEntityView>,
    levels: Vec<StepView>,
    unchanged: usize,
    unmanaged: Vec<LevelView>,
    transactions: usize,
    #[serde(skip)]
    unmanaged_names: Vec<String>,
    #[serde(skip)]
    adopted: usize,
}

/// The output about an applied plan.
#[derive(Serialize)]
pub(super) struct ApplyAnswer {
    dry_run: bool,
    #[serde(flatten)]
    plan: PlanAnswer,
}

#[derive(Serialize)]
struct StepView {
    action: PlannedAction,
    #[serde(flatten)]
    level: LevelView,
    before: Option<ConfigView>,
    after: Option<ConfigView>,
    managed: bool,
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    lines: Vec<(PlannedAction, String)>,
}

#[derive(Serialize)]
struct PlannedEntityView {
    action: PlannedAction,
    entity: String,
    name: Option<String>,
    parent: Option<String>,
    cascade: Option<bool>,
    #[serde(skip)]
    lines: Vec<String>,
}

#[derive(Serialize)]
struct ConfigView {
    limits: Vec<LimitView>,
    on_unavailable: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum PlannedAction {
    Add,
    Change,
    Delete,
}

impl PlanAnswer {
    pub(super) fn new(context: &Context, file: &Path, plan: &LimitsPlan) -> PlanAnswer {
        PlanAnswer {
            namespace: context.settings.namespace.value.clone(),
            file: file.display().to_string(),
            set: plan.set.clone(),
            entities: plan.entities.iter().map(PlannedEntityView::from).collect(),
            levels: plan.changes().map(StepView::from).collect(),
            unchanged: plan.unchanged,
            unmanaged: plan.unmanaged.iter().map(OwnedLevel::view).collect(),
            transactions: plan.transactions(),
            unmanaged_names: plan.unmanaged.iter().map(OwnedLevel::name).collect(),
            adopted: plan.adopted.len(),
        }
    }

    /// Returns whether nothing changes.
    pub(super) fn is_empty(&self) -> bool {
        self.levels.is_empty() && self.entities.is_empty()
    }

    /// Returns the namespace.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Formats the number of changes: `1 to add, 2 to change, 3 to delete`.
    fn changes_text(&self) -> String {
        self.counted("to add", "to change", "to delete")
    }

    /// Formats the number of transactions: `1 transaction`, `3 transactions`.
    fn transactions_text(&self) -> String {
        counted(self.transactions, "transaction", "transactions")
    }

    fn counted(&self, add: &str, change: &str, delete: &str) -> String {
        let entities = self.entities.iter().map(|entity| entity.action);
        let actions: Vec<PlannedAction> =
            self.levels.iter().map(|step| step.action).chain(entities).collect();
        let count = |action| grouped(actions.iter().filter(|other| **other == action).count());
        let [added, changed, deleted] =
            [PlannedAction::Add, PlannedAction::Change, PlannedAction::Delete].map(count);
        format!("{added} {add}, {changed} {change}, {deleted} {delete}")
    }

    fn steps_text(&self, page: &mut TextPage) {
        for entity in &self.entities {
            page.line(format_args!("{} entity {}", entity.action.mark(), paint(style::NAME, &entity.entity)));
            for line in &entity.lines {
                page.line(format_args!("      {line}"));
            }
        }
        for step in &self.levels {
            let remark = match (step.action, step.managed) {
                (PlannedAction::Change, false) => " (set by hand so far)",
                _ => "",
            };
            let name = paint(style::NAME, &step.name);
            page.line(format_args!("{} limits of {name}{remark}", step.action.mark()));
            for (action, line) in &step.lines {
                page.line(format_args!("    {} {line}", action.mark()));
            }
        }
    }

    fn unmanaged_text(&self, page: &mut TextPage) {
        if self.unmanaged_names.is_empty() {
            return;
        }
        page.gap();
        page.line("not managed by this set, unchanged:");
        for name in self.unmanaged_names.iter().take(UNMANAGED_SHOWN) {
            page.line(format_args!("  {name}"));
        }
        let more = self.unmanaged_names.len().saturating_sub(UNMANAGED_SHOWN);
        if more > 0 {
            page.line(format_args!("  and {} more", grouped(more)));
        }
    }
}

impl ApplyAnswer {
    pub(super) fn new(context: &Context, plan: PlanAnswer) -> ApplyAnswer {
        ApplyAnswer { dry_run: context.dry_run, plan }
    }
}

impl Answer for PlanAnswer {
    fn text(&self, page: &mut TextPage) {
        self.steps_text(page);
        self.unmanaged_text(page);
        page.gap();
        let unchanged = format!("{} unchanged", grouped(self.unchanged));
        if self.is_empty() {
            page.line(format_args!("no changes to set {}: {unchanged}", self.set));
        } else {
            let changes = self.changes_text();
            let transactions = self.transactions_text();
            page.line(format_args!("set {}: {changes}, {unchanged}; in {transactions}", self.set));
        }
    }
}

impl Answer for ApplyAnswer {
    fn is_echo(&self) -> bool {
        !self.dry_run
    }

    fn text(&self, page: &mut TextPage) {
        let plan = &self.plan;
        if plan.is_empty() {
            page.line(format_args!("no changes to set {}: {} unchanged", plan.set, grouped(plan.unchanged)));
        } else {
            plan.steps_text(page);
            page.gap();
            let action = action_label(self.dry_run, "applied", "apply");
            let changes = plan.counted("added", "changed", "deleted");
            let set = &plan.set;
            let transactions = plan.transactions_text();
            page.line(format_args!("{action} set {set}: {changes}, in {transactions}"));
        }
        if plan.adopted > 0 {
            let levels = counted(plan.adopted, "level is", "levels are");
            page.remark(format_args!("{levels} managed from now on"));
        }
    }
}

impl PlannedAction {
    fn mark(self) -> String {
        let (mark, style): (&str, Style) = match self {
            PlannedAction::Add => ("+", style::GOOD),
            PlannedAction::Change => ("~", style::WARN),
            PlannedAction::Delete => ("-", style::BAD),
        };
        paint(style, mark)
    }

    fn of<T>(before: &Option<T>, after: &Option<T>) -> PlannedAction {
        match (before, after) {
            (None, _) => PlannedAction::Add,
            (Some(_), Some(_)) => PlannedAction::Change,
            (Some(_), None) => PlannedAction::Delete,
        }
    }
}

impl From<&LevelStep> for StepView {
    fn from(step: &LevelStep) -> StepView {
        let LevelStep { level, before, after, is_managed } = step;
        StepView {
            action: PlannedAction::of(before, after),
            level: level.view(),
            before: before.as_ref().map(ConfigView::from),
            after: after.as_ref().map(ConfigView::from),
            managed: *is_managed,
            name: level.name(),
            lines: lines(before.as_ref(), after.as_ref()),
        }
    }
}

impl From<&LevelConfig> for ConfigView {
    fn from(config: &LevelConfig) -> ConfigView {
        ConfigView {
            limits: limit_views(config.limits.iter()),
            on_unavailable: config.on_unavailable.map(OnUnavailable::name),
        }
    }
}

/// Returns the changes of a level, limit by limit.
fn lines(before: Option<&LevelConfig>, after: Option<&LevelConfig>) -> Vec<(PlannedAction, String)> {
    let texts = |config: Option<&LevelConfig>| {
        let mut texts = std::collections::BTreeMap::new();
        if let Some(config) = config {
            let text = |(name, limit): (&str, &tollgate::Limit)| (name.to_owned(), limit_text::print(limit));
            texts.extend(config.by_name().into_iter().map(text));
            let policy = config.on_unavailable.map(|policy| format!("on_unavailable {policy}"));
            // No limit has a name with a space.
            texts.extend(policy.map(|text| (" on_unavailable".to_owned(), text)));
        }
        texts
    };
    let before = texts(before);
    let after = texts(after);
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let line = |name: &String| match (before.get(name), after.get(name)) {
        (Some(one), Some(two)) if one == two => None,
        (Some(one), Some(two)) => Some((PlannedAction::Change, format!("{one} -> {two}"))),
        (Some(one), None) => Some((PlannedAction::Delete, one.clone())),
        (None, two) => Some((PlannedAction::Add, two?.clone())),
    };
    names.into_iter().filter_map(line).collect()
}

impl From<&EntityStep> for PlannedEntityView {
    fn from(step: &EntityStep) -> PlannedEntityView {
        let EntityStep { id, before, after } = step;
        let EntityPart { name, parent, cascade } = after.clone();
        let mut lines = Vec::new();
        let was = |was: Option<String>| was.map(|was| format!("{was} -> ")).unwrap_or_default();
        let before = before.as_ref();
        lines.extend(
            name.iter().map(|name| format!("name {}{name}", was(before.map(|before| before.name.clone())))),
        );
        let former =
            |entity: &tollgate::catalog::Entity| entity.parent.clone().unwrap_or_else(|| "none".into());
        lines.extend(parent.iter().map(|parent| format!("parent {}{parent}", was(before.map(former)))));
        let cascaded = before.map(|before| before.cascades.to_string());
        lines.extend(cascade.iter().map(|cascade| format!("cascade {}{cascade}", was(cascaded.clone()))));
        let action = if before.is_none() { PlannedAction::Add } else { PlannedAction::Change };
        PlannedEntityView { action, entity: id.clone(), name, parent, cascade, lines }
    }
}
