//! Applying a call: by one script in the common case, otherwise by the core and a conditional commit.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Tick;
use tollgate_store::prefetch::UsageDelta;
use tollgate_store::records::{RecordsError, Write};
use tollgate_store::workers::{CallTimer, unique_id};
use tollgate_store::{
    Clock, OpId, OwnedTransaction, QueuePlace, Step, StepOutcome, StoreError, Taken, Transaction, TxnOutcome,
    decode_outcome, encode_outcome,
};

use crate::codec::{NARROW_MAX, may_have_waiters, text_of};
use crate::commit::{Changes, Expiry};
use crate::draft::{CommitPlan, DraftTxn, ValueSnapshot};
use crate::inner::RedisInner;
use crate::queue::{InTurn, QueueStatus};
use crate::script_args::{self, StepMetering};
use crate::service::{LoadedScript, ScriptAnswer, SeenValues, TimedError};
use crate::{ServerError, background};

/// How often a commit is worked out anew because other clients were quicker.
const CONFLICTS_MAX: usize = 500;

/// How long the outcome of a call is remembered at least.
const REMEMBERED: Duration = Duration::from_secs(60);

/// The first byte of the reply of `meters.lua` if it took from all buckets at one time; the time follows.
const AT_ONE_TIME: u8 = b'T';

/// For how many milliseconds commits are remembered that only this process makes again, and only for as long as a call
/// lasts.
pub(crate) const BRIEFLY: &str = "60000";

/// The remembered outcome of a commit whose outcome no caller needs to read.
const MADE: &[u8] = b"-";

/// Returns how long the outcome of a call is remembered if calls have this timeout.
pub(crate) fn remembered_by(timeout: Duration) -> Duration {
    REMEMBERED.max(timeout * 4)
}

/// A call on the server.
struct RedisCall<'a> {
    call: &'a OwnedTransaction,
    writes: &'a [Write],
    /// What the steps used, if that is not what they take or settle.
    used: &'a [UsageDelta],
    place: &'a QueuePlace,
    id: OpId,
    /// For how many milliseconds the outcome is remembered under the id.
    remembered_ms: String,
    timer: CallTimer,
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

    /// Applies the call and makes the writes, or neither; once if the call has an id. The outcome is remembered for
    /// `remembered`: longer than any caller retries. If `used` is given, that is counted as usage. The call is denied
    /// behind waiters that are ahead of the caller's place, unless there are writes.
    ///
    /// # Cancel safety
    ///
    /// None: it must be run to its end.
    pub(crate) async fn apply_in_turn(
        &self,
        call: &OwnedTransaction,
        writes: &[Write],
        remembered: Duration,
        used: &[UsageDelta],
        place: &QueuePlace,
    ) -> Result<TxnOutcome, RecordsError> {
        call.with(|call| call.check(writes))?;
        let (id, timer) = (call.id.unwrap_or_else(unique_id), CallTimer::start());
        let remembered_ms = remembered.as_millis().to_string();
        let call = RedisCall { call, writes, used, place, id, remembered_ms, timer };
        match self.first_reply(&call).await? {
            ScriptReply::Done(outcome) => {
                self.claims.granted(place.rank);
                done(&outcome, call.call)
            }
            ScriptReply::Seen((keys, mut seen)) => {
                let queue_status = seen.values.get(keys.len()).map(|bytes| QueueStatus::of(bytes));
                seen.values.truncate(keys.len());
                let view = ValueSnapshot::of(&keys, seen);
                self.decide_and_commit(&call, view, queue_status.unwrap_or_default()).await
            }
        }
    }

    /// Runs the script of a call, or reads what the call depends on if no script can apply it.
    async fn first_reply(&self, call: &RedisCall<'_>) -> Result<ScriptReply, StoreError> {
        let RedisCall { writes, place, id, timer, .. } = *call;
        let (script, mut keys) = call.call.with(|txn| {
            let script = match place.rank {
                _ if !writes.is_empty() => None,
                Some(_) if takes(txn) => Some(self.script_in_turn(txn, call)),
                _ => self.script_for(txn, call),
            };
            (script, self.bucket_keys(txn))
        });
        let reply = match script {
            Some(script) if !keys.is_empty() => self.run_script(call, &script, keys).await?,
            _ => {
                keys.extend(writes.iter().map(|write| self.service.layout.record(write.key())));
                self.read_values(timer, id, &keys).await?
            }
        };
        if let ScriptReply::Seen((keys, seen)) = &reply
            && place.rank.is_none()
            && writes.is_empty()
            && call.call.with(takes)
            && seen.values.iter().any(|value| may_have_waiters(value))
        {
            let script = call.call.with(|txn| self.script_in_turn(txn, call));
            return self.run_script(call, &script, keys.clone()).await;
        }
        Ok(reply)
    }

    /// Decides by the core on what was read, and commits that on condition that nothing has changed; again and again if
    /// something has.
    async fn decide_and_commit(
        &self,
        call: &RedisCall<'_>,
        mut view: ValueSnapshot,
        queue_status: QueueStatus,
    ) -> Result<TxnOutcome, RecordsError> {
        let RedisCall { id, timer, .. } = *call;
        for conflicts in 0..CONFLICTS_MAX {
            let reply = match self.plan(call, &mut view, queue_status)? {
                CommitPlan::Answer(outcome) => return Ok(outcome),
                CommitPlan::Guess => self.read_again(timer, id, &view, Vec::new()).await?,
                CommitPlan::Look(more) => self.read_again(timer, id, &view, more).await?,
                CommitPlan::Commit(outcome, changes) => {
                    match self.try_commit(call, &view, outcome, &changes).await? {
                        ControlFlow::Break(outcome) => return Ok(outcome),
                        ControlFlow::Continue(reply) => {
                            let conflict = ServerError::Conflict(conflicts + 1);
                            let paused = self.service.pause(timer, round(conflicts), conflict).await;
                            paused.map_err(TimedError::into_error)?;
                            reply
                        }
                    }
                }
            };
            view = match reply {
                ScriptReply::Done(outcome) => return done(&outcome, call.call),
                ScriptReply::Seen((keys, seen)) => ValueSnapshot::of(&keys, seen),
            };
        }
        Err(ServerError::Conflict(CONFLICTS_MAX).into_error(timer.elapsed()).into())
    }

    fn plan(
        &self,
        call: &RedisCall<'_>,
        view: &mut ValueSnapshot,
        queue_status: QueueStatus,
    ) -> Result<CommitPlan, RecordsError> {
        call.call.with(|txn| {
            for step in txn.steps {
                view.assume_absent(self.service.layout.closed(step.place.namespace));
            }
            let granting = call.place.rank.map(|rank| self.granting(txn, rank)).unwrap_or_default();
            self.draft(view)
                .usage_override(call.used)
                .queue_status(queue_status)
                .granting(granting)
                .plan(txn, call.writes)
        })
    }

    /// Commits an outcome, or returns what there is instead of what was read.
    async fn try_commit(
        &self,
        call: &RedisCall<'_>,
        view: &ValueSnapshot,
        outcome: TxnOutcome,
        changes: &Changes,
    ) -> Result<ControlFlow<TxnOutcome, ScriptReply>, RecordsError> {
        let is_done = matches!(outcome, TxnOutcome::Done(_));
        let bytes = match &outcome {
            TxnOutcome::Done(done) if !done.is_empty() => encode_outcome(done),
            _ => MADE.to_vec(),
        };
        // A denial is not remembered: a caller that asks again makes a new call.
        let id = if is_done { call.id } else { unique_id() };
        match self.commit(call.timer, (id, &call.remembered_ms), view, changes, &bytes).await? {
            ScriptReply::Done(known) if known == bytes => {
                if is_done {
                    self.claims.granted(call.place.rank);
                }
                self.sweep_after(call.call, changes);
                Ok(ControlFlow::Break(outcome))
            }
            ScriptReply::Done(known) => done(&known, call.call).map(ControlFlow::Break),
            seen @ ScriptReply::Seen(_) => Ok(ControlFlow::Continue(seen)),
        }
    }

    pub(crate) fn draft<'a>(&'a self, view: &'a ValueSnapshot) -> DraftTxn<'a> {
        let expiry = if self.service.time.given().is_some() { Expiry::Never } else { Expiry::ByServer };
        DraftTxn::new(&self.service.layout, view, expiry, &self.usage_retention)
    }

    pub(crate) fn bucket_keys(&self, call: &Transaction<'_>) -> Vec<Vec<u8>> {
        let key = |step: &Step<'_>| self.service.layout.bucket(step.place.namespace, step.place.key);
        call.steps.iter().map(key).collect()
    }

    /// Returns the script for a call and its arguments; `None` if no script can apply it.
    fn script_for(&self, txn: &Transaction<'_>, call: &RedisCall<'_>) -> Option<ScriptCall> {
        let now = self.service.time.clock().now();
        if now.as_micros() > NARROW_MAX {
            return None;
        }
        let meters = if call.used.is_empty() { self.meters_script(txn, call, now) } else { None };
        meters.or_else(|| Some(self.general_script(txn, call, self.step_args(txn, call.used, now)?)))
    }

    /// Returns the script for a call that takes in turn and its arguments. Steps that no script can apply are passed
    /// without numbers.
    fn script_in_turn(&self, txn: &Transaction<'_>, call: &RedisCall<'_>) -> ScriptCall {
        let now = self.service.time.clock().now();
        let args = if now.as_micros() > NARROW_MAX { None } else { self.step_args(txn, call.used, now) };
        let args = args.unwrap_or_else(|| vec![Vec::new(); txn.steps.len()]);
        let mut script = self.general_script(txn, call, args);
        let InTurn { keys, arguments } = self.in_turn(txn, call.place);
        script.more_keys = keys;
        script.arguments.extend(arguments);
        script
    }

    /// Returns the steps as they are passed to the general script, if it can apply them.
    fn step_args(&self, txn: &Transaction<'_>, used: &[UsageDelta], now: Tick) -> Option<Vec<Vec<u8>>> {
        let of_step = |(index, step): (usize, &Step<'_>)| {
            script_args::of_step(step, StepMetering::of(txn.metered, used.get(index)), now)
        };
        txn.steps.iter().enumerate().map(of_step).collect()
    }

    fn general_script(&self, txn: &Transaction<'_>, call: &RedisCall<'_>, steps: Vec<Vec<u8>>) -> ScriptCall {
        let mut arguments = vec![self.service.now().into_bytes(), call.remembered_ms.as_bytes().to_vec()];
        for (step, numbers) in txn.steps.iter().zip(steps) {
            arguments.extend([numbers, text_of(step.place.limits).into_bytes()]);
        }
        ScriptCall { script: Arc::clone(&self.service.scripts.apply), more_keys: Vec::new(), arguments }
    }

    /// Returns the script for takes from meters only, which is the common case.
    fn meters_script(&self, txn: &Transaction<'_>, call: &RedisCall<'_>, now: Tick) -> Option<ScriptCall> {
        let meters = &self.service.scripts.meters;
        if call.remembered_ms != meters.remembered_ms() {
            return None;
        }
        let args = txn.steps.iter().map(|step| script_args::of_meters(step, txn.metered, now));
        let mut arguments = args.collect::<Option<Vec<_>>>()?;
        let shape: Vec<usize> = txn.steps.iter().map(|step| step.place.limits.len()).collect();
        arguments.extend(self.service.time.given().map(|now| now.as_micros().to_string().into_bytes()));
        Some(ScriptCall { script: meters.of(&shape)?, more_keys: Vec::new(), arguments })
    }

    /// Runs the script of a call on buckets at these keys.
    async fn run_script(
        &self,
        call: &RedisCall<'_>,
        script: &ScriptCall,
        keys: Vec<Vec<u8>>,
    ) -> Result<ScriptReply, StoreError> {
        let all = [&[self.service.layout.outcome(call.id.0)], &keys[..], &script.more_keys].concat();
        self.run(call.timer, &script.script, &all, &script.arguments, keys).await
    }

    /// Makes the changes if what they depend on is as it was read.
    pub(crate) async fn commit(
        &self,
        timer: CallTimer,
        (id, remembered_ms): (OpId, &str),
        view: &ValueSnapshot,
        changes: &Changes,
        outcome: &[u8],
    ) -> Result<ScriptReply, StoreError> {
        let Changes { checked, touched, commands, .. } = changes;
        let keys = [&[self.service.layout.outcome(id.0)], &checked[..], touched].concat();
        let count = checked.len().to_string().into_bytes();
        let mut arguments =
            vec![self.service.now().into_bytes(), remembered_ms.as_bytes().to_vec(), outcome.to_vec(), count];
        arguments.extend(checked.iter().map(|key| view.get(key).unwrap_or_default().to_vec()));
        for command in commands {
            arguments.push(command.len().to_string().into_bytes());
            arguments.extend(command.iter().cloned());
        }
        self.run(timer, &self.service.scripts.commit, &keys, &arguments, checked.clone()).await
    }

    /// Runs a script. If it changes nothing, it returns the values at `read`.
    pub(crate) async fn run<A: AsRef<[u8]>>(
        &self,
        timer: CallTimer,
        script: &LoadedScript,
        keys: &[Vec<u8>],
        arguments: &[A],
        read: Vec<Vec<u8>>,
    ) -> Result<ScriptReply, StoreError> {
        let asked = Clock::system().now();
        let value = self.service.run(timer, script, keys, arguments).await?;
        Ok(match ScriptAnswer::of(value)? {
            ScriptAnswer::Done(outcome) => ScriptReply::Done(outcome),
            ScriptAnswer::Seen(answer) => {
                self.service.time.learn(asked, answer.now);
                ScriptReply::Seen((read, answer))
            }
        })
    }
}

/// A script for a call, and its arguments.
struct ScriptCall {
    script: Arc<LoadedScript>,
    /// Keys that are passed after those of the buckets.
    more_keys: Vec<Vec<u8>>,
    arguments: Vec<Vec<u8>>,
}

fn takes(call: &Transaction<'_>) -> bool {
    call.steps.iter().any(|step| step.takes().is_some())
}

/// The reply of a script.
pub(crate) enum ScriptReply {
    /// The call was applied, now or before.
    Done(Vec<u8>),
    /// Nothing was changed: these are the values at these keys.
    Seen((Vec<Vec<u8>>, SeenValues)),
}

/// Returns the outcome that is remembered of a call.
fn done(outcome: &[u8], call: &OwnedTransaction) -> Result<TxnOutcome, RecordsError> {
    if outcome == MADE {
        return Ok(TxnOutcome::Done(Vec::new()));
    }
    if let Some((&AT_ONE_TIME, at)) = outcome.split_first()
        && let Ok(at) = at.try_into().map(f64::from_le_bytes)
    {
        let taken = StepOutcome::Taken(Taken { at: Tick::from_micros(at as u64), warnings: 0 });
        return Ok(TxnOutcome::Done(call.steps().map(|_| taken).collect()));
    }
    let unreadable = || ServerError::Unreadable("what came of a call".into()).into_error(Duration::ZERO);
    Ok(TxnOutcome::Done(decode_outcome(outcome).ok_or_else(unreadable)?))
}

/// Pauses grow with every few conflicts: most are over at once.
fn round(conflicts: usize) -> u32 {
    u32::try_from(conflicts / 4).unwrap_or(u32::MAX)
}
