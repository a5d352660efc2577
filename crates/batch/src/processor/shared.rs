//! The link between a batch and the cooldowns of others.

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

/// A task that tells the store what happens here, and the batch what happens elsewhere.
pub(super) struct CooldownLink {
    mail: Arc<Mutex<Mail>>,
    /// Ends with the link.
    _task: JoinSet<()>,
}

#[derive(Default)]
struct Mail {
    scopes: Vec<Arc<str>>,
    /// How long to cool down, by scope; the longest counts.
    out: BTreeMap<Arc<str>, Duration>,
    heard: Vec<(usize, Duration)>,
    task: Option<Waker>,
    batch: Option<Waker>,
}

impl CooldownLink {
    /// Begins to look. To be called from within a runtime.
    pub(super) fn new(shared: SharedCooldown, time: Time) -> CooldownLink {
        let mail = Arc::new(Mutex::new(Mail::default()));
        let mut task = JoinSet::new();
        task.spawn(keep_in_touch(shared, time, Arc::clone(&mail)));
        CooldownLink { mail, _task: task }
    }

    fn report(&self, scope: Arc<str>, left: Duration) {
        let waker = {
            let mut mail = self.mail.lock();
            let out = mail.out.entry(scope).or_default();
            *out = left.max(*out);
            mail.task.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Returns what the store has reported since, of all scopes of the batch.
    fn hear(
        &self,
        context: &mut Context<'_>,
        scopes: impl ExactSizeIterator<Item = Arc<str>>,
    ) -> Vec<(usize, Duration)> {
        let mut mail = self.mail.lock();
        if mail.scopes.len() != scopes.len() {
            mail.scopes = scopes.collect();
        }
        mail.batch = Some(context.waker().clone());
        std::mem::take(&mut mail.heard)
    }
}

async fn keep_in_touch(shared: SharedCooldown, time: Time, mail: Arc<Mutex<Mail>>) {
    let mut warned = false;
    loop {
        let (scopes, out) = {
            let mut mail = mail.lock();
            (mail.scopes.clone(), std::mem::take(&mut mail.out))
        };
        if let Err(cause) = exchange(&shared, &scopes, out, &mail).await {
            // The batch goes on by what it meets itself. The operator of the store is warned once.
            if !std::mem::replace(&mut warned, true) {
                tracing::warn!(%cause, "cooldowns are not shared, the store does not answer");
            }
        }
        let mut sleep = pin!(time.sleep_until(time.now() + Span::covering(shared.every())));
        poll_fn(|context| {
            let mut mail = mail.lock();
            if !mail.out.is_empty() {
                return Poll::Ready(());
            }
            mail.task = Some(context.waker().clone());
            drop(mail);
            sleep.as_mut().poll(context)
        })
        .await;
    }
}

async fn exchange(
    shared: &SharedCooldown,
    scopes: &[Arc<str>],
    out: BTreeMap<Arc<str>, Duration>,
    mail: &Mutex<Mail>,
) -> Result<(), tollgate::store::records::RecordsError> {
    for (scope, left) in out {
        shared.cool_down(&scope, left).await?;
    }
    if scopes.is_empty() {
        return Ok(());
    }
    let left = shared.look(scopes).await?;
    let waker = {
        let mut mail = mail.lock();
        mail.heard = left.into_iter().enumerate().filter_map(|(scope, left)| Some((scope, left?))).collect();
        if mail.heard.is_empty() { None } else { mail.batch.take() }
    };
    waker.into_iter().for_each(Waker::wake);
    Ok(())
}

impl<P, S: Default, O: 'static> Driver<P, S, O> {
    /// Tells others of a cooldown.
    pub(super) fn report(&mut self, now: Tick, place: usize, until: Tick) {
        if let Some(link) = &self.shared {
            link.report(Arc::clone(&self.places.all[place].name), until.since(now).to_duration());
        }
    }

    /// Heeds the cooldowns of others.
    pub(super) fn hear_others(&mut self, context: &mut Context<'_>, now: Tick) {
        let Some(link) = &self.shared else { return };
        let scopes = self.places.all.iter().map(|place| Arc::clone(&place.name));
        for (place, left) in link.hear(context, scopes) {
            if let Some(until) = self.places.all[place].scope.share(now, Span::covering(left)) {
                self.announce(now, place, until, "another process was refused");
                self.recall(place);
            }
        }
    }
}
