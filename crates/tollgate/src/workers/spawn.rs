//! Where workers run.

use std::future::Future;
use std::io;
use std::pin::Pin;

use tollgate_store::Reply;

/// What a worker does, from its beginning to its end.
pub(super) type WorkerBody = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where workers run.
pub(super) enum Spawner {
    /// Each in a thread of its own.
    Threads,
    /// On a runtime.
    #[cfg(feature = "tokio")]
    Tasks(tokio::runtime::Handle),
}

impl Spawner {
    pub(super) fn spawn(&self, index: usize, life: WorkerBody) -> io::Result<()> {
        match self {
            Spawner::Threads => {
                let builder = std::thread::Builder::new().name(format!("tollgate-worker-{index}"));
                builder.spawn(move || Reply::later(life).wait()).map(drop)
            }
            #[cfg(feature = "tokio")]
            Spawner::Tasks(runtime) => {
                runtime.spawn(life);
                Ok(())
            }
        }
    }
}
