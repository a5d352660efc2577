//! Writing records: all or none, and once.
//!
//! A write whose reply was lost is sent again, and by then others may have written. So a write that is not idempotent is a
//! transaction with a token, whose outcome the service remembers.

use aws_sdk_dynamodb::types::{
    ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use tollgate_core::Tick;
use tollgate_store::StoreError;
use tollgate_store::records::{Item, RecordsError, Write};
use tollgate_store::workers::CallTimer;

use super::bounds;
use super::change::update;
use super::expression::{Words, condition, condition_absent, condition_unless_expired};
use super::get::{get_many, incomplete};
use super::mixed;
use crate::attributes::{attributes_of, item_of, key_attributes};
use crate::service::{Attributes, CallFailure, CancelReason, TableService};

/// How often a transaction is made anew because records expired, or were made again, just then.
const ROUNDS_MAX: usize = 10;

/// Returns the item as it is if its condition does not hold.
const OLD: ReturnValuesOnConditionCheckFailure = ReturnValuesOnConditionCheckFailure::AllOld;

/// What a change assumes of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Assumed {
    /// It has not expired: it is changed where it is, or created if it is missing.
    NotExpired,
    /// It has expired, and nothing is left of it: it is put anew.
    Expired,
}

/// Makes all writes, or none.
pub(super) async fn write(service: &TableService, writes: &[Write]) -> Result<(), RecordsError> {
    bounds::check_writes(writes)?;
    match writes {
        [Write::Put(item, tests)] if tests.is_empty() => Ok(put(service, item).await?),
        [Write::Delete(key, tests)] if tests.is_empty() => {
            let delete = || {
                let delete = service.client.delete_item().table_name(&service.table);
                delete.set_key(Some(key_attributes(key))).send()
            };
            service.with_retries(delete).await.map(drop).map_err(|failure| failure.store_error().into())
        }
        [check @ Write::Check(key, _)] => {
            let found = get_many(service, std::slice::from_ref(key)).await?;
            let now = service.clock.now();
            let there = found.into_iter().next().flatten().filter(|item| !item.has_expired(now));
            if check.passes(there.as_ref()) { Ok(()) } else { Err(RecordsError::Failed(0)) }
        }
        writes if writes.iter().any(is_mixed) => transact_mixed(service, writes).await,
        writes => transact(service, writes).await,
    }
}

fn is_mixed(write: &Write) -> bool {
    !mixed::fields(write).is_empty()
}

/// Makes a transaction as [`transact`], with sets that are both added to and removed from.
async fn transact_mixed(service: &TableService, writes: &[Write]) -> Result<(), RecordsError> {
    let timer = CallTimer::start();
    for _ in 0..ROUNDS_MAX {
        let worked_out = mixed::worked_out(service, writes, service.clock.now()).await?;
        match transact(service, &worked_out).await {
            // Its own tests held a moment ago, so it is the set that has changed.
            Err(RecordsError::Failed(index)) if is_mixed(&writes[index]) => {}
            written => return written,
        }
    }
    Err(StoreError::Unavailable(timer.elapsed(), "a set kept changing while it was written".into()).into())
}

async fn put(service: &TableService, item: &Item) -> Result<(), StoreError> {
    let attributes = attributes_of(item);
    let put = || {
        let put = service.client.put_item().table_name(&service.table);
        put.set_item(Some(attributes.clone())).send()
    };
    service.with_retries(put).await.map(drop).map_err(CallFailure::store_error)
}

async fn transact(service: &TableService, writes: &[Write]) -> Result<(), RecordsError> {
    let timer = CallTimer::start();
    if writes.is_empty() {
        return Ok(());
    }
    let mut assumptions = Assumptions::new(writes);
    for _ in 0..ROUNDS_MAX {
        let now = service.clock.now();
        let items = assumptions.items(&service.table, now)?;
        let Some(reasons) = send(service, items).await? else { return Ok(()) };
        assumptions.reconsider(reasons, now)?;
    }
    Err(StoreError::Unavailable(timer.elapsed(), "records kept expiring while they were written".into())
        .into())
}

/// Makes a transaction; returns the reason of each item if it was canceled.
async fn send(
    service: &TableService,
    items: Vec<TransactWriteItem>,
) -> Result<Option<Vec<CancelReason>>, StoreError> {
    match service.transact(items).await {
        Ok(_) => Ok(None),
        Err(CallFailure::Canceled(reasons)) => Ok(Some(reasons)),
        Err(failure) => Err(failure.store_error()),
    }
}

/// Writes as parts of a transaction, and what they assume of their records.
pub(crate) struct Assumptions<'a> {
    writes: &'a [Write],
    assumed: Vec<Assumed>,
}

impl Assumptions<'_> {
    /// Returns the writes with the assumption that no record has expired.
    pub(crate) fn new(writes: &[Write]) -> Assumptions<'_> {
        Assumptions { writes, assumed: vec![Assumed::NotExpired; writes.len()] }
    }

    /// Returns the part that each write has in a transaction at `now`.
    ///
    /// # Errors
    ///
    /// [`RecordsError::FailedRecord`] if the test of one is known to fail, and [`StoreError::BadCall`] for what cannot be made.
    pub(crate) fn items(&self, table: &str, now: Tick) -> Result<Vec<TransactWriteItem>, RecordsError> {
        let mut items = Vec::with_capacity(self.writes.len());
        for (index, (write, assumed)) in self.writes.iter().zip(&self.assumed).enumerate() {
            if *assumed == Assumed::Expired && !write.passes(None) {
                return Err(RecordsError::Failed(index));
            }
            items.push(transact_item(table, write, *assumed, now)?);
        }
        Ok(items)
    }

    /// Corrects the assumptions by the reasons of a canceled transaction at `now`, so that it can be made anew.
    ///
    /// # Errors
    ///
    /// [`RecordsError::FailedRecord`] if it was the test of a write.
    pub(crate) fn reconsider(
        &mut self,
        reasons: impl IntoIterator<Item = CancelReason>,
        now: Tick,
    ) -> Result<(), RecordsError> {
        let writes = self.writes.iter().zip(&mut self.assumed).enumerate();
        for ((index, (write, assumed)), reason) in writes.zip(reasons) {
            let CancelReason::Condition(image) = reason else { continue };
            let there = image.and_then(item_of);
            let has_expired = there.as_ref().is_some_and(|item| item.has_expired(now));
            let live = there.filter(|_| !has_expired);
            let wrongly = match assumed {
                Assumed::NotExpired => has_expired,
                Assumed::Expired => live.is_some(),
            };
            if !wrongly || !matches!(write, Write::Change(..)) || !write.passes(live.as_ref()) {
                return Err(RecordsError::Failed(index));
            }
            *assumed = if has_expired { Assumed::Expired } else { Assumed::NotExpired };
        }
        Ok(())
    }
}

fn transact_item(
    table: &str,
    write: &Write,
    assumed: Assumed,
    now: Tick,
) -> Result<TransactWriteItem, StoreError> {
    let mut words = Words::default();
    let part = match (write, assumed) {
        (Write::Change(key, changes, tests), Assumed::NotExpired) => {
            let update = update(&mut words, key, changes)?;
            let condition = condition_unless_expired(&mut words, tests, now);
            let part = Update::builder().table_name(table).set_key(Some(key_attributes(key)));
            let part = part.update_expression(update).condition_expression(condition);
            let part = part.return_values_on_condition_check_failure(OLD);
            let part = part.set_expression_attribute_names(words.names());
            part.set_expression_attribute_values(words.values()).build().map(TransactPart::Update)
        }
        (Write::Change(..), Assumed::Expired) => {
            let item = write.applied(None).map(|item| attributes_of(&item)).unwrap_or_default();
            let condition = Some(condition_absent(&mut words, now));
            put_part(table, item, condition, &words)
        }
        (Write::Put(item, tests), _) => {
            let condition = condition(&mut words, tests, now);
            put_part(table, attributes_of(item), condition, &words)
        }
        (Write::Delete(key, tests), _) => {
            let condition = condition(&mut words, tests, now);
            let part = Delete::builder().table_name(table).set_key(Some(key_attributes(key)));
            let part = part.set_condition_expression(condition).return_values_on_condition_check_failure(OLD);
            let part = part.set_expression_attribute_names(words.names());
            part.set_expression_attribute_values(words.values()).build().map(TransactPart::Delete)
        }
        (Write::Check(key, tests), _) => {
            // A check must have a condition, also if it tests nothing.
            let condition = condition(&mut words, tests, now).unwrap_or_else(|| words.anything());
            let part = ConditionCheck::builder().table_name(table).set_key(Some(key_attributes(key)));
            let part = part.condition_expression(condition).return_values_on_condition_check_failure(OLD);
            let part = part.set_expression_attribute_names(words.names());
            part.set_expression_attribute_values(words.values()).build().map(TransactPart::Check)
        }
        _ => return Err(StoreError::BadCall("this version does not know this kind of write".into())),
    };
    part.map(TransactPart::item).map_err(|error| incomplete(error).store_error())
}

fn put_part(
    table: &str,
    item: Attributes,
    condition: Option<String>,
    words: &Words,
) -> Result<TransactPart, aws_sdk_dynamodb::error::BuildError> {
    let part = Put::builder().table_name(table).set_item(Some(item)).set_condition_expression(condition);
    let part = part.set_expression_attribute_names(words.names());
    let part = part.set_expression_attribute_values(words.values());
    part.return_values_on_condition_check_failure(OLD).build().map(TransactPart::Put)
}

/// A part of a transaction.
enum TransactPart {
    Put(Put),
    Update(Update),
    Delete(Delete),
    Check(ConditionCheck),
}

impl TransactPart {
    fn item(self) -> TransactWriteItem {
        let item = TransactWriteItem::builder();
        match self {
            TransactPart::Put(put) => item.put(put),
            TransactPart::Update(update) => item.update(update),
            TransactPart::Delete(delete) => item.delete(delete),
            TransactPart::Check(check) => item.condition_check(check),
        }
        .build()
    }
}
