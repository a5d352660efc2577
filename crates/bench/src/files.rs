//! The file store, compared with plain SQLite and with the disk.

use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;
use std::thread;

use anyhow::Result;
use rusqlite::{Connection, TransactionBehavior};
use tollgate::file::{Durability, FileStore};
use tollgate::{Level, Limit, Limiter, Limits, demand};

use crate::scratch::Scratch;
use crate::subject::{BenchOperation, each};

/// The names of the other sides.
pub(crate) const SQLITE: &str = "bare SQLite";
pub(crate) const FDATASYNC: &str = "fdatasync";

/// More a second than any loop can acquire.
const PLENTY: u64 = 1_000_000_000;

const RESOURCE: &str = "gpt-4";
pub(crate) const CALLERS: u64 = 64;

fn limiter(scratch: &Scratch, durability: Durability) -> Result<Limiter> {
    let store = FileStore::builder(scratch.file("limits.db")).durability(durability).build()?;
    let limiter = Limiter::open(Arc::new(store), "default").wait()?;
    let limits = Limits::new([Limit::per_second("rpm", PLENTY), Limit::per_second("tpm", 100 * PLENTY)])?;
    limiter.catalog().set_limits(Level::Resource(RESOURCE), &limits).wait()?;
    Ok(limiter)
}

/// Acquires and commits: one write.
fn acquire(limiter: &Limiter) -> bool {
    match limiter.acquire("user-1", RESOURCE, demand! { rpm: 1, tpm: 100 }).wait() {
        Ok(lease) => lease.commit().wait().is_ok(),
        Err(_) => false,
    }
}

/// One caller, normal durability.
pub(crate) fn one_caller() -> Result<BenchOperation> {
    let scratch = Scratch::new()?;
    let limiter = limiter(&scratch, Durability::Normal)?;
    Ok(each(move || {
        let _kept = &scratch;
        acquire(&limiter)
    }))
}

/// A plain transaction that reads and writes one row.
pub(crate) fn bare_transaction() -> Result<BenchOperation> {
    let scratch = Scratch::new()?;
    let mut connection = Connection::open(scratch.file("bare.db"))?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
         CREATE TABLE bucket (key TEXT PRIMARY KEY, credit INTEGER NOT NULL) WITHOUT ROWID;
         INSERT INTO bucket VALUES ('user-1', 0);",
    )?;
    Ok(each(move || {
        let _kept = &scratch;
        read_and_write(&mut connection).is_ok()
    }))
}

fn read_and_write(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let credit: i64 = transaction
        .prepare_cached("SELECT credit FROM bucket WHERE key = ?1")?
        .query_row(["user-1"], |row| row.get(0))?;
    let mut update = transaction.prepare_cached("UPDATE bucket SET credit = ?2 WHERE key = ?1")?;
    update.execute(("user-1", credit + 1))?;
    drop(update);
    transaction.commit()
}

/// Many callers at once, full durability.
pub(crate) fn many_callers() -> Result<BenchOperation> {
    let scratch = Scratch::new()?;
    let limiter = limiter(&scratch, Durability::Full)?;
    Ok(Box::new(move |times| {
        let _kept = &scratch;
        let share = |caller: u64| times / CALLERS + u64::from(caller < times % CALLERS);
        thread::scope(|scope| {
            let call = |count| {
                let limiter = &limiter;
                scope.spawn(move || (0..count).filter(|_| acquire(limiter)).count() as u64)
            };
            let callers: Vec<_> = (0..CALLERS).map(|caller| call(share(caller))).collect();
            callers.into_iter().map(|caller| caller.join().unwrap_or(0)).sum()
        })
    }))
}

/// Appends a page to a file and syncs it.
pub(crate) fn raw_sync() -> Result<BenchOperation> {
    let scratch = Scratch::new()?;
    let mut file = File::create(scratch.file("raw"))?;
    let page = [7; 4_096];
    Ok(each(move || {
        let _kept = &scratch;
        file.write_all(&page).and_then(|()| file.sync_data()).is_ok()
    }))
}
