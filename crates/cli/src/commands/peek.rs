//! `tollgate peek`: what is left of the limits of an entity and of its parents.

use anyhow::Result;
use serde::Serialize;

use crate::args::PeekArgs;
use crate::context::Context;
use crate::output::{Answer, Output, TableCell, TextPage, TextTable};
use crate::views::{DemandStatusView, LimitStatusView, bucket_views};

/// Shows every limit.
pub(super) fn run(context: &Context, args: PeekArgs) -> Result<Output> {
    let PeekArgs { entity, resource } = args;
    let status = context.limiter()?.available(&entity, &resource).wait()?;
    Ok(Output::new(PeekAnswer {
        namespace: context.settings.namespace.value.clone(),
        buckets: bucket_views(&status),
        entity,
        resource,
    }))
}

#[derive(Serialize)]
struct PeekAnswer {
    namespace: String,
    entity: String,
    resource: String,
    buckets: Vec<DemandStatusView>,
}

impl Answer for PeekAnswer {
    fn text(&self, page: &mut TextPage) {
        let mut table = TextTable::new(["ENTITY", "LIMIT", "AVAILABLE", "OF", "FULL", "LIMITS FROM"])
            .right(2)
            .right(3)
            .wrap(5);
        for DemandStatusView { entity, limits, level, .. } in &self.buckets {
            let mut first = Some((TableCell::name(entity), TableCell::from(level)));
            for limit in limits {
                let (entity, level) = first.take().unwrap_or_else(|| ("".into(), "".into()));
                table.row(cells(entity, limit, level));
            }
        }
        page.table(&table);
    }
}

fn cells(entity: TableCell, limit: &LimitStatusView, level: TableCell) -> [TableCell; 6] {
    [entity, TableCell::name(&limit.name), limit.available(), limit.capacity(), limit.full(), level]
}
