//! Stored limits of any level: set, get and delete.

use anyhow::Result;
use serde::Serialize;
use tollgate::catalog::{CatalogError, StoredLimits};
use tollgate::{Catalog, Limits, OnUnavailable};

use crate::args::LimitArgs;
use crate::context::Context;
use crate::exit::UsageError;
use crate::output::{Answer, Output, TextPage};
use crate::views::{LevelView, LimitView, OwnedLevel, action_label, limit_table, limit_texts, limit_views};

/// Stores limits on a level.
pub(super) fn set(context: &Context, level: OwnedLevel, args: &LimitArgs) -> Result<Output> {
    if args.is_empty() {
        return Err(UsageError("no limit is given; give at least one, such as -l rpm:1000".into()).into());
    }
    let limits = args.limits()?;
    let store = |catalog: &Catalog| Ok(catalog.ensure_limits(level.level(), &limits).wait()?);
    set_with(context, &level, store)
}

/// Stores limits of the system, the policy while the store is unavailable, or both.
pub(super) fn set_system(
    context: &Context,
    args: &LimitArgs,
    on_unavailable: Option<OnUnavailable>,
) -> Result<Output> {
    let Some(policy) = on_unavailable else { return set(context, OwnedLevel::system(), args) };
    let given = (!args.is_empty()).then(|| args.limits()).transpose()?;
    let level = OwnedLevel::system();
    let store = |catalog: &Catalog| {
        // Without limits, the stored ones stay.
        let stored = catalog.limits(level.level()).wait();
        let limits = match (&given, &stored) {
            (Some(limits), _) => limits.clone(),
            (None, Ok(stored)) => stored.as_ref().map_or_else(none, |stored| stored.limits.clone()),
            (None, Err(why)) => return Err(why.clone().into()),
        };
        let is_same = |stored: StoredLimits| stored.has(&limits) && stored.on_unavailable == Some(policy);
        if stored.ok().flatten().is_some_and(is_same) {
            return Ok(false);
        }
        catalog.set_system_limits(&limits, Some(policy)).wait()?;
        Ok(true)
    };
    set_with(context, &level, store)
}

fn none() -> Limits {
    Limits::new(Vec::<tollgate::Limit>::new()).expect("no limits are a set of limits")
}

/// Stores limits by a function that returns whether it changed anything.
fn set_with(
    context: &Context,
    level: &OwnedLevel,
    store: impl Fn(&Catalog) -> Result<bool>,
) -> Result<Output> {
    let (before, changed, stored) = context.change(|catalog| {
        let before = before(catalog, level)?.flatten();
        let changed = store(catalog)?;
        Ok((before, changed, catalog.limits(level.level()).wait()?))
    })?;
    let (limits, on_unavailable) =
        stored.map_or_else(|| (none(), None), |stored| (stored.limits, stored.on_unavailable));
    Ok(Output::new(SetAnswer {
        dry_run: context.dry_run,
        namespace: context.settings.namespace.value.clone(),
        level: level.view(),
        limits: limit_views(limits.iter()),
        on_unavailable: on_unavailable.map(OnUnavailable::name),
        before,
        changed,
        name: level.name(),
    }))
}

/// Returns the stored limits of a level, if there are any; `None` if they cannot be read, which may be the reason to replace
/// or delete them.
fn before(catalog: &Catalog, level: &OwnedLevel) -> Result<Option<Option<Vec<LimitView>>>> {
    match catalog.limits(level.level()).wait() {
        Err(CatalogError::BadRecord { .. }) => Ok(None),
        stored => Ok(Some(stored?.map(|stored| limit_views(stored.limits.iter())))),
    }
}

/// Shows the limits of a level.
pub(super) fn get(context: &Context, level: &OwnedLevel) -> Result<Output> {
    let stored = context.catalog()?.limits(level.level()).wait()?;
    Ok(Output::new(GetAnswer {
        namespace: context.settings.namespace.value.clone(),
        level: level.view(),
        on_unavailable: stored.as_ref().and_then(|stored| stored.on_unavailable).map(OnUnavailable::name),
        limits: stored.map(|stored| limit_views(stored.limits.iter())),
        name: level.name(),
    }))
}

/// Deletes the limits of a level.
pub(super) fn delete(context: &Context, level: &OwnedLevel) -> Result<Output> {
    let catalog = context.catalog()?;
    let before = before(&catalog, level)?;
    if before.as_ref().is_none_or(Option::is_some) {
        let texts = before.iter().flatten().map(|limits| format!(": {}", limit_texts(limits)));
        let contents = texts.collect();
        context.confirm_deletion(format_args!("the limits for {}", level.name()), || Ok(contents))?;
    }
    let deleted = context.change(|catalog| Ok(catalog.delete_limits(level.level()).wait()?))?;
    Ok(Output::new(LimitsDeleteAnswer {
        before: before.flatten(),
        dry_run: context.dry_run,
        namespace: context.settings.namespace.value.clone(),
        level: level.view(),
        deleted,
        name: level.name(),
    }))
}

#[derive(Serialize)]
struct SetAnswer {
    dry_run: bool,
    namespace: String,
    #[serde(flatten)]
    level: LevelView,
    limits: Vec<LimitView>,
    on_unavailable: Option<&'static str>,
    before: Option<Vec<LimitView>>,
    changed: bool,
    #[serde(skip)]
    name: String,
}

#[derive(Serialize)]
struct GetAnswer {
    namespace: String,
    #[serde(flatten)]
    level: LevelView,
    limits: Option<Vec<LimitView>>,
    on_unavailable: Option<&'static str>,
    #[serde(skip)]
    name: String,
}

#[derive(Serialize)]
struct LimitsDeleteAnswer {
    dry_run: bool,
    namespace: String,
    #[serde(flatten)]
    level: LevelView,
    deleted: bool,
    before: Option<Vec<LimitView>>,
    #[serde(skip)]
    name: String,
}

impl Answer for SetAnswer {
    fn is_echo(&self) -> bool {
        !self.dry_run
    }

    fn text(&self, page: &mut TextPage) {
        if !self.changed {
            page.line(format_args!("the limits for {} are already stored", self.name));
            page.gap();
            return limits_text(page, &self.limits, self.on_unavailable);
        }
        page.line(format_args!("{} limits for {}", action_label(self.dry_run, "stored", "store"), self.name));
        page.gap();
        limits_text(page, &self.limits, self.on_unavailable);
        if let Some(before) = self.before.as_ref().filter(|before| !before.is_empty()) {
            page.gap();
            page.line(format!("before: {}", limit_texts(before)));
        }
    }
}

impl Answer for GetAnswer {
    fn text(&self, page: &mut TextPage) {
        match &self.limits {
            Some(limits) => limits_text(page, limits, self.on_unavailable),
            None => page.remark(format_args!("no limits are stored for {}", self.name)),
        }
    }
}

impl Answer for LimitsDeleteAnswer {
    fn is_echo(&self) -> bool {
        !self.dry_run
    }

    fn text(&self, page: &mut TextPage) {
        if self.deleted {
            let action = action_label(self.dry_run, "deleted", "delete");
            let before = self.before.as_ref().map(|limits| format!(": {}", limit_texts(limits)));
            page.line(format_args!("{action} the limits for {}{}", self.name, before.unwrap_or_default()));
        } else {
            page.line(format_args!("no limits are stored for {}", self.name));
        }
    }
}

fn limits_text(page: &mut TextPage, limits: &[LimitView], on_unavailable: Option<&str>) {
    page.table_or_line(&limit_table(limits), "no limits");
    if let Some(policy) = on_unavailable {
        page.gap();
        page.line(format_args!("while the store is unavailable: {policy}"));
    }
}
