//! Applying a call: by one script if it is plain sailing, otherwise by the core and a change on condition.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Denial, Status, Tick};
use tollgate_store::prefetch::UsageDelta;
use tollgate_store::records::{RecordsError, Write};
use tollgate_store::workers::{CallTimer, unique_id};
use tollgate_store::{
    Clock, OpId, OwnedTransaction, QueuePlace, Step, StepOutcome, StoreError, Taken, Transaction, TxnOutcome,
    decode_outcome, encode_outcome,
};

use crate::ServerError;
use crate::background;
use crate::codec::{NARROW_MAX, RedisRow, may_have_waiters, text_of};
use crate::commit::{Changes, Expiry};
use crate::draft::{CommitPlan, DraftTxn, ValueSnapshot};
use crate::inner::RedisInner;
use crate::queue::{InTurn, QueueStanding};
use crate::script_args::{self, StepMetering};
use crate::service::{LoadedScript, ScriptAnswer, SeenValues, TimedError};

/// How often a change is worked out anew because others were quicker.
const CONFLICTS_MAX: usize = 500;

/// How long what came of a call is remembered at least.
const REMEMBERED: Duration = Duration::from_secs(60);

/// What `meters.lua` answers that took from all buckets at one time begins with this; the time follows.
const AT_ONE_TIME: u8 = b'T';

/// For how many milliseconds changes are remembered that only this process makes again, and only for as long as a call lasts.
pub(crate) const BRIEFLY: &str = "60000";

/// What is remembered of changes whose answer no caller needs to read.
const MADE: &[u8] = b"-";

/// How long what came of a call is remembered by a store whose calls take so long at most.
pub(crate) fn remembered_by(timeout: Duration) -> Duration {
    REMEMBERED.max(timeout * 4)
}

impl RedisInner {
    /// As [`apply_in_turn`](Self::apply_in_turn), for a background call on what is held ahead: its steps count `used`.
    ///
    /// # Cancel safety
    ///
    /// None: it must be run to its end.
    pub(crate) async fn apply_with_usage(
        &self,
        call: &OwnedTransaction,
        used: &[UsageDelta],
    ) -> Result<TxnOutcome, RecordsError> {
        self.apply_in_turn(call, &[], background::REMEMBERED, used, &QueuePlace::default()).await
    }

    /// Applies the call and makes the writes, or neither; once if the call has an id. What came of it is remembered for
    /// so long: longer than any caller retries. If `told` says what the steps used, that is counted. It is denied
    /// behind waiters that the caller's place is behind, unless there are writes.
    ///
    /// # Cancel safety
    ///
    /// None: it must be run to its end.
    pub(crate) async fn apply_in_turn(
        &self,
        call: &OwnedTransaction,
        writes: &[Write],
        remembered: Duration,
        told: &[UsageDelta],
        place: &QueuePlace,
    ) -> Result<TxnOutcome, RecordsError> {
        call.with(|call| call.check(writes))?;
        let remembered = remembered.as_millis().to_string();
        let (watch, id) = (CallTimer::start(), call.id.unwrap_or_else(unique_id));
        let (order, keys) = call.with(|call| {
            let in_turn = place.rank.map(|_| place).filter(|_| takes(call));
            let order = match in_turn {
                Some(place) => Some(self.order_in_turn(call, &remembered, told, place)),
                None => self.order(call, &remembered, told),
            };
            (order.filter(|_| writes.is_empty()), self.bucket_keys(call))
        });
        let mut answer = match order {
            Some(order) if !keys.is_empty() => self.carry_out(watch, id, &order, keys).await?,
            _ => {
                let mut keys = keys;
                keys.extend(writes.iter().map(|write| self.service.layout.record(write.key())));
                self.look(watch, id, &keys).await?
            }
        };
        if let ScriptReply::Seen((keys, seen)) = &answer
            && place.rank.is_none()
            && writes.is_empty()
            && call.with(takes)
            && seen.values.iter().any(|value| may_have_waiters(value))
        {
            let order = call.with(|call| self.order_in_turn(call, &remembered, told, place));
            answer = self.carry_out(watch, id, &order, keys.clone()).await?;
        }
        let (mut view, standing) = match answer {
            ScriptReply::Done(outcome) => {
                self.claims.granted(place.rank);
                return done(&outcome, call);
            }
            ScriptReply::Seen((keys, mut seen)) => {
                let standing = seen.values.get(keys.len()).map(|told| QueueStanding::of(told));
                seen.values.truncate(keys.len());
                (ValueSnapshot::of(&keys, seen), standing.unwrap_or_default())
            }
        };
        for conflicts in 0..CONFLICTS_MAX {
            let plan = call.with(|call| {
                call.steps.iter().for_each(|step| {
                    view.assume_absent(self.service.layout.closed(step.place.namespace));
                });
                let granting = place.rank.map(|rank| self.granting(call, rank)).unwrap_or_default();
                self.draft(&view).told(told).standing(standing).granting(granting).plan(call, writes)
            });
            let looked = match plan? {
                CommitPlan::Answer(applied) => return Ok(applied),
                CommitPlan::Guess => self.look_again(watch, id, &view, Vec::new()).await?,
                CommitPlan::Look(more) => self.look_again(watch, id, &view, more).await?,
                CommitPlan::Commit(applied, changes) => {
                    let is_done = matches!(applied, TxnOutcome::Done(_));
                    let outcome = match &applied {
                        TxnOutcome::Done(done) if !done.is_empty() => encode_outcome(done),
                        _ => MADE.to_vec(),
                    };
                    // A denial is not remembered: a caller that asks again makes a new call.
                    let id = if is_done { id } else { unique_id() };
                    match self.commit(watch, (id, &remembered), &view, &changes, &outcome).await? {
                        ScriptReply::Done(known) if known == outcome => {
                            if is_done {
                                self.claims.granted(place.rank);
                            }
                            self.sweep_after(call, &changes);
                            return Ok(applied);
                        }
                        ScriptReply::Done(outcome) => return done(&outcome, call),
                        ScriptReply::Seen(seen) => {
                            let conflict = ServerError::Conflict(conflicts + 1);
                            self.service
                                .pause(watch, round(conflicts), conflict)
                                .await
                                .map_err(TimedError::into_error)?;
                            ScriptReply::Seen(seen)
                        }
                    }
                }
            };
            view = match looked {
                ScriptReply::Done(outcome) => return done(&outcome, call),
                ScriptReply::Seen((keys, seen)) => ValueSnapshot::of(&keys, seen),
            };
        }
        Err(ServerError::Conflict(CONFLICTS_MAX).into_error(watch.elapsed()).into())
    }

    pub(crate) fn draft<'a>(&'a self, view: &'a ValueSnapshot) -> DraftTxn<'a> {
        let expiry = if self.service.time.given().is_some() { Expiry::Never } else { Expiry::ByServer };
        DraftTxn::new(&self.service.layout, view, expiry, &self.usage_retention)
    }

    fn bucket_keys(&self, call: &Transaction<'_>) -> Vec<Vec<u8>> {
        let key = |step: &Step<'_>| self.service.layout.bucket(step.place.namespace, step.place.key);
        call.steps.iter().map(key).collect()
    }

    /// The script for a call and its arguments, if it is something for a script.
    fn order(&self, call: &Transaction<'_>, remembered: &str, told: &[UsageDelta]) -> Option<ScriptCall> {
        let now = self.service.time.clock().now();
        if now.as_micros() > NARROW_MAX {
            return None;
        }
        let meters = if told.is_empty() { self.meters(call, remembered, now) } else { None };
        meters.or_else(|| {
            let numbers = self.numbers(call, told, now)?;
            Some(self.general(call, remembered, numbers))
        })
    }

    /// The script for a call that takes in turn and its arguments. What is nothing for a script is passed without
    /// numbers.
    fn order_in_turn(
        &self,
        call: &Transaction<'_>,
        remembered: &str,
        told: &[UsageDelta],
        place: &QueuePlace,
    ) -> ScriptCall {
        let now = self.service.time.clock().now();
        let numbers = if now.as_micros() > NARROW_MAX { None } else { self.numbers(call, told, now) };
        let mut order =
            self.general(call, remembered, numbers.unwrap_or_else(|| vec![Vec::new(); call.steps.len()]));
        let InTurn { keys, arguments } = self.in_turn(call, place);
        order.more_keys = keys;
        order.arguments.extend(arguments);
        order
    }

    /// The steps as they are passed to the general script, if they are something for it.
    fn numbers(&self, call: &Transaction<'_>, told: &[UsageDelta], now: Tick) -> Option<Vec<Vec<u8>>> {
        let of_step = |(index, step): (usize, &Step<'_>)| {
            script_args::of_step(step, StepMetering::of(call.metered, told.get(index)), now)
        };
        call.steps.iter().enumerate().map(of_step).collect()
    }

    fn general(&self, call: &Transaction<'_>, remembered: &str, numbers: Vec<Vec<u8>>) -> ScriptCall {
        let mut arguments = vec![self.service.now().into_bytes(), remembered.as_bytes().to_vec()];
        for (step, numbers) in call.steps.iter().zip(numbers) {
            arguments.extend([numbers, text_of(step.place.limits).into_bytes()]);
        }
        ScriptCall { script: Arc::clone(&self.service.scripts.apply), more_keys: Vec::new(), arguments }
    }

    /// Runs the script of a call on buckets at these keys.
    async fn carry_out(
        &self,
        watch: CallTimer,
        id: OpId,
        order: &ScriptCall,
        keys: Vec<Vec<u8>>,
    ) -> Result<ScriptReply, StoreError> {
        let all = [&[self.service.layout.outcome(id.0)], &keys[..], &order.more_keys].concat();
        self.ask(watch, &order.script, &all, &order.arguments, keys).await
    }

    /// As [`order`](Self::order), if it is the common case.
    fn meters(&self, call: &Transaction<'_>, remembered: &str, now: Tick) -> Option<ScriptCall> {
        let meters = &self.service.scripts.meters;
        if remembered != meters.remembered_ms() {
            return None;
        }
        let numbers = call.steps.iter().map(|step| script_args::of_meters(step, call.metered, now));
        let mut arguments = numbers.collect::<Option<Vec<_>>>()?;
        let shape: Vec<usize> = call.steps.iter().map(|step| step.place.limits.len()).collect();
        arguments.extend(self.service.time.given().map(|now| now.as_micros().to_string().into_bytes()));
        Some(ScriptCall { script: meters.of(&shape)?, more_keys: Vec::new(), arguments })
    }

    /// What there is at these keys, unless the call was applied before.
    pub(crate) async fn look(
        &self,
        watch: CallTimer,
        id: OpId,
        keys: &[Vec<u8>],
    ) -> Result<ScriptReply, StoreError> {
        let all = [&[self.service.layout.outcome(id.0)], keys].concat();
        let arguments = [self.service.now()];
        self.ask(watch, &self.service.scripts.look, &all, &arguments, keys.to_vec()).await
    }

    pub(crate) async fn look_again(
        &self,
        watch: CallTimer,
        id: OpId,
        view: &ValueSnapshot,
        more: Vec<Vec<u8>>,
    ) -> Result<ScriptReply, StoreError> {
        let mut keys: Vec<Vec<u8>> = view.keys().cloned().chain(more).collect();
        keys.sort();
        keys.dedup();
        self.look(watch, id, &keys).await
    }

    /// Makes the changes if what they depend on is as it was seen.
    pub(crate) async fn commit(
        &self,
        watch: CallTimer,
        (id, remembered): (OpId, &str),
        view: &ValueSnapshot,
        changes: &Changes,
        outcome: &[u8],
    ) -> Result<ScriptReply, StoreError> {
        let Changes { checked, touched, commands, .. } = changes;
        let keys = [&[self.service.layout.outcome(id.0)], &checked[..], touched].concat();
        let count = checked.len().to_string().into_bytes();
        let mut arguments =
            vec![self.service.now().into_bytes(), remembered.as_bytes().to_vec(), outcome.to_vec(), count];
        arguments.extend(checked.iter().map(|key| view.get(key).unwrap_or_default().to_vec()));
        for command in commands {
            arguments.push(command.len().to_string().into_bytes());
            arguments.extend(command.iter().cloned());
        }
        self.ask(watch, &self.service.scripts.commit, &keys, &arguments, checked.clone()).await
    }

    async fn ask<A: AsRef<[u8]>>(
        &self,
        watch: CallTimer,
        script: &LoadedScript,
        keys: &[Vec<u8>],
        arguments: &[A],
        seen: Vec<Vec<u8>>,
    ) -> Result<ScriptReply, StoreError> {
        let asked = Clock::system().now();
        let value = self.service.run(watch, script, keys, arguments).await?;
        Ok(match ScriptAnswer::of(value)? {
            ScriptAnswer::Done(outcome) => ScriptReply::Done(outcome),
            ScriptAnswer::Seen(answer) => {
                self.service.time.learn(asked, answer.now);
                ScriptReply::Seen((seen, answer))
            }
        })
    }

    /// How every step that takes would fare.
    pub(crate) async fn fare(&self, call: &OwnedTransaction) -> Result<Vec<Denial>, StoreError> {
        let view = self.see(call).await?;
        call.with(|call| {
            let mut denials = Vec::new();
            for step in call.steps {
                let row = self.row(&view, step)?;
                denials.extend(row.kept.ask(step, view.now));
            }
            Ok(denials)
        })
    }

    /// How the bucket of the first step stands.
    pub(crate) async fn stand(&self, call: &OwnedTransaction) -> Result<Vec<Status>, StoreError> {
        let view = self.see(call).await?;
        call.with(|call| match call.steps {
            [step, ..] => Ok(self.row(&view, step)?.kept.peek(step.place.limits, view.now)),
            [] => Ok(Vec::new()),
        })
    }

    async fn see(&self, call: &OwnedTransaction) -> Result<ValueSnapshot, StoreError> {
        let keys = call.with(|call| self.bucket_keys(call));
        match self.look(CallTimer::start(), unique_id(), &keys).await? {
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
                .map_err(|trouble| trouble.into_error(Duration::ZERO)),
        }
    }
}

/// A script for a call, and its arguments.
struct ScriptCall {
    script: Arc<LoadedScript>,
    /// Keys behind those of the buckets.
    more_keys: Vec<Vec<u8>>,
    arguments: Vec<Vec<u8>>,
}

fn takes(call: &Transaction<'_>) -> bool {
    call.steps.iter().any(|step| step.takes().is_some())
}

/// What came of a script.
pub(crate) enum ScriptReply {
    /// The call was applied, now or before.
    Done(Vec<u8>),
    /// Nothing was changed. This is what there is at these keys.
    Seen((Vec<Vec<u8>>, SeenValues)),
}

fn done(outcome: &[u8], call: &OwnedTransaction) -> Result<TxnOutcome, RecordsError> {
    if outcome == MADE {
        return Ok(TxnOutcome::Done(Vec::new()));
    }
    if let Some((&AT_ONE_TIME, at)) = outcome.split_first()
        && let Ok(at) = at.try_into().map(f64::from_le_bytes)
    {
        let taken = StepOutcome::Taken(Taken { at: Tick::from_micros(at as u64), remarks: 0 });
        return Ok(TxnOutcome::Done(call.steps().map(|_| taken).collect()));
    }
    let unreadable = || ServerError::Unreadable("what came of a call".into()).into_error(Duration::ZERO);
    Ok(TxnOutcome::Done(decode_outcome(outcome).ok_or_else(unreadable)?))
}

/// Pauses grow with every few conflicts: most are over at once.
fn round(conflicts: usize) -> u32 {
    u32::try_from(conflicts / 4).unwrap_or(u32::MAX)
}
