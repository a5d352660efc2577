//! Memory grows by a few bytes for each item, the hash of its id, and by nothing else.
//!
//! The test has a file of its own, because the heap is counted for the whole process.

mod support;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use support::succeeded;
use tollgate_batch::journal::{Finished, OnFailed, SeenBefore};
use tollgate_batch::{Batch, CallReply, Item, ItemAttempt, Journal, Summary};
use tollgate_provider::{FatalKind, Hint};

#[global_allocator]
static HEAP: dhat::Alloc = dhat::Alloc;

/// The number of items of a small batch; a large one has four times as many.
const ITEMS: u64 = 5_000;

/// How many bytes an item may add.
const BYTES_MAX: u64 = 40;

const HOUR: Duration = Duration::from_secs(3_600);

fn id(number: u64) -> String {
    format!("a request with a name as people give it, {number}")
}

fn items(count: u64) -> impl Iterator<Item = Item<u64>> + Send {
    (0..count).map(|number| Item::new(id(number), number).fingerprint(number))
}

/// Writes a journal in which all items are finished.
fn write_journal(file: &Path, count: u64, status: &str) {
    let mut out = BufWriter::new(File::create(file).expect("a file"));
    for number in 0..count {
        let id = id(number);
        writeln!(
            out,
            r#"{{"id":"{id}","status":"{status}","index":{number},"attempts":1,"throttles":0,"tokens":0,"cost_micros":0,"fingerprint":"{number:016x}"}}"#
        )
        .expect("room");
    }
    out.flush().expect("room");
}

/// Runs a batch, most of whose deadlines are far away when it ends.
fn run(journal: &Path, on_failed: OnFailed, count: u64, reply: fn() -> CallReply<u64>) -> Summary {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let journal = Journal::open(journal, on_failed).expect("a journal");
        // So few items are in memory at once that their number does not matter.
        let batch = Batch::new().workers(8).lookahead(64).buffer(64);
        let batch = batch.attempt_deadline(HOUR).item_deadline(HOUR);
        let run = batch.resume(journal, items(count), move |_: ItemAttempt<u64>| async move { reply() });
        run.finish().await.expect("the batch ends")
    })
}

fn done() -> CallReply<u64> {
    succeeded(0)
}

fn closed() -> CallReply<u64> {
    CallReply::refused(Hint::fatal(FatalKind::Auth))
}

/// Returns how many bytes were in use at most while `work` ran.
fn peak(work: impl FnOnce()) -> u64 {
    let profiler = dhat::Profiler::builder().testing().build();
    work();
    let bytes = dhat::HeapStats::get().max_bytes as u64;
    drop(profiler);
    bytes
}

/// Runs `work` with few and with many items, and checks how many bytes each of them adds.
fn check(what: &str, file: &Path, prepare: fn(&Path, u64), work: fn(&Path, u64)) {
    let [few, many] = [ITEMS, 4 * ITEMS].map(|count| {
        let _ = fs::remove_file(file);
        prepare(file, count);
        peak(|| work(file, count))
    });
    let each = many.saturating_sub(few) / (3 * ITEMS);
    assert!(
        each <= BYTES_MAX,
        "{what}: {each} B for each item; {few} B for {ITEMS} items, {many} B for four times as many"
    );
}

#[test]
fn an_item_adds_a_few_bytes_whether_it_is_called_skipped_or_unfinished() {
    let file = std::env::temp_dir().join(format!("tollgate-memory-{}.jsonl", std::process::id()));
    let nothing = |_: &Path, _| {};
    check("a first run", &file, nothing, |file, count| {
        assert_eq!(run(file, OnFailed::Keep, count, done).progress.done, count);
    });
    check(
        "a run that has nothing left to do",
        &file,
        |file, count| write_journal(file, count, "done"),
        |file, count| assert_eq!(run(file, OnFailed::Keep, count, done).progress.done_before, count),
    );
    check(
        "a run that tries failed items again",
        &file,
        |file, count| write_journal(file, count, "failed"),
        |file, count| assert_eq!(run(file, OnFailed::Retry, count, done).progress.done, count),
    );
    check(
        "a dry run",
        &file,
        |file, count| write_journal(file, count, "done"),
        |file, count| {
            let mut finished = Finished::load(file, OnFailed::Keep).expect("a journal");
            let done = SeenBefore::Earlier { has_failed: false, has_changed: false };
            assert!((0..count).all(|number| finished.check(&id(number), Some(number)) == done));
        },
    );
    check("a run whose account is closed", &file, nothing, |file, count| {
        assert_eq!(run(file, OnFailed::Keep, count, closed).progress.unfinished, count);
    });
    check_large_results(&file);
    let _ = fs::remove_file(&file);
}

/// Checks results of 64 KiB that arrive faster than the disk stores them: a megabyte of them may
/// wait.
fn check_large_results(file: &Path) {
    let _ = fs::remove_file(file);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let bytes = peak(|| {
        let summary = runtime.block_on(async {
            let journal = Journal::open(file, OnFailed::Keep).expect("a journal");
            let batch = Batch::new().workers(4).buffer_bytes(1 << 20);
            let run = batch.resume(journal, items(1_000), |_: ItemAttempt<u64>| async {
                succeeded("x".repeat(1 << 16))
            });
            run.finish().await.expect("the batch ends")
        });
        assert_eq!(summary.progress.done, 1_000);
    });
    // Each result is in memory as a line, as an outcome, and in its group.
    assert!(bytes < 8 << 20, "{bytes} B");
}
