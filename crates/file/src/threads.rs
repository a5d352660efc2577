//! The commit queues of a process and their background threads.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use tollgate_store::{Mutex, PerProcess, StoreError, WaitQueues};

use crate::builder::FileStoreBuilder;
use crate::clock::{ClockAccess, FileClock, FileTime};
use crate::commit_queue::CommitQueue;
use crate::error::{FileOpenError, MOVED, reopening};
use crate::identity::Identity;
use crate::open::{self, Opened};
use crate::reader::ReadExecutor;
use crate::stores::{self, process};
use crate::wait_queue;
use crate::writer::WriteExecutor;

/// An open store, with the commit queues of each process. A forked process opens the file for itself with its first
/// call.
pub(crate) struct StoreHandle {
    /// With the absolute path: a process may change its working directory.
    pub(crate) settings: FileStoreBuilder,
    pub(crate) time: FileTime,
    identity: Identity,
    wait_queues: Arc<WaitQueues>,
    parts: PerProcess<ProcessStore>,
}

/// The threads of one process, once it has opened the file.
#[derive(Default)]
struct ProcessStore {
    opening: Mutex<()>,
    threads: OnceLock<Threads>,
}

/// The background threads of a store, which end when the last handle is dropped.
struct Threads {
    process: u64,
    shared: Arc<ThreadContext>,
    threads: Vec<JoinHandle<()>>,
}

/// The commit queues, which the threads share with callers.
pub(crate) struct ThreadContext {
    pub(crate) identity: Identity,
    pub(crate) writer: CommitQueue,
    pub(crate) reader: CommitQueue,
    /// Locked while the file is read by a connection of neither queue.
    pub(crate) examined: Mutex<()>,
}

impl StoreHandle {
    /// Opens the file, or creates it.
    pub(crate) fn open(settings: &FileStoreBuilder) -> Result<StoreHandle, FileOpenError> {
        let parts: PerProcess<ProcessStore> = PerProcess::new(process());
        let time = FileTime::of(settings);
        let (threads, wait_queues, path) = Threads::open(settings, &time, None)?;
        let identity = threads.shared.identity.clone();
        parts.get(process()).threads.get_or_init(|| threads);
        let settings = FileStoreBuilder { path, ..settings.clone() };
        Ok(StoreHandle { settings, time, identity, wait_queues, parts })
    }

    pub(crate) fn wait_queues(&self) -> &WaitQueues {
        &self.wait_queues
    }

    /// Returns the commit queues of this process.
    pub(crate) fn shared(&self) -> Result<&ThreadContext, StoreError> {
        let part = self.parts.get(process());
        match part.threads.get() {
            Some(threads) => Ok(&threads.shared),
            None => self.reopen(part),
        }
    }

    #[cold]
    fn reopen<'a>(&self, part: &'a ProcessStore) -> Result<&'a ThreadContext, StoreError> {
        let _one_at_a_time = part.opening.lock();
        if let Some(threads) = part.threads.get() {
            return Ok(&threads.shared);
        }
        // Opening would create a new file.
        self.identity.check().map_err(|_| StoreError::Refused(MOVED.into()))?;
        let opened = Threads::open(&self.settings, &self.time, Some(&self.wait_queues));
        let (threads, ..) = opened.map_err(|why| reopening(&why))?;
        Ok(&part.threads.get_or_init(|| threads).shared)
    }
}

impl Threads {
    /// Opens the file, with the wait queues that the store had before a fork, if it was open then.
    fn open(
        settings: &FileStoreBuilder,
        time: &FileTime,
        wait_queues: Option<&Arc<WaitQueues>>,
    ) -> Result<(Threads, Arc<WaitQueues>, PathBuf), FileOpenError> {
        let mut stores = stores::lock();
        let Opened { path, identity, writer, reader } = open::open(settings, &stores)?;
        let failed = |why: String| FileOpenError::Failed(path.clone(), why);
        let (timeout, usage_retention) = (settings.timeout, settings.usage_retention);
        let clock = FileClock::open(time, ClockAccess::Write, &writer);
        let writer = WriteExecutor::new(writer, identity.clone(), clock, timeout, usage_retention)
            .map_err(|why| failed(why.to_string()))?;
        let clock = FileClock::open(time, ClockAccess::Read, &reader);
        let reader = ReadExecutor::new(reader, identity.clone(), clock, timeout, usage_retention);
        let wait_queues = wait_queues.cloned().unwrap_or_else(|| wait_queue::open(&path));
        let shared = Arc::new(ThreadContext {
            identity,
            writer: CommitQueue::new(Box::new(writer), Arc::clone(&wait_queues)),
            reader: CommitQueue::new(Box::new(reader), Arc::clone(&wait_queues)),
            examined: Mutex::new(()),
        });
        stores.add(Arc::clone(&shared));
        // Threads that end lock the list of stores.
        drop(stores);
        let mut threads = Threads { process: process(), shared, threads: Vec::new() };
        threads.spawn("tollgate-write", |shared| &shared.writer).map_err(|why| failed(why.to_string()))?;
        threads.spawn("tollgate-read", |shared| &shared.reader).map_err(|why| failed(why.to_string()))?;
        Ok((threads, wait_queues, path))
    }

    fn spawn(&mut self, name: &str, queue: fn(&ThreadContext) -> &CommitQueue) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let run = move || {
            let queue = queue(&shared);
            queue.run_thread();
            // No more jobs can be queued.
            let _closing = stores::lock();
            queue.stop();
        };
        self.threads.push(thread::Builder::new().name(name.into()).spawn(run)?);
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if self.process != process() {
            // The threads are those of another process, which still uses what they share.
            return std::mem::forget(std::mem::take(&mut self.threads));
        }
        self.shared.writer.close();
        self.shared.reader.close();
        let this = thread::current().id();
        let (here, there): (Vec<_>, Vec<_>) = self.threads.drain(..).partition(|it| it.thread().id() == this);
        // A panic was already reported.
        there.into_iter().for_each(|thread| drop(thread.join()));
        // The last handle may be dropped by a waker on one of these threads. That thread ends by itself then.
        if here.is_empty() {
            stores::lock().close(&self.shared);
        }
    }
}

impl ThreadContext {
    /// Returns whether a connection to the file is open.
    pub(crate) fn is_open(&self) -> bool {
        self.writer.has_executor() || self.reader.has_executor()
    }
}
