//! Finding the items of a scope, by the indexes of the table.

use std::collections::BTreeMap;

use tollgate_store::records::Cursor;
use tollgate_store::{Scope, StoreError};

use super::address::{Address, STATE, space};
use super::values::{read_text, text};
use crate::service::{Attributes, CallFailure, TableService};

/// The part of an index that has the buckets of a scope: the index, its partition, and what their sort keys start with.
struct IndexRange {
    index: &'static str,
    partition: String,
    prefix: &'static str,
}

/// Items of a scope, and the key to go on after.
pub(super) struct FoundItems {
    pub(super) items: Vec<(Address, u32)>,
    pub(super) next: Option<Attributes>,
}

/// Returns the items of a scope, in the order of an index.
pub(super) async fn find(
    service: &TableService,
    namespace: &str,
    scope: Scope<'_>,
    start: Option<Attributes>,
    limit: usize,
) -> Result<FoundItems, StoreError> {
    let Some(range) = range_of(namespace, scope) else {
        let Scope::Bucket(entity, resource) = scope else {
            return Ok(FoundItems { items: Vec::new(), next: None });
        };
        return Ok(FoundItems { items: vec![(Address::pair(namespace, entity, resource), 0)], next: None });
    };
    let names = BTreeMap::from([("#p", format!("{}PK", range.index)), ("#s", format!("{}SK", range.index))]);
    let condition = if range.prefix.is_empty() { "#p = :p" } else { "#p = :p AND begins_with(#s, :s)" };
    let query = || {
        let mut query = service
            .client
            .query()
            .table_name(&service.table)
            .index_name(range.index)
            .key_condition_expression(condition)
            .expression_attribute_names("#p", &names["#p"])
            .expression_attribute_values(":p", text(&range.partition))
            .set_exclusive_start_key(start.clone())
            .limit(i32::try_from(limit).unwrap_or(i32::MAX));
        if !range.prefix.is_empty() {
            query = query.expression_attribute_names("#s", &names["#s"]);
            query = query.expression_attribute_values(":s", text(range.prefix));
        }
        query.send()
    };
    let page = service.with_retries(query).await.map_err(CallFailure::store_error)?;
    let items = page.items.unwrap_or_default();
    // The original has other records in the partition of a bucket: of resets and top-ups.
    let items = items.iter().filter(|item| read_text(item.get("SK")) == Some(STATE));
    let items = items.filter_map(|item| Address::parse(read_text(item.get("PK"))?));
    Ok(FoundItems { items: items.collect(), next: page.last_evaluated_key.filter(|key| !key.is_empty()) })
}

/// Returns the cursor at which a list of a scope goes on.
pub(super) fn cursor_of(namespace: &str, scope: Scope<'_>, next: &Attributes) -> Cursor {
    let part = |name: &str| read_text(next.get(name)).unwrap_or_default();
    let range = range_of(namespace, scope);
    let sort = range.map_or(String::new(), |range| part(&format!("{}SK", range.index)).to_owned());
    Cursor::of(&[&sort, part("PK"), part("SK")])
}

/// Returns the key that a cursor stands for.
pub(super) fn start_of(namespace: &str, scope: Scope<'_>, after: &Cursor) -> Result<Attributes, StoreError> {
    let [sort, partition, key] = after.parts()?;
    let mut start = Attributes::from([("PK".to_owned(), text(partition)), ("SK".to_owned(), text(key))]);
    if let Some(range) = range_of(namespace, scope) {
        start.insert(format!("{}PK", range.index), text(&range.partition));
        start.insert(format!("{}SK", range.index), text(sort));
    }
    Ok(start)
}

/// Returns the range of a scope; `None` for one that is one bucket.
fn range_of(namespace: &str, scope: Scope<'_>) -> Option<IndexRange> {
    let space = space(namespace);
    Some(match scope {
        Scope::Entity(entity) => {
            IndexRange { index: "GSI3", partition: format!("{space}/ENTITY#{entity}"), prefix: "BUCKET#" }
        }
        Scope::Resource(resource) => {
            IndexRange { index: "GSI2", partition: format!("{space}/RESOURCE#{resource}"), prefix: "BUCKET#" }
        }
        Scope::All => IndexRange { index: "GSI4", partition: space, prefix: "" },
        Scope::Bucket(..) => return None,
    })
}
