//! The link between a batch and the cooldowns that it shares with other processes.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::task::JoinSet;
use tollgate::{Span, Tick};
use tollgate_store::Mutex;

use super::driver::Driver;
use crate::shared::SharedCooldown;
use crate::time::Time;

/// A task that writes the cooldowns of this batch to the store, and passes those of other processes
/// to the batch.
pub(super) struct CooldownLink {
    state: Arc<Mutex<LinkState>>,
    /// The task, which ends when the link is dropped.
    _task: JoinSet<()>,
}

#[derive(Default)]
struct LinkState {
    scopes: Vec<Arc<str>>,
    /// Cooldowns to write, by scope; the longest counts.
    outgoing: BTreeMap<Arc<str>, Duration>,
    incoming: Vec<(usize, Duration)>,
    task: Option<Waker>,
    batch: Option<Waker>,
}

impl CooldownLink {
    /// Starts the task. It must be called within a tokio runtime.
    pub(super) fn new(shared: SharedCooldown, time: Time) -> CooldownLink {
        let state = Arc::new(Mutex::new(LinkState::default()));
        let mut task = JoinSet::new();
        task.spawn(sync_cooldowns(shared, time, Arc::clone(&state)));
        CooldownLink { state, _task: task }
    }

    fn report(&self, scope: Arc<str>, left: Duration) {
        let waker = {
            let mut state = self.state.lock();
            let outgoing = state.outgoing.entry(scope).or_default();
            *outgoing = left.max(*outgoing);
            state.task.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Returns the cooldowns that the store has reported since the last call, by the index of their
    /// scope.
    fn take_incoming(
        &self,
        context: &mut Context<'_>,
        scopes: impl ExactSizeIterator<Item = Arc<str>>,
    ) -> Vec<(usize, Duration)> {
        let mut state = self.state.lock();
        if state.scopes.len() != scopes.len() {
            state.scopes = scopes.collect();
        }
        state.batch = Some(context.waker().clone());
        std::mem::take(&mut state.incoming)
    }
}

async fn sync_cooldowns(shared: SharedCooldown, time: Time, state: Arc<Mutex<LinkState>>) {
    let mut warned = false;
    loop {
        let (scopes, outgoing) = {
            let mut state = state.lock();
            (state.scopes.clone(), std::mem::take(&mut state.outgoing))
        };
        if let Err(cause) = exchange(&shared, &scopes, outgoing, &state).await {
            // The batch goes on with the cooldowns that it meets itself. The failure is logged
            // once.
            if !std::mem::replace(&mut warned, true) {
                tracing::warn!(%cause, "cooldowns are not shared, the store does not answer");
            }
        }
        let mut sleep = pin!(time.sleep_until(time.now() + Span::covering(shared.interval())));
        poll_fn(|context| {
            let mut state = state.lock();
            if !state.outgoing.is_empty() {
                return Poll::Ready(());
            }
            state.task = Some(context.waker().clone());
            drop(state);
            sleep.as_mut().poll(context)
        })
        .await;
    }
}

async fn exchange(
    shared: &SharedCooldown,
    scopes: &[Arc<str>],
    outgoing: BTreeMap<Arc<str>, Duration>,
    state: &Mutex<LinkState>,
) -> Result<(), tollgate::store::records::RecordsError> {
    for (scope, left) in outgoing {
        shared.cool_down(&scope, left).await?;
    }
    if scopes.is_empty() {
        return Ok(());
    }
    let left = shared.remaining(scopes).await?;
    let waker = {
        let mut state = state.lock();
        state.incoming =
            left.into_iter().enumerate().filter_map(|(scope, left)| Some((scope, left?))).collect();
        if state.incoming.is_empty() { None } else { state.batch.take() }
    };
    waker.into_iter().for_each(Waker::wake);
    Ok(())
}

impl<P, S: Default, O: 'static> Driver<P, S, O> {
    /// Passes a cooldown to the processes that share the scope.
    pub(super) fn report(&mut self, now: Tick, account: usize, until: Tick) {
        if let Some(link) = &self.shared {
            link.report(Arc::clone(&self.accounts.all[account].name), until.since(now).to_duration());
        }
    }

    /// Applies the cooldowns of other processes.
    pub(super) fn apply_shared_cooldowns(&mut self, context: &mut Context<'_>, now: Tick) {
        let Some(link) = &self.shared else { return };
        let scopes = self.accounts.all.iter().map(|account| Arc::clone(&account.name));
        for (account, left) in link.take_incoming(context, scopes) {
            if let Some(until) = self.accounts.all[account].scope.share(now, Span::covering(left)) {
                self.announce(now, account, until, "another process was refused");
                self.recall(account);
            }
        }
    }
}
