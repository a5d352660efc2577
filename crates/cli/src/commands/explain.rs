//! Which limit of which entity decides about a call, and when the call would pass.

use anyhow::Result;
use serde::Serialize;
use tollgate::Ready;
use tollgate::store::usage::iso;

use super::call::told;
use crate::args::{CallArgs, ExplainArgs};
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::output::style::{self, paint};
use crate::output::{Answer, Cell, Output, Page, Table};
use crate::views::{RefusalView, StandView, StandingView};
use crate::{demand_text, duration_text};

/// Shows what would come of a call, and takes nothing.
pub(super) fn run(context: &Context, args: ExplainArgs) -> Result<Output> {
    let CallArgs { entity, resource, amounts } = args.call;
    let also = args.also.resources().map_err(Usage)?;
    let asked = [(resource.as_str(), &amounts)].into_iter();
    let asked = asked.chain(also.iter().map(|(resource, amounts)| (resource.as_str(), amounts)));
    let demands = asked.map(|(resource, amounts)| (resource, demand_text::demand(amounts))).collect();
    let standing = context.limiter()?.check_availability_of_all(&entity, demands).wait().map_err(told)?;
    let exit = if standing.passes() { Exit::OK } else { Exit::REFUSED };
    let answer = ExplainAnswer {
        namespace: context.settings.namespace.value.clone(),
        entity,
        resource,
        passes: standing.passes(),
        passes_at: match standing.ready() {
            Ready::At(tick) => Some(iso(tick)),
            _ => None,
        },
        refusal: RefusalView::of(&standing),
    };
    Ok(Output::new(answer).with_exit(exit))
}

#[derive(Serialize)]
struct ExplainAnswer {
    namespace: String,
    entity: String,
    resource: String,
    passes: bool,
    /// `null` if it passes now, or if that depends on others giving back.
    passes_at: Option<String>,
    #[serde(flatten)]
    refusal: RefusalView,
}

impl Answer for ExplainAnswer {
    fn text(&self, page: &mut Page) {
        if self.passes {
            page.line(paint(style::GOOD, "it would pass now"));
        } else {
            page.line(format_args!("{} {}", paint(style::BAD, "it would be refused:"), self.refusal.reason));
            page.line(format_args!("it would pass {}", self.when()));
        }
        page.gap();
        page.table(&self.table());
    }
}

impl ExplainAnswer {
    /// Every limit of every bucket. Which resource it is about is only said if there are several.
    fn table(&self) -> Table {
        let headings = ["", "ENTITY", "FOR", "LIMIT", "ASKED", "AVAILABLE", "OF", "PASSES", "LIMITS FROM"];
        let mut table = Table::new(headings).right(4).right(5).right(6).wrap(8).hide_empty(0).hide_empty(2);
        let has_others = self.refusal.buckets.iter().any(|bucket| bucket.resource != self.resource);
        for StandingView { entity, resource, limits, level, .. } in &self.refusal.buckets {
            let resource = if has_others { resource } else { "" };
            let mut first = Some([Cell::name(entity), resource.into(), level.into()]);
            for limit in limits {
                table.row(cells(first.take().unwrap_or_else(|| [(); 3].map(|()| "".into())), limit));
            }
        }
        table
    }

    fn when(&self) -> String {
        match (self.refusal.retry_after_ms, &self.passes_at) {
            (Some(wait), Some(at)) => {
                let wait = duration_text::roughly(std::time::Duration::from_millis(wait));
                format!("in {wait}, at {at}, if nobody else calls")
            }
            _ => "as soon as others give enough back".into(),
        }
    }
}

fn cells([entity, resource, level]: [Cell; 3], limit: &StandView) -> [Cell; 9] {
    let mark = if limit.decides { Cell::styled("→", style::BAD) } else { "".into() };
    [
        mark,
        entity,
        resource,
        Cell::name(&limit.name),
        limit.requested(),
        limit.available(),
        limit.capacity(),
        limit.ready(),
        level,
    ]
}
