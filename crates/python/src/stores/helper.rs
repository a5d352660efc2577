//! Work that blocks, in a thread of its own, so that a signal or an event loop does not wait for it.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::thread;

use tollgate_store::Mutex;

/// Where the thread leaves its result.
struct Slot<T> {
    result: Option<T>,
    waker: Option<Waker>,
}

/// Runs `work` in a thread of its own. Where the system has no thread left, it runs in the one that polls.
///
/// # Cancel safety
///
/// The work goes on, and its result is dropped.
pub(super) fn run<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = T> + Send {
    let work = Arc::new(Mutex::new(Some(work)));
    let slot = Arc::new(Mutex::new(Slot { result: None, waker: None }));
    let (work_there, slot_there) = (work.clone(), slot.clone());
    let job = move || {
        let work = work_there.lock().take();
        if let Some(work) = work {
            let result = work();
            let waker = {
                let mut slot = slot_there.lock();
                slot.result = Some(result);
                slot.waker.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    };
    let mut spawned = None;
    let mut job = Some(job);
    poll_fn(move |context| {
        let is_spawned = *spawned.get_or_insert_with(|| {
            let builder = thread::Builder::new().name("tollgate-open".into());
            job.take().is_some_and(|job| builder.spawn(job).is_ok())
        });
        if !is_spawned {
            let work = work.lock().take();
            if let Some(work) = work {
                return Poll::Ready(work());
            }
        }
        let mut slot = slot.lock();
        match slot.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                slot.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    })
}
