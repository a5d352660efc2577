//! The total capacity of a limit of a resource over all entities.

use anyhow::Result;
use serde::Serialize;
use tollgate::catalog::EntityCapacity;

use crate::context::Context;
use crate::output::{Answer, Output, TableCell, TextPage, TextTable, style};
use crate::units::Units;

/// Sums the capacity of a limit over all entities that have used a resource.
pub(super) fn capacity(context: &Context, resource: String, limit: String) -> Result<Output> {
    let catalog = context.catalog()?;
    let whole = catalog.capacity(&resource, &limit).wait()?;
    let used_by = whole.entities.iter().map(|part| (part.entity.as_str(), resource.as_str()));
    let units = Units::of_used(&catalog, used_by);
    Ok(Output::new(CapacityAnswer {
        namespace: context.settings.namespace.value.clone(),
        resource,
        limit,
        capacity: whole.total_capacity,
        available: whole.total_available,
        used: whole.total_used,
        entities: whole.entities.into_iter().map(CapacityEntityView::from).collect(),
        units,
    }))
}

#[derive(Serialize)]
struct CapacityAnswer {
    namespace: String,
    resource: String,
    limit: String,
    capacity: u64,
    available: i64,
    used: u64,
    entities: Vec<CapacityEntityView>,
    #[serde(skip)]
    units: Units,
}

#[derive(Serialize)]
struct CapacityEntityView {
    entity: String,
    /// `null` if it is unbounded.
    capacity: Option<u64>,
    available: i64,
    used: u64,
}

impl From<EntityCapacity> for CapacityEntityView {
    fn from(of_entity: EntityCapacity) -> CapacityEntityView {
        let EntityCapacity { entity, capacity, available, used, .. } = of_entity;
        CapacityEntityView { entity, capacity, available, used }
    }
}

impl CapacityAnswer {
    fn shown(&self, amount: u64) -> String {
        self.units.show(&self.limit, i64::try_from(amount).unwrap_or(i64::MAX))
    }

    fn left(&self, available: i64) -> TableCell {
        let left = self.units.show(&self.limit, available);
        if available <= 0 { TableCell::styled(left, style::BAD) } else { left.into() }
    }
}

impl Answer for CapacityAnswer {
    fn text(&self, page: &mut TextPage) {
        let mut table = TextTable::new(["ENTITY", "AVAILABLE", "OF", "USED"]).right(1).right(2).right(3);
        for CapacityEntityView { entity, capacity, available, used } in &self.entities {
            let (left, capacity) = match capacity {
                Some(capacity) => (self.left(*available), self.shown(*capacity)),
                None => ("unbounded".into(), String::new()),
            };
            table.row([TableCell::name(entity), left, capacity.into(), self.shown(*used).into()]);
        }
        if table.is_empty() {
            let CapacityAnswer { resource, limit, .. } = self;
            return page
                .remark(format_args!("no bucket of resource {resource} with a limit {limit} is in use"));
        }
        let capacity = self.shown(self.capacity);
        let used = self.shown(self.used);
        table.row([
            TableCell::styled("all", style::HEADING),
            self.left(self.available),
            capacity.into(),
            used.into(),
        ]);
        page.table(&table);
    }
}
