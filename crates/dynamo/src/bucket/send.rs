//! Writing what a draft says, once.

use aws_sdk_dynamodb::types::{
    ConditionCheck, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use tollgate_store::StoreError;

use super::address::{Address, space};
use super::draft::ItemDraft;
use super::expression::Expression;
use super::look::understand;
use super::snapshot::{self, ItemSnapshot};
use super::values::text;
use super::write::{self, WriteStamp};
use crate::inner::DynamoInner;
use crate::service::{Attributes, CallFailure, CancelReason, Elapsed, Tried};

/// What came of a write.
pub(crate) enum WriteResult {
    /// It was made, and this is the item now.
    Made(Box<ItemSnapshot>),
    /// The item was not what it had to be, but this.
    Missed(Option<Box<ItemSnapshot>>),
}

/// Why a write was given up.
pub(crate) enum GivenUp {
    /// It was not made.
    NotMade(StoreError),
    /// It is unknown whether it was made.
    Unsure(u64, StoreError),
}

impl DynamoInner {
    /// Makes the item what the draft says.
    pub(crate) async fn send(
        &self,
        address: &Address,
        draft: &ItemDraft,
        watch: Elapsed,
        tried: &mut Tried,
    ) -> Result<WriteResult, GivenUp> {
        let seq = self.buckets.next_seq(draft.now);
        let stroke = WriteStamp { writer: &self.buckets.writer, seq };
        let expression = write::expression(draft, address, &stroke, self.buckets.settings.fast_path);
        if draft.before.is_none() {
            return self.send_new(address, draft, &stroke, &expression, watch, tried).await;
        }
        let shard = draft.before.as_ref().map_or(0, |before| before.shard);
        let mut is_unsure = false;
        loop {
            match self.service.try_once(self.update(address, shard, &expression)).await {
                Ok(updated) => {
                    let attributes = updated.attributes.unwrap_or_default();
                    let image = understand(address, &attributes).map_err(GivenUp::NotMade)?;
                    return Ok(WriteResult::Made(Box::new(image)));
                }
                Err(CallFailure::Trouble(trouble, _)) => {
                    is_unsure |= trouble.may_be_applied();
                    let paused = self.service.pause(watch, tried, trouble).await;
                    paused.map_err(|failure| given_up(is_unsure, seq, failure))?;
                }
                Err(CallFailure::Condition(old)) => {
                    return self.missed(address, old, &stroke).map_err(GivenUp::NotMade);
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
        stroke: &WriteStamp<'_>,
        expression: &Expression,
        watch: Elapsed,
        tried: &mut Tried,
    ) -> Result<WriteResult, GivenUp> {
        let token = self.service.token();
        let mut is_unsure = false;
        loop {
            let write = self.service.client.transact_write_items().client_request_token(&token);
            let write = write
                .transact_items(self.update_item(address, 0, expression))
                .transact_items(self.open_check(&address.namespace));
            match self.service.try_once(write.send()).await {
                Ok(_) => return Ok(WriteResult::Made(Box::new(predicted(draft, stroke)))),
                Err(CallFailure::Trouble(trouble, _)) => {
                    is_unsure |= trouble.may_be_applied();
                    let paused = self.service.pause(watch, tried, trouble).await;
                    paused.map_err(|failure| given_up(is_unsure, stroke.seq, failure))?;
                }
                Err(CallFailure::Canceled(reasons)) => {
                    let mut reasons = reasons.into_iter();
                    if let Some(CancelReason::Condition(old @ Some(_))) = reasons.next() {
                        return self.missed(address, old, stroke).map_err(GivenUp::NotMade);
                    }
                    return match reasons.next() {
                        Some(CancelReason::Condition(_)) => Err(GivenUp::NotMade(gone(address))),
                        _ => Ok(WriteResult::Missed(None)),
                    };
                }
                Err(failure) => return Err(GivenUp::NotMade(failure.store_error())),
            }
        }
    }

    fn missed(
        &self,
        address: &Address,
        old: Option<Attributes>,
        stroke: &WriteStamp<'_>,
    ) -> Result<WriteResult, StoreError> {
        let Some(old) = old else { return Ok(WriteResult::Missed(None)) };
        let image = Box::new(understand(address, &old)?);
        // An earlier try of the same write was made, and its answer lost.
        let was_made = stroke.is_of(&image);
        Ok(if was_made { WriteResult::Made(image) } else { WriteResult::Missed(Some(image)) })
    }

    fn update(
        &self,
        address: &Address,
        shard: u32,
        expression: &Expression,
    ) -> impl Future<
        Output = Result<
            aws_sdk_dynamodb::operation::update_item::UpdateItemOutput,
            aws_sdk_dynamodb::error::SdkError<aws_sdk_dynamodb::operation::update_item::UpdateItemError>,
        >,
    > + use<> {
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
            .send()
    }

    /// The same as a part of a transaction.
    pub(crate) fn update_item(
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

    /// That the namespace is not closed.
    pub(crate) fn open_check(&self, namespace: &str) -> TransactWriteItem {
        let check = ConditionCheck::builder()
            .table_name(&self.service.table)
            .set_key(Some(closed_key(namespace)))
            .condition_expression("attribute_not_exists(PK)")
            .build()
            .expect("a table, a key and a condition are all it needs");
        TransactWriteItem::builder().condition_check(check).build()
    }
}

/// The mark of a namespace that is closed. It is not in the namespace, of which nothing is left once it is purged.
pub(crate) fn closed_key(namespace: &str) -> Attributes {
    let parts = [("PK", format!("_/CLOSED#{}", space(namespace))), ("SK", "#CLOSED".to_owned())];
    parts.into_iter().map(|(name, value)| (name.to_owned(), text(value))).collect()
}

/// The item as it is after a write that answers nothing.
pub(crate) fn predicted(draft: &ItemDraft, stroke: &WriteStamp<'_>) -> ItemSnapshot {
    let mut image = draft.after.clone().expect("what is written is there");
    image.revision = draft.before.as_ref().map_or(0, |before| before.revision) + 1;
    image.writers.insert(stroke.writer.into(), stroke.seq);
    image.written()
}

fn given_up(is_unsure: bool, seq: u64, failure: CallFailure) -> GivenUp {
    let error = failure.store_error();
    if is_unsure { GivenUp::Unsure(seq, error) } else { GivenUp::NotMade(error) }
}

pub(crate) fn gone(address: &Address) -> StoreError {
    StoreError::NamespaceGone(address.namespace.to_string())
}
