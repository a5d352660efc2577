//! Sending writes: one request, with retries.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{
    ConditionCheck, Delete, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use tollgate_core::Tick;
use tollgate_store::StoreError;

use super::BucketSettings;
use super::address::{Address, space};
use super::draft::ItemDraft;
use super::expression::Expression;
use super::read::parse_item;
use super::snapshot::{self, ItemSnapshot};
use super::values::text;
use super::write::{self, WriteStamp};
use crate::service::{Attempts, Attributes, CallFailure, CancelReason, TableService};

/// Sends the writes of this process to the items of buckets.
pub(super) struct ItemWriter {
    pub(super) service: Arc<TableService>,
    pub(super) settings: BucketSettings,
    /// The attribute in which items remember the last write of this process.
    writer: String,
    seq: AtomicU64,
}

/// What came of a write.
pub(super) enum WriteResult {
    /// It was made, and this is the item now.
    Made(Box<ItemSnapshot>),
    /// The item was not what it had to be, but this.
    Missed(Option<Box<ItemSnapshot>>),
}

/// What came of a transaction.
pub(super) enum TransactResult {
    Made,
    /// A condition did not hold.
    Canceled(Vec<CancelReason>),
}

/// Why a write was given up.
pub(super) enum GivenUp {
    /// It was not made.
    NotMade(StoreError),
    /// It is unknown whether it was made. The number of the write.
    Unknown(u64, StoreError),
}

impl ItemWriter {
    pub(super) fn new(
        service: Arc<TableService>,
        settings: BucketSettings,
    ) -> Result<ItemWriter, getrandom::Error> {
        // As many as there may be writers to one item, and a chance of less than one in 10^9 that two of ten are one.
        let writer = format!("w_{:07x}", getrandom::u32()? >> 4);
        Ok(ItemWriter { service, settings, writer, seq: AtomicU64::new(0) })
    }

    /// Returns the stamp of the next write. Its number is larger than any before, and than the time, so that it shows
    /// when the write was.
    pub(super) fn next_stamp(&self, now: Tick) -> WriteStamp<'_> {
        let next = |last: u64| last.saturating_add(1).max(now.as_micros());
        let last = self.seq.fetch_update(Ordering::AcqRel, Ordering::Acquire, |last| Some(next(last)));
        WriteStamp { writer: &self.writer, seq: next(last.unwrap_or_default()) }
    }

    /// Returns the number of the last write of this process to an item.
    pub(super) fn last_write(&self, snapshot: &ItemSnapshot) -> Option<u64> {
        snapshot.writers.get(&self.writer).copied()
    }

    /// Makes the item what the draft has it to be.
    pub(super) async fn send(
        &self,
        address: &Address,
        draft: &ItemDraft,
        attempts: &mut Attempts,
    ) -> Result<WriteResult, GivenUp> {
        let stamp = self.next_stamp(draft.now);
        let expression = write::expression(draft, address, &stamp, self.settings.fast_path);
        let Some(before) = &draft.before else {
            return self.send_new(address, draft, &stamp, &expression, attempts).await;
        };
        let mut is_unknown = false;
        loop {
            match self.service.try_once(self.update(address, before.shard, &expression).send()).await {
                Ok(updated) => {
                    let attributes = updated.attributes.unwrap_or_default();
                    let snapshot = parse_item(address, &attributes).map_err(GivenUp::NotMade)?;
                    return Ok(WriteResult::Made(Box::new(snapshot)));
                }
                Err(CallFailure::Service(error, _)) => {
                    is_unknown |= error.may_be_applied();
                    let paused = self.service.pause(attempts, error).await;
                    paused.map_err(|failure| given_up(is_unknown, &stamp, failure))?;
                }
                Err(CallFailure::Condition(old)) => {
                    return missed(address, old, &stamp).map_err(GivenUp::NotMade);
                }
                Err(failure) => return Err(GivenUp::NotMade(failure.store_error())),
            }
        }
    }

    /// Makes an item that is not there, unless its namespace is closed.
    async fn send_new(
        &self,
        address: &Address,
        draft: &ItemDraft,
        stamp: &WriteStamp<'_>,
        expression: &Expression,
        attempts: &mut Attempts,
    ) -> Result<WriteResult, GivenUp> {
        let items = vec![self.update_item(address, 0, expression), self.open_check(&address.namespace)];
        let reasons = match self.send_transaction(items, stamp, attempts).await? {
            TransactResult::Made => return Ok(WriteResult::Made(Box::new(predicted(draft, stamp)))),
            TransactResult::Canceled(reasons) => reasons,
        };
        let mut reasons = reasons.into_iter();
        if let Some(CancelReason::Condition(old @ Some(_))) = reasons.next() {
            return missed(address, old, stamp).map_err(GivenUp::NotMade);
        }
        match reasons.next() {
            Some(CancelReason::Condition(_)) => Err(GivenUp::NotMade(namespace_gone(address))),
            _ => Ok(WriteResult::Missed(None)),
        }
    }

    /// Makes all of these writes, which have one stamp, or none of them.
    pub(super) async fn send_transaction(
        &self,
        items: Vec<TransactWriteItem>,
        stamp: &WriteStamp<'_>,
        attempts: &mut Attempts,
    ) -> Result<TransactResult, GivenUp> {
        let (token, mut is_unknown) = (self.service.token(), false);
        loop {
            let write = self.service.client.transact_write_items().client_request_token(&token);
            match self.service.try_once(write.set_transact_items(Some(items.clone())).send()).await {
                Ok(_) => return Ok(TransactResult::Made),
                Err(CallFailure::Service(error, _)) => {
                    is_unknown |= error.may_be_applied();
                    let paused = self.service.pause(attempts, error).await;
                    paused.map_err(|failure| given_up(is_unknown, stamp, failure))?;
                }
                Err(CallFailure::Canceled(reasons)) => return Ok(TransactResult::Canceled(reasons)),
                Err(failure) => return Err(GivenUp::NotMade(failure.store_error())),
            }
        }
    }

    fn update(&self, address: &Address, shard: u32, expression: &Expression) -> UpdateItemFluentBuilder {
        self.service
            .client
            .update_item()
            .table_name(&self.service.table)
            .set_key(Some(snapshot::key(address, shard)))
            .update_expression(expression.update())
            .condition_expression(expression.condition())
            .set_expression_attribute_names(Some(expression.names.clone()))
            .set_expression_attribute_values(Some(expression.values.clone()))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
    }

    /// Returns an update as a part of a transaction.
    pub(super) fn update_item(
        &self,
        address: &Address,
        shard: u32,
        expression: &Expression,
    ) -> TransactWriteItem {
        let update = Update::builder()
            .table_name(&self.service.table)
            .set_key(Some(snapshot::key(address, shard)))
            .update_expression(expression.update())
            .condition_expression(expression.condition())
            .set_expression_attribute_names(Some(expression.names.clone()))
            .set_expression_attribute_values(Some(expression.values.clone()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .expect("a table, a key and an update are all it needs");
        TransactWriteItem::builder().update(update).build()
    }

    /// Returns the deletion of an item that is as it was seen, as a part of a transaction.
    pub(super) fn delete_item(&self, address: &Address, before: &ItemSnapshot) -> TransactWriteItem {
        let mut expression = Expression::default();
        write::require_seen(&mut expression, before);
        let delete = Delete::builder()
            .table_name(&self.service.table)
            .set_key(Some(snapshot::key(address, before.shard)))
            .condition_expression(expression.condition())
            .set_expression_attribute_names(Some(expression.names))
            .set_expression_attribute_values(Some(expression.values))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .expect("a table, a key and a condition are all it needs");
        TransactWriteItem::builder().delete(delete).build()
    }

    /// Returns the check that a namespace is not closed, as a part of a transaction.
    pub(super) fn open_check(&self, namespace: &str) -> TransactWriteItem {
        let check = ConditionCheck::builder()
            .table_name(&self.service.table)
            .set_key(Some(closed_key(namespace)))
            .condition_expression("attribute_not_exists(PK)")
            .build()
            .expect("a table, a key and a condition are all it needs");
        TransactWriteItem::builder().condition_check(check).build()
    }
}

/// Returns the mark of a namespace that is closed. It is not in the namespace, of which nothing is left once it is purged.
pub(super) fn closed_key(namespace: &str) -> Attributes {
    let parts = [("PK", format!("_/CLOSED#{}", space(namespace))), ("SK", "#CLOSED".to_owned())];
    parts.into_iter().map(|(name, value)| (name.to_owned(), text(value))).collect()
}

/// Returns the item as it is after a write that returns nothing.
pub(super) fn predicted(draft: &ItemDraft, stamp: &WriteStamp<'_>) -> ItemSnapshot {
    let mut snapshot = draft.after.clone().expect("what is written is there");
    snapshot.revision = draft.before.as_ref().map_or(0, |before| before.revision) + 1;
    snapshot.writers.insert(stamp.writer.into(), stamp.seq);
    snapshot.written()
}

fn missed(
    address: &Address,
    old: Option<Attributes>,
    stamp: &WriteStamp<'_>,
) -> Result<WriteResult, StoreError> {
    let Some(old) = old else { return Ok(WriteResult::Missed(None)) };
    let snapshot = Box::new(parse_item(address, &old)?);
    // An earlier attempt of the same write was made, and its answer lost.
    let was_made = stamp.is_of(&snapshot);
    Ok(if was_made { WriteResult::Made(snapshot) } else { WriteResult::Missed(Some(snapshot)) })
}

fn given_up(is_unknown: bool, stamp: &WriteStamp<'_>, failure: CallFailure) -> GivenUp {
    let error = failure.store_error();
    if is_unknown { GivenUp::Unknown(stamp.seq, error) } else { GivenUp::NotMade(error) }
}

pub(super) fn namespace_gone(address: &Address) -> StoreError {
    StoreError::NamespaceGone(address.namespace.to_string())
}

impl GivenUp {
    pub(super) fn error(self) -> StoreError {
        let (GivenUp::NotMade(error) | GivenUp::Unknown(_, error)) = self;
        error
    }
}
