//! The kinds of work that a file does.

use std::sync::Arc;
use std::task::{Wake, Waker};

use tollgate_core::Tick;
use tollgate_store::records::{RecordsError, Write};
use tollgate_store::{Applied, Key, Mutex, OpId, OwnedCall, StoreError, Told};

use crate::applied;
use crate::batch::{Batch, View};
use crate::desk::{After, Errand, Unheard};
use crate::errand::Work;
use crate::error::{Fault, Stop};
use crate::reader::Reader;
use crate::scope::{self, OwnedScope};
use crate::writer::Writer;

/// How often a call that nobody waits for is tried before it is given up. With the rest in between that takes minutes,
/// and then it is no passing trouble.
const TRIES_MAX: u32 = 1_000;

/// Applying a call.
pub(crate) struct Apply {
    call: OwnedCall,
    writes: Vec<Write>,
    /// A call that this one undoes, so that it may be made again.
    undoes: Option<OpId>,
    is_repeat: bool,
}

impl Apply {
    pub(crate) fn new(call: OwnedCall, writes: Vec<Write>) -> Apply {
        Apply { call, writes, undoes: None, is_repeat: false }
    }

    fn apply(&mut self, batch: &mut Batch<'_>) -> Result<Applied, Stop> {
        if let Some(id) = self.undoes {
            applied::forget(batch.connection, id.0.to_be_bytes())?;
        }
        let outcome = self.call.with(|call| batch.apply(call, &self.writes))?;
        self.is_repeat = outcome.is_repeat;
        Ok(outcome.applied)
    }
}

impl Work<Writer> for Apply {
    type Answer = Result<Applied, RecordsError>;

    fn run(&mut self, batch: &mut Batch<'_>) -> Result<Option<Self::Answer>, Fault> {
        Stop::answer(self.apply(batch)).map(Some)
    }

    fn is_owed(&self) -> bool {
        self.call.with(|call| call.steps.iter().all(|step| step.takes().is_none()))
    }

    fn failed(why: StoreError) -> Self::Answer {
        Err(why.into())
    }

    fn undo(self, answer: Self::Answer, since: Tick, unheard: Unheard) -> Option<Box<dyn Errand<Writer>>> {
        let Ok(Applied::Done(done)) = answer else { return None };
        // What was applied before is somebody's who was told so.
        if self.is_repeat {
            return None;
        }
        let undoes = self.call.id;
        let call = self.call.undo(&done)?;
        let undo = Apply { call, writes: Vec::new(), undoes, is_repeat: false };
        Some(Box::new(HandedOver::new(undo, since, unheard)))
    }
}

/// A call that nobody waits for. If it fails for want of room or because others write, it is tried again.
pub(crate) struct HandedOver {
    apply: Apply,
    since: Tick,
    tries: u32,
    /// Until it has failed: who asks after that need not wait to see it.
    unheard: Option<Unheard>,
    /// Who hears what came of it, and that.
    told: Option<Told>,
    applied: Option<Applied>,
}

impl HandedOver {
    pub(crate) fn new(apply: Apply, since: Tick, unheard: Unheard) -> HandedOver {
        HandedOver { apply, since, tries: 0, unheard: Some(unheard), told: None, applied: None }
    }

    /// As it is, and `told` hears what came of it.
    pub(crate) fn telling(self, told: Told) -> HandedOver {
        HandedOver { told: Some(told), ..self }
    }
}

/// Somebody who is told when the engine is free: as much may happen then as when a waker is called.
struct Telling(Mutex<Option<(Told, Applied)>>);

impl Wake for Telling {
    fn wake(self: Arc<Self>) {
        let telling = self.0.lock().take();
        if let Some((told, applied)) = telling {
            told(&applied);
        }
    }
}

impl Errand<Writer> for HandedOver {
    fn since(&self) -> Tick {
        self.since
    }

    fn try_again(&mut self, now: Tick) {
        self.since = now;
    }

    fn begin(&mut self) -> bool {
        true
    }

    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), Fault> {
        // Nobody is left to hear of an error.
        self.applied = Work::run(&mut self.apply, batch)?.and_then(Result::ok);
        Ok(())
    }

    fn finish(mut self: Box<Self>, outcome: Result<(), &StoreError>, after: &mut After<Writer>) {
        self.tries += 1;
        self.unheard = None;
        match outcome {
            Ok(()) => {
                let telling = self.told.take().zip(self.applied.take());
                let telling = telling.map(|telling| Arc::new(Telling(Mutex::new(Some(telling)))));
                after.wakers.extend(telling.map(Waker::from));
            }
            Err(StoreError::Unavailable(..)) if self.tries < TRIES_MAX => after.failed.push(self),
            Err(_) => {}
        }
    }
}

/// Work that reads: of the engine that reads, or of the one that writes if that has something to write first.
pub(crate) struct Reading<F>(pub(crate) F);

impl<T, F> Work<Reader> for Reading<F>
where
    T: Send + 'static,
    F: FnMut(&mut View<'_>) -> Result<T, Stop> + Send + 'static,
{
    type Answer = Result<T, RecordsError>;

    fn run(&mut self, view: &mut View<'_>) -> Result<Option<Self::Answer>, Fault> {
        Stop::answer((self.0)(view)).map(Some)
    }

    fn failed(why: StoreError) -> Self::Answer {
        Err(why.into())
    }
}

impl<T, F> Work<Writer> for Reading<F>
where
    T: Send + 'static,
    F: FnMut(&mut View<'_>) -> Result<T, Stop> + Send + 'static,
{
    type Answer = Result<T, RecordsError>;

    fn run(&mut self, batch: &mut Batch<'_>) -> Result<Option<Self::Answer>, Fault> {
        Stop::answer((self.0)(&mut batch.view()?)).map(Some)
    }

    fn failed(why: StoreError) -> Self::Answer {
        Err(why.into())
    }
}

/// Other work that writes.
pub(crate) struct Writing<F>(pub(crate) F);

impl<T, F> Work<Writer> for Writing<F>
where
    T: Send + 'static,
    F: FnMut(&mut Batch<'_>) -> Result<T, Stop> + Send + 'static,
{
    type Answer = Result<T, RecordsError>;

    fn run(&mut self, batch: &mut Batch<'_>) -> Result<Option<Self::Answer>, Fault> {
        Stop::answer((self.0)(batch)).map(Some)
    }

    fn failed(why: StoreError) -> Self::Answer {
        Err(why.into())
    }
}

/// Writing down the usage of a scope, some buckets at a time.
pub(crate) struct WriteUsage {
    pub(crate) namespace: String,
    pub(crate) scope: OwnedScope,
    /// Up to where it is done, and where it will be once the transaction holds.
    pub(crate) done: Option<Key>,
    pub(crate) next: Option<Key>,
}

impl Work<Writer> for WriteUsage {
    type Answer = Result<(), RecordsError>;

    fn run(&mut self, batch: &mut Batch<'_>) -> Result<Option<Self::Answer>, Fault> {
        let written = scope::write_usage(batch, &self.namespace, &self.scope, self.done.as_ref());
        self.next = match Stop::answer(written)? {
            Ok(next) => next,
            Err(error) => return Ok(Some(Err(error))),
        };
        Ok(self.next.is_none().then_some(Ok(())))
    }

    fn go_on(&mut self) {
        self.done = self.next.take();
    }

    fn failed(why: StoreError) -> Self::Answer {
        Err(why.into())
    }
}
