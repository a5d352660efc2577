//! What the tests of the file store share.

#![allow(dead_code, unreachable_pub, reason = "every test file uses another part of this module")]

pub mod child;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Costs, Limit, Limits, Tick, Usage, demand};
use tollgate_file::FileStore;
use tollgate_store::{
    BucketRef, Key, LeaseTerm, ManualClock, Op, Step, StepOutcome, Store, StoreError, Transaction, TxnOutcome,
};

pub const START: Tick = Tick::from_secs(1_800_000_000);

/// A folder that is gone at the end of the test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tollgate-file-{}-{number}", std::process::id()));
        // A process that was killed leaves its folders, and this one may have its number.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).expect("a folder for temporary files");
        Folder(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes a file that no other user may write to, whatever files are made like here.
pub fn write_own(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("it can be written");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(path, mode).expect("it is ours");
    }
}

/// A store with a manual clock.
pub fn open_at(path: &Path, hands: &ManualClock) -> FileStore {
    FileStore::builder(path).clock(hands.clock()).build().expect("the file can be opened")
}

/// 100 tokens a minute and 2 slots.
pub fn limits() -> Limits {
    Limits::new([Limit::per_minute("tpm", 100), Limit::resource("slots", 2)]).expect("they are valid")
}

/// One bucket of a store, with the limits of the tests.
pub struct Tap<'a> {
    pub store: &'a FileStore,
    pub limits: Limits,
    pub key: Key,
}

impl<'a> Tap<'a> {
    pub fn new(store: &'a FileStore, entity: &str) -> Tap<'a> {
        Tap { store, limits: limits(), key: Key::new(&[entity, "gpt"]) }
    }

    pub fn place(&self) -> BucketRef<'_> {
        BucketRef { namespace: "tests", key: &self.key, limits: &self.limits }
    }

    pub fn costs(&self, tpm: u64, slots: u64) -> Costs {
        self.limits.costs(&demand! { tpm: tpm, slots: slots }).expect("it is within the capacities")
    }

    pub fn apply(&self, op: Op<'_>) -> Result<TxnOutcome, StoreError> {
        let steps = [Step { place: self.place(), op }];
        self.store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait()
    }

    pub fn try_take(&self, tpm: u64, slots: u64, term: Option<LeaseTerm>) -> Result<bool, StoreError> {
        let costs = self.costs(tpm, slots);
        Ok(matches!(self.apply(Op::Take { costs: &costs, term })?, TxnOutcome::Done(_)))
    }

    pub fn take(&self, tpm: u64, slots: u64) -> bool {
        self.try_take(tpm, slots, None).expect("the store answers")
    }

    /// Gives back what was taken at `at`.
    pub fn give_back(&self, at: Tick, tpm: u64, slots: u64) {
        let reserved = self.costs(tpm, slots);
        let usage = Usage { at, reserved: &reserved, used: &[0, 0], holder: None };
        let applied = self.apply(Op::Settle(usage)).expect("the store answers");
        assert_eq!(applied, TxnOutcome::Done(vec![StepOutcome::Settled]));
    }

    pub fn left(&self) -> Vec<i64> {
        let statuses = self.store.peek(&self.place()).wait().expect("the store answers");
        statuses.iter().map(tollgate_core::Status::available).collect()
    }
}
