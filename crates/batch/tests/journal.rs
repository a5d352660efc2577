//! The journal: which outcomes are stored, which lines are dropped, which items are called again.

mod support;

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use support::{Calls, items, one_each, succeeded};
use tollgate_batch::journal::{Journal, JournalError, LINE_BYTES_MAX, OnFailed};
use tollgate_batch::{Batch, CallReply, Item, ItemAttempt, ItemError, StopReason};
use tollgate_provider::{FatalKind, Hint};

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tollgate-journal-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("results.jsonl")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

async fn run(
    file: &PathBuf,
    on_failed: OnFailed,
    count: u64,
    calls: &Calls,
) -> Vec<tollgate_batch::Outcome<u64>> {
    let journal = Journal::open(file, on_failed).expect("a journal");
    let counting = calls.clone();
    let run = Batch::new().workers(4).resume(journal, items(count), move |call: ItemAttempt<u64>| {
        counting.count(&call);
        async move {
            if *call.payload() == 3 {
                CallReply::refused(Hint::fatal(FatalKind::Request))
            } else {
                succeeded(*call.payload())
            }
        }
    });
    run.collect().await.expect("the batch ends").0
}

/// Returns the line of a result without optional fields.
fn result(id: &str, output: &str) -> String {
    let numbers = "\"index\":0,\"attempts\":1,\"throttles\":0,\"tokens\":0,\"cost_micros\":0";
    format!("{{\"id\":\"{id}\",\"status\":\"done\",\"output\":{output},{numbers}}}\n")
}

#[tokio::test]
async fn a_second_run_calls_only_what_is_missing() {
    let folder = Folder::new("missing");
    let calls = Calls::default();
    assert_eq!(run(&folder.file(), OnFailed::Keep, 10, &calls).await.len(), 10);
    assert_eq!(calls.total(), 10);
    let later = run(&folder.file(), OnFailed::Keep, 15, &calls).await;
    assert_eq!(later.iter().map(|outcome| outcome.index).collect::<Vec<_>>(), [10, 11, 12, 13, 14]);
    assert_eq!(calls.total(), 15);
    run(&folder.file(), OnFailed::Retry, 15, &calls).await;
    assert_eq!((calls.total(), calls.of("3")), (16, 2));
    let lines: Vec<_> = Journal::read(folder.file()).unwrap().map(|line| line.unwrap()).collect();
    assert_eq!(lines.len(), 15, "an item that was retried has one line");
    assert!(lines.iter().filter(|line| line.id == "3").all(|line| line.class.as_deref() == Some("fatal")));
    let output = |id: &str| lines.iter().find(|line| line.id == id).unwrap().output.clone();
    assert_eq!(output("7").unwrap().get(), "7");
}

#[tokio::test]
async fn an_outcome_is_on_disk_before_it_is_returned() {
    let folder = Folder::new("before");
    let journal = Journal::open(folder.file(), OnFailed::Keep).unwrap();
    let mut run =
        Batch::new()
            .workers(3)
            .buffer(1)
            .resume(journal, items(50), |call: ItemAttempt<u64>| async move { succeeded(*call.payload()) });
    while let Some(outcome) = run.next().await {
        let wanted = format!("\"id\":\"{}\"", outcome.id);
        assert!(fs::read_to_string(folder.file()).unwrap().contains(&wanted), "{wanted}");
    }
}

#[tokio::test]
async fn a_torn_tail_is_dropped_wherever_it_is_torn() {
    let folder = Folder::new("torn");
    run(&folder.file(), OnFailed::Keep, 5, &Calls::default()).await;
    let whole = fs::read(folder.file()).unwrap();
    let ends: Vec<usize> =
        whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    for cut in 0..=whole.len() {
        fs::write(folder.file(), &whole[..cut]).unwrap();
        let good = ends.iter().copied().filter(|end| *end <= cut).max().unwrap_or(0);
        let journal = Journal::open(folder.file(), OnFailed::Keep).unwrap();
        assert_eq!(journal.finished(), ends.iter().filter(|end| **end <= good).count());
        drop(journal);
        assert_eq!(fs::metadata(folder.file()).unwrap().len(), good as u64, "cut at {cut}");
    }
    // A block that never reached the disk reads as zeros, with or without complete lines behind it.
    let mut holed = whole.clone();
    holed[ends[1] + 2..ends[2] - 3].fill(0);
    fs::write(folder.file(), &holed).unwrap();
    for _ in 0..2 {
        let journal = Journal::open(folder.file(), OnFailed::Keep).unwrap();
        assert_eq!(journal.finished(), 4, "all but the torn one");
    }
    let again = run(&folder.file(), OnFailed::Keep, 5, &Calls::default()).await;
    assert_eq!(again.len(), 1);
    assert_eq!(Journal::open(folder.file(), OnFailed::Keep).unwrap().finished(), 5);
}

#[test]
fn damage_that_no_crash_explains_is_reported_with_its_line_and_the_file_is_unchanged() {
    let folder = Folder::new("damage");
    let mut file = fs::File::create(folder.file()).unwrap();
    writeln!(file, "{}nonsense", result("0", "1")).unwrap();
    let line = result("1", &format!("\"{}\"", "x".repeat(1 << 20)));
    (0..40).for_each(|_| file.write_all(line.as_bytes()).unwrap());
    let before = fs::metadata(folder.file()).unwrap().len();
    let Err(JournalError::Corrupt { line, .. }) = Journal::open(folder.file(), OnFailed::Keep) else {
        panic!()
    };
    assert_eq!((line, fs::metadata(folder.file()).unwrap().len()), (2, before));
}

#[test]
fn two_runs_on_one_file_are_refused() {
    let folder = Folder::new("two");
    let first = Journal::open(folder.file(), OnFailed::Keep).unwrap();
    let refused = Journal::open(folder.file(), OnFailed::Keep).unwrap_err();
    assert!(
        matches!(refused, JournalError::InUse { .. }) && refused.to_string().contains("another run"),
        "{refused}"
    );
    drop(first);
    Journal::open(folder.file(), OnFailed::Keep).unwrap();
}

#[tokio::test]
async fn unfinished_items_are_not_stored() {
    let folder = Folder::new("unfinished");
    let journal = Journal::open(folder.file(), OnFailed::Keep).unwrap();
    let run = Batch::new().workers(1).resume(journal, items(5), |_: ItemAttempt<u64>| async {
        CallReply::<u64>::refused(Hint::exhausted(None).with_reason("insufficient_quota"))
    });
    let outcomes = one_each(run, 5).await;
    assert!(
        outcomes
            .iter()
            .all(|outcome| matches!(outcome.result, Err(ItemError::Unfinished(StopReason::Closed(_)))))
    );
    assert_eq!(fs::metadata(folder.file()).unwrap().len(), 0);
}

#[tokio::test]
async fn an_id_that_comes_twice_is_called_once() {
    let folder = Folder::new("twice");
    let journal = Journal::open(folder.file(), OnFailed::Keep).unwrap();
    let calls = Calls::default();
    let counting = calls.clone();
    let work = (0..100_u64).map(|at| Item::new((at % 10).to_string(), at));
    let run = Batch::new().resume(journal, work, move |call: ItemAttempt<u64>| {
        counting.count(&call);
        async { succeeded(0_u64) }
    });
    let (outcomes, summary) = run.collect().await.unwrap();
    assert_eq!((outcomes.len(), calls.total()), (10, 10));
    assert_eq!((summary.progress.skipped, summary.progress.duplicates), (90, 90));
}

/// Contents of files that are not journals.
const FOREIGN: [&str; 14] = [
    "{\"custom_id\":\"a\",\"body\":{}}\n{\"custom_id\":\"b\",\"body\":{}}\n",
    "{\"id\":\"a\",\"name\":\"b\"}",
    "{\"id\":\"a\",\"status\":\"open\"}\n",
    "{\"id\":\"x\",\"status\":\"failed\",\"title\":\"a task\"}\n{\"id\":\"y\",\"status\":\"done\",\"title\":\"b\"}\n",
    "{\"id\":\"x\",\"status\":\"done\"}\n",
    "{\"id\":\"x\",\"status\":\"done\",\"title\":\"a task\"}",
    "{\"id\":\"x\",\"status\":\"failed\",\"index\":0,\"attempts\":3}\n",
    "{\"id\":\"x\",\"status\":\"done\",\"output\":{}}",
    "notes\n{\"id\":\"a\",\"status\":\"done\"}\n",
    "one line without an end",
    "\n\n",
    "  ",
    "\0\0\0\0",
    "[account]\nname = \"a\"\n",
];

#[test]
fn a_file_of_another_program_is_refused_and_keeps_every_byte() {
    let folder = Folder::new("foreign");
    for (text, on_failed) in
        FOREIGN.into_iter().flat_map(|text| [(text, OnFailed::Keep), (text, OnFailed::Retry)])
    {
        fs::write(folder.file(), text).unwrap();
        let refused = Journal::open(folder.file(), on_failed).unwrap_err();
        assert!(matches!(refused, JournalError::Foreign { .. }), "{text:?}: {refused}");
        assert_eq!(fs::read_to_string(folder.file()).unwrap(), text);
    }
    fs::write(folder.file(), "").unwrap();
    Journal::open(folder.file(), OnFailed::Keep).expect("an empty file is an empty journal");
}

#[test]
fn lines_without_optional_fields_are_results() {
    let folder = Folder::new("versions");
    let failed = "{\"id\":\"b\",\"status\":\"failed\",\"class\":\"fatal\",\"reason\":\"no\",\"index\":1,\"attempts\":1,\
                  \"throttles\":0,\"tokens\":0,\"cost_micros\":0}\n";
    let text = format!("{}{failed}", result("a", "{\"body\":[1]}"));
    fs::write(folder.file(), &text).unwrap();
    let journal = Journal::open(folder.file(), OnFailed::Keep).unwrap();
    assert_eq!((journal.finished(), journal.failed()), (2, 1));
    assert_eq!(fs::read_to_string(folder.file()).unwrap(), text);
}

#[test]
fn a_line_of_another_program_in_a_journal_is_refused_wherever_it_is() {
    let folder = Folder::new("mixed");
    let (ours, task) = (result("0", "1"), "{\"id\":\"x\",\"status\":\"failed\",\"title\":\"a task\"}");
    for text in [
        format!("{ours}notes\n{ours}"),
        format!("{ours}notes"),
        format!("{ours}{task}\n{ours}"),
        format!("{ours}{task}"),
    ] {
        fs::write(folder.file(), &text).unwrap();
        let refused = Journal::open(folder.file(), OnFailed::Retry).unwrap_err();
        assert!(matches!(refused, JournalError::Corrupt { line: 2, .. }), "{text:?}: {refused}");
        assert_eq!(fs::read_to_string(folder.file()).unwrap(), text);
    }
}

#[tokio::test]
async fn items_that_failed_before_count_as_failed_and_changed_items_are_reported() {
    let folder = Folder::new("earlier");
    run(&folder.file(), OnFailed::Keep, 10, &Calls::default()).await;
    let journal = Journal::open(folder.file(), OnFailed::Keep).unwrap();
    assert_eq!((journal.finished(), journal.failed()), (10, 1));
    let run = Batch::new()
        .resume(journal, items(10), |call: ItemAttempt<u64>| async move { succeeded(*call.payload()) });
    let progress = run.finish().await.unwrap().progress;
    assert_eq!((progress.done_before, progress.failed_before, progress.skipped), (9, 1, 10));

    let folder = Folder::new("changed");
    for (second, changed) in [(1, 0), (1, 0), (2, 1)] {
        let journal = Journal::open(folder.file(), OnFailed::Keep).unwrap();
        let work = [Item::new("a", 0_u64).fingerprint(1), Item::new("b", 0).fingerprint(second)];
        let run = Batch::new().resume(journal, work, |_: ItemAttempt<u64>| async { succeeded(0_u64) });
        assert_eq!(run.finish().await.unwrap().progress.changed, changed);
    }
}

#[tokio::test]
async fn raw_json_is_written_as_it_is_and_on_one_line() {
    let folder = Folder::new("raw");
    let journal = Journal::open(folder.file(), OnFailed::Keep).unwrap();
    let run = Batch::new().resume(journal, items(1), |_: ItemAttempt<u64>| async {
        let raw = "{\r\n\"b\": 1e400,\n\"a\": 12345678901234567890123}".to_owned();
        succeeded(serde_json::value::RawValue::from_string(raw).unwrap())
    });
    assert_eq!(run.finish().await.unwrap().progress.done, 1);
    let text = fs::read_to_string(folder.file()).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert!(text.contains("\"b\": 1e400, \"a\": 12345678901234567890123"), "{text}");
    assert_eq!(Journal::open(folder.file(), OnFailed::Keep).unwrap().finished(), 1);
}

#[test]
fn a_path_that_is_not_a_regular_file_is_refused() {
    let folder = Folder::new("folder");
    assert!(matches!(Journal::open(&folder.0, OnFailed::Keep), Err(JournalError::Io { .. })));
    #[cfg(unix)]
    assert!(matches!(Journal::open("/dev/zero", OnFailed::Keep), Err(JournalError::Io { .. })));
}

#[tokio::test]
async fn an_output_that_is_too_long_is_a_failure_and_the_others_are_stored() {
    let folder = Folder::new("long");
    let journal = Journal::open(folder.file(), OnFailed::Keep).unwrap();
    let run = Batch::new().resume(journal, items(3), |call: ItemAttempt<u64>| async move {
        let length = if *call.payload() == 1 { LINE_BYTES_MAX } else { 10 };
        succeeded("x".repeat(length))
    });
    let outcomes = one_each(run, 3).await;
    let Err(ItemError::Item { reason, .. }) = &outcomes[1].result else { panic!() };
    assert!(reason.contains(&LINE_BYTES_MAX.to_string()), "{reason}");
    let journal = Journal::open(folder.file(), OnFailed::Keep).unwrap();
    assert_eq!((journal.finished(), journal.failed()), (3, 1));
}

#[tokio::test]
async fn a_reply_to_a_failed_item_that_is_too_long_is_left_out_and_the_failure_stays() {
    let folder = Folder::new("long-reply");
    let journal = Journal::open(folder.file(), OnFailed::Keep).unwrap();
    let run = Batch::new().resume(journal, items(2), |call: ItemAttempt<u64>| async move {
        let length = if *call.payload() == 1 { LINE_BYTES_MAX } else { 10 };
        let hint = Hint::fatal(FatalKind::Request).with_reason("no such model");
        CallReply::refused(hint).rejected("x".repeat(length))
    });
    one_each(run, 2).await;
    let mut lines: Vec<_> = Journal::read(folder.file()).unwrap().map(|line| line.unwrap()).collect();
    lines.sort_by_key(|line| line.index);
    let reasons: Vec<_> = lines.iter().map(|line| line.reason.as_deref()).collect();
    assert_eq!(reasons, [Some("no such model"), Some("no such model")]);
    assert_eq!((lines[0].output.is_some(), lines[1].output.is_some()), (true, false));
}
