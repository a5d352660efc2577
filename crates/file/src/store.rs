//! The store on a file, and what it does as one of buckets.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tollgate_core::{Denial, Status, Tick};
use tollgate_store::records::RecordsError;
use tollgate_store::{
    Applied, Call, Census, Clock, Kept, OwnedCall, Place, Reach, Reply, Room, Step, Store, StoreError,
};

use crate::batch::View;
use crate::builder::FileStoreBuilder;
use crate::desk::{Desk, Engine};
use crate::errand::{Pending, Work};
use crate::error::{OpenError, Stop, without_tests};
use crate::open::{self, Opened};
use crate::reader::Reader;
use crate::work::{Apply, HandedOver, Reading};
use crate::writer::Writer;

/// Buckets and records in a file that all processes share which open it.
///
/// Cloning shares the store. When the last clone is dropped, everything that was handed over is written first.
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
/// use tollgate_store::{Applied, Call, Key, Op, Place, Step, Store};
///
/// let store = FileStore::open(folder.join("limits.tollgate"))?;
/// let limits = Limits::new([Limit::per_minute("rpm", 100)])?;
/// let (key, costs) = (Key::new(&["user-1"]), limits.costs(&demand! { rpm: 1 })?);
/// let place = Place { namespace: "app", key: &key, limits: &limits };
/// let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
/// let applied = store.apply(&Call { id: None, steps: &steps, metered: false }).wait()?;
/// assert!(matches!(applied, Applied::Done(_)));
/// # drop(store);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct FileStore(Arc<Keeper>);

/// Ends the threads with the last store.
struct Keeper {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

pub(crate) struct Shared {
    path: std::path::PathBuf,
    clock: Clock,
    room: Arc<Room>,
    writer: Desk<Writer>,
    reader: Desk<Reader>,
}

impl FileStore {
    /// Opens the file, or makes it if there is none.
    ///
    /// # Errors
    ///
    /// [`OpenError`] with the path and what is wrong with it. A file that is not ours is left as it is.
    pub fn open(path: impl AsRef<Path>) -> Result<FileStore, OpenError> {
        FileStore::builder(path).build()
    }

    /// Settings to start from.
    pub fn builder(path: impl AsRef<Path>) -> FileStoreBuilder {
        FileStoreBuilder::new(path.as_ref())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.shared.path
    }

    /// Looks at every page of the file, and says whether it is whole.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] with what is broken, or the store's.
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

    pub(crate) fn from_settings(settings: &FileStoreBuilder) -> Result<FileStore, OpenError> {
        let Opened { path, writer, reader } = open::open(settings)?;
        let failed = |why: String| OpenError::Failed(path.clone(), why);
        let FileStoreBuilder { clock, timeout, .. } = settings.clone();
        let room = Arc::new(Room::default());
        let writer = Writer::new(writer, clock.clone(), timeout).map_err(|why| failed(why.to_string()))?;
        let reader = Reader::new(reader, clock.clone(), timeout);
        let shared = Arc::new(Shared {
            path: path.clone(),
            clock,
            writer: Desk::new(writer, Arc::clone(&room)),
            reader: Desk::new(reader, Arc::clone(&room)),
            room,
        });
        let mut keeper = Keeper { shared, threads: Vec::new() };
        keeper.hire("tollgate-write", |shared| &shared.writer).map_err(|why| failed(why.to_string()))?;
        keeper.hire("tollgate-read", |shared| &shared.reader).map_err(|why| failed(why.to_string()))?;
        Ok(FileStore(Arc::new(keeper)))
    }

    pub(crate) fn room(&self) -> &Room {
        &self.0.shared.room
    }

    /// Reads with `read`: what this process has handed over before is seen.
    pub(crate) fn read<'a, T: Send + 'static>(
        &'a self,
        read: impl FnMut(&mut View<'_>) -> Result<T, Stop> + Send + 'static,
    ) -> Reply<'a, Result<T, RecordsError>> {
        let Shared { writer, reader, .. } = &*self.0.shared;
        if writer.has_unheard() {
            return Reply::later(Pending::new(writer, Reading(read)));
        }
        Reply::later(Pending::new(reader, Reading(read)))
    }

    /// Does work that writes.
    pub(crate) fn work<W: Work<Writer>>(&self, work: W) -> Reply<'_, W::Answer> {
        Reply::later(Pending::new(&self.0.shared.writer, work))
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileStore").field(&self.path()).finish()
    }
}

impl Keeper {
    fn hire<E: Engine>(
        &mut self,
        name: &str,
        desk: impl FnOnce(&Shared) -> &Desk<E> + Send + 'static,
    ) -> std::io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new().name(name.into()).spawn(move || desk(&shared).keep())?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.writer.close();
        self.shared.reader.close();
        for thread in self.threads.drain(..) {
            // The last store may be dropped by a waker, on one of these. It ends by itself then.
            if thread.thread().id() != thread::current().id() {
                // A panic was reported when it happened.
                let _ = thread.join();
            }
        }
    }
}

impl Store for FileStore {
    fn reach(&self) -> Reach {
        Reach::Host
    }

    fn clock(&self) -> &Clock {
        &self.0.shared.clock
    }

    fn apply<'a>(&'a self, call: &Call<'a>) -> Reply<'a, Result<Applied, StoreError>> {
        let reply = self.work(Apply::new(OwnedCall::new(call), Vec::new()));
        Reply::later(async move { reply.await.map_err(without_tests) })
    }

    fn ask<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        let call = OwnedCall::new(&Call { id: None, steps, metered: false });
        let reply = self.read(move |view| {
            let mut denials = Vec::new();
            for step in call.steps() {
                let now = view.clock.now();
                denials.extend(kept(view, &step.place, now)?.ask(&step, now));
            }
            Ok(denials)
        });
        Reply::later(async move { reply.await.map_err(without_tests) })
    }

    fn peek<'a>(&'a self, place: &Place<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        let (namespace, key, limits) = (place.namespace.to_owned(), place.key.clone(), place.limits.clone());
        let reply = self.read(move |view| {
            let now = view.clock.now();
            let place = Place { namespace: &namespace, key: &key, limits: &limits };
            Ok(kept(view, &place, now)?.peek(&limits, now))
        });
        Reply::later(async move { reply.await.map_err(without_tests) })
    }

    fn hand_over(&self, call: &Call<'_>) {
        let desk = &self.0.shared.writer;
        let apply = Apply::new(OwnedCall::new(call), Vec::new());
        let handed_over = HandedOver::new(apply, desk.now(), desk.unheard());
        // Where the line is as long as it may be, it is lost; what it would have given back expires.
        let _ = desk.post(Box::new(handed_over));
        desk.ring();
    }

    fn new_holder(&self) -> u128 {
        tollgate_store::new_holder()
    }
}

/// The bucket at a place, without the holders that a take would find to be gone.
fn kept(view: &mut View<'_>, place: &Place<'_>, now: Tick) -> Result<Kept, Stop> {
    let Some(row) = view.row(place)? else { return Ok(Kept::fresh(place.limits)) };
    let mut kept = row.kept;
    kept.reap(&mut Census::default(), now);
    Ok(kept)
}
