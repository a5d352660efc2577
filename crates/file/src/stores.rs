//! The open stores of this process, and the connections that it inherits by a fork.
//!
//! SQLite keeps a list of the files that a process has open, with the locks that the process has on them. A process
//! that is forked off has that list and none of the locks, because the system does not pass them on. A connection that
//! it opened to such a file would act as if it had them: the last of the other processes to close the file would delete
//! the log that it writes to. So before anything is opened, the connections that came with the fork are closed, which
//! takes the file off the list. That changes nothing for the parent, as long as no transaction is open in them: no lock
//! is the child's, and the log is left alone.
//!
//! A connection that a thread of the parent was using at that moment cannot be closed. So a fork waits until none does; where it
//! does not, the file stays closed to the child.

use std::sync::{Arc, OnceLock};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionState};
use tollgate_store::{Mutex, MutexGuard, NoFork, PerProcess};

use crate::commit_queue::{CommitQueue, ForeignThread};
use crate::identity::Identity;
use crate::threads::ThreadContext;

/// The stores of this process.
#[derive(Default)]
pub(crate) struct Stores {
    open: Vec<Arc<ThreadContext>>,
    has_inherited: bool,
    /// Files of ancestors that could not be closed.
    lost: Vec<Identity>,
    /// An ancestor was opening or closing a file, and it is not known which.
    has_lost_any: bool,
}

/// Returns the id of this process.
pub(crate) fn process() -> u64 {
    std::process::id().into()
}

/// Lets this thread open and close files, one at a time in a process. A process that closes any handle of a file loses all its
/// locks on it, and the handle that makes a new file is not one of SQLite's, which knows about this.
pub(crate) fn lock() -> LockedStores {
    let no_fork = NoFork::begin();
    static STORES: OnceLock<PerProcess<Mutex<Stores>>> = OnceLock::new();
    let all = STORES.get_or_init(|| PerProcess::new(process()));
    let mut stores = all.get(process()).lock();
    if !stores.has_inherited {
        stores.has_inherited = true;
        all.inherited(process()).for_each(|ancestor| stores.inherit(ancestor));
    }
    LockedStores { stores, _no_fork: no_fork }
}

/// The stores of this process, and no fork meanwhile.
pub(crate) struct LockedStores {
    stores: MutexGuard<'static, Stores>,
    _no_fork: NoFork,
}

impl std::ops::Deref for LockedStores {
    type Target = Stores;

    fn deref(&self) -> &Stores {
        &self.stores
    }
}

impl std::ops::DerefMut for LockedStores {
    fn deref_mut(&mut self) -> &mut Stores {
        &mut self.stores
    }
}

impl Stores {
    /// Records that a store is open.
    pub(crate) fn add(&mut self, store: Arc<ThreadContext>) {
        // A store whose threads ended by themselves is still listed.
        self.open.retain(|store| store.is_open());
        self.open.push(store);
    }

    /// Closes the connections of a store once its threads have ended.
    pub(crate) fn close(&mut self, store: &ThreadContext) {
        store.writer.stop();
        store.reader.stop();
        self.open.retain(|store| store.is_open());
    }

    /// Returns whether a file can be opened in this process.
    pub(crate) fn can_open(&self, file: &Identity) -> bool {
        !self.has_lost_any && !self.lost.iter().any(|lost| lost.is_same(file))
    }

    /// Closes the connections that an ancestor has open.
    fn inherit(&mut self, ancestor: &Mutex<Stores>) {
        let Some(mut ancestor) = ancestor.try_lock() else {
            self.has_lost_any = true;
            return;
        };
        self.has_lost_any |= ancestor.has_lost_any;
        self.lost.append(&mut ancestor.lost);
        for store in ancestor.open.drain(..) {
            if close(&store).is_err() {
                self.lost.push(store.identity.clone());
            }
            // Its threads do not exist in this process, and what they hold is never released.
            std::mem::forget(store);
        }
    }
}

fn close(store: &ThreadContext) -> Result<(), ForeignThread> {
    // Both, also if one of them fails: a connection that is not in use is closed in any case.
    let (writer, reader) = (take(&store.writer), take(&store.reader));
    let is_read = store.examined.try_lock().is_none();
    if is_read { Err(ForeignThread) } else { writer.and(reader) }
}

fn take(queue: &CommitQueue) -> Result<(), ForeignThread> {
    let Some(connection) = queue.inherit()? else { return Ok(()) };
    if is_idle(&connection) {
        drop(connection);
        return Ok(());
    }
    std::mem::forget(connection);
    Err(ForeignThread)
}

/// Returns whether closing the connection changes only memory of this process.
fn is_idle(connection: &Connection) -> bool {
    matches!(connection.transaction_state(None::<&str>), Ok(TransactionState::None))
        && connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileStore;

    #[test]
    fn a_connection_that_is_in_use_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("tollgate-stores-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("x");
        drop(FileStore::open(&path).unwrap());
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("BEGIN; SELECT count(*) FROM record").unwrap();
        assert!(!is_idle(&connection), "it reads");
        connection.execute_batch("COMMIT").unwrap();
        assert!(is_idle(&connection));
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert!(!is_idle(&connection), "it writes");
        drop(connection);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_store_that_a_thread_is_using_is_not_closed() {
        let folder = std::env::temp_dir().join(format!("tollgate-stores-used-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let store = FileStore::open(folder.join("x")).unwrap();
        let identity = Identity::of(store.path()).unwrap();
        let this = lock().open.iter().find(|it| it.identity == identity).map(Arc::clone).unwrap();
        store.examine(|_| assert!(close(&this).is_err())).unwrap();
        assert!(close(&this).is_ok());
        drop((this, store));
        assert!(lock().open.iter().all(|it| it.identity != identity), "what is closed is forgotten");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_ancestor_whose_list_is_locked_loses_every_file() {
        let folder = std::env::temp_dir();
        let file = Identity::of(&folder).unwrap();
        let (ancestor, mut stores) = (Mutex::new(Stores::default()), Stores::default());
        stores.inherit(&ancestor);
        assert!(stores.can_open(&file));
        let opening = ancestor.lock();
        stores.inherit(&ancestor);
        drop(opening);
        assert!(!stores.can_open(&file));
    }
}
