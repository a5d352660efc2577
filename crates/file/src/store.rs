//! The file store, and `Store` for it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tollgate_core::{Denial, Status, Tick};
use tollgate_store::records::{RecordsError, Write};
use tollgate_store::txn::MeteredBucket;
use tollgate_store::{
    BucketRef, Clock, LivenessCache, Mutex, OutcomeCallback, OwnedTransaction, Reach, Reply, Step, Store,
    StoreError, StoredBucket, Transaction, TxnOutcome, WaitQueues,
};

use crate::builder::FileStoreBuilder;
use crate::commit_queue::CommitQueue;
use crate::error::{Abort, FileOpenError, without_tests};
use crate::job::{ApplyJob, Job, Work};
use crate::reply_slot::PendingReply;
use crate::threads::{StoreHandle, ThreadContext};
use crate::txn::{ReadView, WriteTxn};

/// A store in a SQLite file that all processes which open it share.
///
/// Cloning shares the store. When the last clone is dropped, all detached calls are written first.
///
/// After `fork` the child goes on with the store of its parent: it opens the file for itself with its first call. A process that
/// was forked off while a thread of its parent was using the store cannot do so, and gets an error.
///
/// # Cancel safety
///
/// A call whose answer is dropped before it was received is not made, or what it took is given back. Records that were
/// written with it stay.
///
/// # Examples
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("tollgate-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// use tollgate_core::{demand, Limit, Limits};
/// use tollgate_file::FileStore;
/// use tollgate_store::{TxnOutcome, Transaction, Key, Op, BucketRef, Step, Store};
///
/// let store = FileStore::open(folder.join("limits.tollgate"))?;
/// let limits = Limits::new([Limit::per_minute("rpm", 100)])?;
/// let (key, costs) = (Key::new(&["user-1"]), limits.costs(&demand! { rpm: 1 })?);
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
/// let applied = store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait()?;
/// assert!(matches!(applied, TxnOutcome::Done(_)));
/// # drop(store);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct FileStore(Arc<StoreHandle>);

impl FileStore {
    /// Opens the file, or creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// [`FileOpenError`] with the path and what is wrong with it. A file that is not ours is left as it is.
    pub fn open(path: impl AsRef<Path>) -> Result<FileStore, FileOpenError> {
        FileStore::builder(path).build()
    }

    /// Returns settings to start from.
    pub fn builder(path: impl AsRef<Path>) -> FileStoreBuilder {
        FileStoreBuilder::new(path.as_ref())
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.0.settings.path
    }

    /// Checks every page of the file for damage.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] with what is damaged, or an error of the store.
    pub fn check(&self) -> Reply<'_, Result<(), StoreError>> {
        let reply = self.read(|view| {
            let mut check = view.connection.prepare("PRAGMA integrity_check")?;
            let found = check.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
            match found.as_slice() {
                [only] if only == "ok" => Ok(()),
                broken => {
                    Err(StoreError::Refused(format!("the file is damaged: {}", broken.join("; "))).into())
                }
            }
        });
        Reply::later(async move { reply.await.map_err(without_tests) })
    }

    pub(crate) fn from_settings(settings: &FileStoreBuilder) -> Result<FileStore, FileOpenError> {
        Ok(FileStore(Arc::new(StoreHandle::open(settings)?)))
    }

    pub(crate) fn wait_queues(&self) -> &WaitQueues {
        self.0.wait_queues()
    }

    /// Calls `look` with the path, to read the file by a connection of its own.
    pub(crate) fn examine<T>(&self, look: impl FnOnce(&Path) -> T) -> Result<T, StoreError> {
        let _examined = self.0.shared()?.examined.lock();
        Ok(look(self.path()))
    }

    /// Reads with `read`, which sees the detached calls that this process has made before.
    pub(crate) fn read<'a, T: Send + 'static>(
        &'a self,
        mut read: impl FnMut(&mut ReadView<'_>) -> Result<T, Abort> + Send + 'static,
    ) -> Reply<'a, Result<T, RecordsError>> {
        match self.0.shared() {
            Err(why) => Reply::ready(Err(why.into())),
            Ok(ThreadContext { writer, reader, .. }) => {
                let queue = if writer.has_detached() { writer } else { reader };
                run(queue, move |txn| read(&mut txn.view()?))
            }
        }
    }

    /// Writes with `write`, which may be called again if its transaction fails.
    pub(crate) fn write<'a, T: Send + 'static>(
        &'a self,
        write: impl FnMut(&mut WriteTxn<'_>) -> Result<T, Abort> + Send + 'static,
    ) -> Reply<'a, Result<T, RecordsError>> {
        match self.0.shared() {
            Err(why) => Reply::ready(Err(why.into())),
            Ok(shared) => run(&shared.writer, write),
        }
    }

    /// Applies a transaction and makes the writes, or neither.
    pub(crate) fn apply_owned(
        &self,
        call: OwnedTransaction,
        writes: Vec<Write>,
    ) -> Reply<'_, Result<TxnOutcome, RecordsError>> {
        match self.0.shared() {
            Err(why) => Reply::ready(Err(why.into())),
            Ok(shared) => {
                let reply = PendingReply::new(&shared.writer, Work::Apply(ApplyJob::new(call, writes)));
                Reply::later(async move {
                    Ok(reply.await?.expect("a job that applies a transaction has its outcome").outcome)
                })
            }
        }
    }
}

/// Queues a function that runs in a transaction, and returns its result once that is committed.
fn run<'a, T: Send + 'static>(
    queue: &'a CommitQueue,
    mut run: impl FnMut(&mut WriteTxn<'_>) -> Result<T, Abort> + Send + 'static,
) -> Reply<'a, Result<T, RecordsError>> {
    let result = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&result);
    let work = Work::Run(Box::new(move |txn| {
        *slot.lock() = Some(run(txn)?);
        Ok(())
    }));
    let reply = PendingReply::new(queue, work);
    Reply::later(async move {
        reply.await?;
        let result = result.lock().take();
        Ok(result.expect("a job that succeeded has left its result"))
    })
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileStore").field(&self.path()).finish()
    }
}

impl Store for FileStore {
    fn reach(&self) -> Reach {
        Reach::Host
    }

    fn clock(&self) -> &Clock {
        &self.0.time.clock
    }

    fn apply<'a>(&'a self, call: &Transaction<'a>) -> Reply<'a, Result<TxnOutcome, StoreError>> {
        let reply = self.apply_owned(OwnedTransaction::new(call), Vec::new());
        Reply::later(async move { reply.await.map_err(without_tests) })
    }

    fn evaluate<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        let call = OwnedTransaction::new(&Transaction { id: None, steps, metered: false });
        let reply = self.read(move |view| {
            let mut denials = Vec::new();
            for step in call.steps() {
                let (stored, now) = seen_bucket(view, &step.place)?;
                denials.extend(stored.evaluate(&step, now));
            }
            Ok(denials)
        });
        Reply::later(async move { reply.await.map_err(without_tests) })
    }

    fn peek<'a>(&'a self, place: &BucketRef<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        let (namespace, key, limits) = (place.namespace.to_owned(), place.key.clone(), place.limits.clone());
        let reply = self.read(move |view| {
            let place = BucketRef { namespace: &namespace, key: &key, limits: &limits };
            let (stored, now) = seen_bucket(view, &place)?;
            Ok(stored.peek(&limits, now))
        });
        Reply::later(async move { reply.await.map_err(without_tests) })
    }

    fn apply_detached(&self, call: &Transaction<'_>) {
        self.apply_detached_with(call, Box::new(|_| ()));
    }

    fn apply_detached_with(&self, call: &Transaction<'_>, callback: OutcomeCallback) {
        // If the file cannot be opened in this process or the queue is full, the call is lost; what it would have given
        // back expires.
        let Ok(ThreadContext { writer, .. }) = self.0.shared() else { return };
        let work = Work::Apply(ApplyJob::new(OwnedTransaction::new(call), Vec::new()));
        writer.push(Job::detached(work, writer.now(), writer.count_detached(), Some(callback)));
        writer.wake_thread();
    }

    fn new_holder_id(&self) -> u128 {
        tollgate_store::new_holder_id()
    }

    fn new_living_holder(&self) -> u128 {
        tollgate_store::new_living_holder()
    }
}

/// Returns the bucket without the holders that a take would find to be dead, and the time.
fn seen_bucket(view: &mut ReadView<'_>, place: &BucketRef<'_>) -> Result<(StoredBucket, Tick), Abort> {
    let found = view.row(place)?;
    let now = view.clock.now();
    let Some(MeteredBucket { stored, .. }) = found else {
        return Ok((StoredBucket::fresh(place.limits), now));
    };
    let now = view.clock.now_for(view.connection, stored.bucket.stamp(), now)?;
    Ok((stored.as_seen(now, &mut LivenessCache::default()), now))
}
