//! `tollgate entity reset` and `top-up`.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use crate::args::{EntityResetArgs, EntityTopUpArgs};
use crate::context::Context;
use crate::demand_text;
use crate::output::{Answer, Output, TextPage, grouped};
use crate::units::Units;
use crate::views::action_label;

/// Resets a bucket.
pub(super) fn reset(context: &Context, args: EntityResetArgs) -> Result<Output> {
    let EntityResetArgs { entity, resource, key } = args;
    let done = context.change(|catalog| Ok(catalog.reset(&entity, &resource, key.as_deref()).wait()?))?;
    Ok(Output::new(BucketAnswer {
        dry_run: context.dry_run,
        namespace: context.settings.namespace.value.clone(),
        entity,
        resource,
        key,
        amounts: None,
        done,
        units: Units::default(),
    }))
}

/// Adds credit to a bucket.
pub(super) fn top_up(context: &Context, args: EntityTopUpArgs) -> Result<Output> {
    let EntityTopUpArgs { entity, resource, amounts, key } = args;
    let (done, exact, units) = context.change(|catalog| {
        let units = Units::of_bucket(catalog, &entity, &resource)?;
        let exact = units.exact(&amounts)?;
        let credit = demand_text::demand(&exact);
        let done = catalog.top_up(&entity, &resource, &credit, key.as_deref()).wait()?;
        Ok((done, exact, units))
    })?;
    let amounts = exact.into_iter().map(|exact| (exact.limit, exact.amount)).collect();
    Ok(Output::new(BucketAnswer {
        dry_run: context.dry_run,
        namespace: context.settings.namespace.value.clone(),
        entity,
        resource,
        key,
        amounts: Some(amounts),
        done,
        units,
    }))
}

#[derive(Serialize)]
struct BucketAnswer {
    dry_run: bool,
    namespace: String,
    entity: String,
    resource: String,
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    amounts: Option<BTreeMap<String, u64>>,
    done: bool,
    #[serde(skip)]
    units: Units,
}

impl Answer for BucketAnswer {
    fn is_echo(&self) -> bool {
        !self.dry_run
    }

    fn text(&self, page: &mut TextPage) {
        let BucketAnswer { entity, resource, key, amounts, .. } = self;
        if !self.done {
            let key = key.as_deref().unwrap_or_default();
            page.line(format_args!("nothing was done: the key {key} was used before"));
            return;
        }
        let credit = |(limit, amount): (&String, &u64)| match self.units.unit(limit) {
            Some(_) => format!("{limit} {}", self.units.show_taken(limit, *amount)),
            None => format!("{} {limit}", grouped(amount)),
        };
        match amounts {
            None => {
                let action = action_label(self.dry_run, "reset", "reset");
                page.line(format_args!("{action} the bucket of entity {entity} for resource {resource}"));
            }
            Some(amounts) => {
                let action = action_label(self.dry_run, "added", "add");
                let credit = amounts.iter().map(credit).collect::<Vec<_>>().join(", ");
                page.line(format_args!(
                    "{action} {credit} to the bucket of entity {entity} for resource {resource}"
                ));
            }
        }
    }
}
