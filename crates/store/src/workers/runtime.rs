//! Threads for the calls to a store across a network.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Handle, Runtime};

/// How many threads there are. They wait for the network; the work of a call is done by the task that polls it.
const WORKERS: usize = 2;

/// A small runtime of its own, so that replies can be awaited from any executor and waited for in any thread.
///
/// ```
/// use tollgate_store::workers::{Within, Workers};
///
/// # fn run() -> std::io::Result<()> {
/// let workers = Workers::start("example")?;
/// let reply = Within::new(workers.handle().clone(), async { 7 });
/// assert_eq!(workers.handle().block_on(reply), 7);
/// # Ok(())
/// # }
/// # run().unwrap();
/// ```
#[derive(Debug)]
pub struct Workers(Option<Runtime>);

impl Workers {
    /// Starts the threads, under a name.
    ///
    /// # Errors
    ///
    /// The host has no threads left.
    pub fn start(name: &str) -> io::Result<Workers> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(WORKERS).thread_name(name).enable_all();
        builder.build().map(|runtime| Workers(Some(runtime)))
    }

    /// Starts the threads of a forked process, which has none of the threads of its parent.
    pub fn start_again(name: &str) -> Workers {
        Workers::start(name).expect("a process that cannot start two threads cannot call a server")
    }

    /// Returns the handle of the runtime.
    pub fn handle(&self) -> &Handle {
        self.0.as_ref().expect("the runtime exists until it is dropped").handle()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Waits for no task, so it may happen in a task, also in one of its own.
            runtime.shutdown_background();
        }
    }
}

/// A future that runs in the thread that polls it, with timers and connections of the runtime.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tollgate_store::Reply;
/// use tollgate_store::workers::{Within, Workers};
///
/// let workers = Workers::start("example")?;
/// // The timer is that of the runtime, and the future runs in this thread.
/// let call = Within::new(workers.handle().clone(), async {
///     tokio::time::sleep(Duration::from_millis(1)).await;
///     std::thread::current().id()
/// });
/// assert_eq!(Reply::later(call).wait(), std::thread::current().id());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Within<F> {
    handle: Handle,
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> Within<F> {
    /// Runs `future` within the runtime of `handle`.
    pub fn new(handle: Handle, future: F) -> Within<F> {
        Within { handle, future: Some(Box::pin(future)) }
    }
}

impl<F: Future> Future for Within<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Within { handle, future } = &mut *self;
        let _entered = handle.enter();
        let future = future.as_mut().expect("it is there until it is dropped");
        future.as_mut().poll(context)
    }
}

impl<F> Drop for Within<F> {
    fn drop(&mut self) {
        // A request that is cancelled may leave something to the runtime, such as its connection.
        let _entered = self.handle.enter();
        self.future = None;
    }
}
