//! Changes to limit sets, which reach every process that shares them.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::show::cooling;
use super::{sets, unknown};
use crate::args::{LimitArgs, SetArgs};
use crate::context::Context;
use crate::duration_text;
use crate::exit::UsageError;
use crate::output::{Answer, Output, TextPage};
use crate::views::{LimitView, action_label, limit_table, limit_texts, limit_views};

/// Starts or extends a cooldown.
pub(super) fn cool_down(
    context: &Context,
    SetArgs { name, location }: SetArgs,
    time: Duration,
) -> Result<Output> {
    let store = context.backend_to_change()?;
    let sets = sets(context, store.clone(), &location);
    let before = sets.get(&name).wait()?;
    if before.is_none() {
        context.queue_note(format_args!(
            "no process has opened set {name}; the cooldown holds for the first one that does"
        ));
    }
    // The limits are not needed, and a set that no process has opened has none.
    sets.open_idle(&name).map_err(|why| UsageError(why.to_string()))?.cool_down(time).wait()?;
    let now = store.clock().now();
    // A longer cooldown stays, and in a dry run nothing has changed.
    let lasted = before.as_ref().and_then(|set| cooling(set, now)).unwrap_or_default();
    let lasts = if context.dry_run {
        time.max(lasted)
    } else {
        sets.get(&name).wait()?.and_then(|set| cooling(&set, now)).unwrap_or_default()
    };
    Ok(Output::new(CoolDownAnswer {
        dry_run: context.dry_run,
        namespace: location.namespace,
        set: name,
        in_use: before.is_some(),
        resumes_in_us: u64::try_from(lasts.as_micros()).unwrap_or(u64::MAX),
    }))
}

/// Ends a cooldown.
pub(super) fn resume(context: &Context, SetArgs { name, location }: SetArgs) -> Result<Output> {
    let store = context.backend_to_change()?;
    let sets = sets(context, store.clone(), &location);
    let before = sets.get(&name).wait()?.ok_or_else(|| unknown(&name, &location))?;
    let changed = cooling(&before, store.clock().now()).is_some();
    if changed {
        sets.open_idle(&name).map_err(|why| UsageError(why.to_string()))?.end_cool_down().wait()?;
    }
    Ok(Output::new(ResumeAnswer {
        dry_run: context.dry_run,
        namespace: location.namespace,
        set: name,
        changed,
    }))
}

/// Replaces the limits of the same names.
pub(super) fn replace(
    context: &Context,
    SetArgs { name, location }: SetArgs,
    args: &LimitArgs,
) -> Result<Output> {
    if args.is_empty() {
        return Err(UsageError("no limit is given; give at least one, such as -l rpm:250".into()).into());
    }
    let sets = sets(context, context.backend_to_change()?, &location);
    let set = sets.open(&name).wait()?.ok_or_else(|| unknown(&name, &location))?;
    let before = set.limits();
    // All are validated before any is replaced.
    let mut after = before.clone();
    for limit in args.limits()?.iter() {
        after = after.replacing(limit.clone()).map_err(|why| UsageError(why.to_string()))?;
    }
    for limit in args.limits()?.iter() {
        set.replace(limit.clone()).wait()?;
    }
    Ok(Output::new(ReplaceAnswer {
        dry_run: context.dry_run,
        namespace: location.namespace,
        set: name,
        limits: limit_views(after.iter()),
        before: limit_views(before.iter()),
    }))
}

#[derive(Serialize)]
struct CoolDownAnswer {
    dry_run: bool,
    namespace: String,
    set: String,
    in_use: bool,
    resumes_in_us: u64,
}

#[derive(Serialize)]
struct ResumeAnswer {
    dry_run: bool,
    namespace: String,
    set: String,
    changed: bool,
}

#[derive(Serialize)]
struct ReplaceAnswer {
    dry_run: bool,
    namespace: String,
    set: String,
    limits: Vec<LimitView>,
    before: Vec<LimitView>,
}

impl Answer for CoolDownAnswer {
    fn is_echo(&self) -> bool {
        !self.dry_run
    }

    fn text(&self, page: &mut TextPage) {
        let action = action_label(self.dry_run, "cooled down", "cool down");
        let lasts = duration_text::roughly(Duration::from_micros(self.resumes_in_us));
        page.line(format_args!("{action} set {}: no calls for {lasts}", self.set));
    }
}

impl Answer for ResumeAnswer {
    fn is_echo(&self) -> bool {
        !self.dry_run
    }

    fn text(&self, page: &mut TextPage) {
        if self.changed {
            page.line(format_args!("{} set {}", action_label(self.dry_run, "resumed", "resume"), self.set));
        } else {
            page.line(format_args!("set {} was not cooling down", self.set));
        }
    }
}

impl Answer for ReplaceAnswer {
    fn is_echo(&self) -> bool {
        !self.dry_run
    }

    fn text(&self, page: &mut TextPage) {
        page.line(format_args!(
            "{} limits of set {}",
            action_label(self.dry_run, "replaced", "replace"),
            self.set
        ));
        page.gap();
        page.table(&limit_table(&self.limits));
        page.gap();
        page.line(format_args!("before: {}", limit_texts(&self.before)));
    }
}
