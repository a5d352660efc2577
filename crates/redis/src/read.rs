//! Reading buckets, with nothing taken.

use std::time::Duration;

use tollgate_core::{Denial, Status};
use tollgate_store::workers::{CallTimer, unique_id};
use tollgate_store::{OpId, OwnedTransaction, Step, StoreError};

use crate::ServerError;
use crate::apply::ScriptReply;
use crate::codec::RedisRow;
use crate::draft::ValueSnapshot;
use crate::inner::RedisInner;

impl RedisInner {
    /// Returns a denial for every step that takes and would be denied now.
    pub(crate) async fn evaluate(&self, call: &OwnedTransaction) -> Result<Vec<Denial>, StoreError> {
        let view = self.snapshot(call).await?;
        call.with(|call| {
            let mut denials = Vec::new();
            for step in call.steps {
                let row = self.row(&view, step)?;
                denials.extend(row.kept.evaluate(step, view.now));
            }
            Ok(denials)
        })
    }

    /// Returns the status of every limit of the bucket of the first step.
    pub(crate) async fn peek(&self, call: &OwnedTransaction) -> Result<Vec<Status>, StoreError> {
        let view = self.snapshot(call).await?;
        call.with(|call| match call.steps {
            [step, ..] => Ok(self.row(&view, step)?.kept.peek(step.place.limits, view.now)),
            [] => Ok(Vec::new()),
        })
    }

    async fn snapshot(&self, call: &OwnedTransaction) -> Result<ValueSnapshot, StoreError> {
        let keys = call.with(|call| self.bucket_keys(call));
        match self.read_values(CallTimer::start(), unique_id(), &keys).await? {
            ScriptReply::Seen((keys, seen)) => Ok(ValueSnapshot::of(&keys, seen)),
            ScriptReply::Done(_) => {
                Err(ServerError::Garbage("nothing was seen".into()).into_error(Duration::ZERO))
            }
        }
    }

    fn row(&self, view: &ValueSnapshot, step: &Step<'_>) -> Result<RedisRow, StoreError> {
        let key = self.service.layout.bucket(step.place.namespace, step.place.key);
        match view.get(&key) {
            None | Some([]) => Ok(RedisRow::fresh(step.place.limits)),
            Some(bytes) => RedisRow::from_bytes(bytes, Some(step.place.limits))
                .map_err(|error| error.into_error(Duration::ZERO)),
        }
    }

    /// Reads the values at these keys, unless the call of this id was applied before.
    pub(crate) async fn read_values(
        &self,
        timer: CallTimer,
        id: OpId,
        keys: &[Vec<u8>],
    ) -> Result<ScriptReply, StoreError> {
        let all = [&[self.service.layout.outcome(id.0)], keys].concat();
        let arguments = [self.service.now()];
        self.run(timer, &self.service.scripts.look, &all, &arguments, keys.to_vec()).await
    }

    /// Reads all that was read before, and the values at more keys.
    pub(crate) async fn read_again(
        &self,
        timer: CallTimer,
        id: OpId,
        view: &ValueSnapshot,
        more: Vec<Vec<u8>>,
    ) -> Result<ScriptReply, StoreError> {
        let mut keys: Vec<Vec<u8>> = view.keys().cloned().chain(more).collect();
        keys.sort();
        keys.dedup();
        self.read_values(timer, id, &keys).await
    }
}
