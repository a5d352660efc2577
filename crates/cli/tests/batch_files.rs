//! A batch writes to its own files only, and to no other a single byte.
#![cfg(all(unix, feature = "batch"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;

use support::batch::{command, lines, ran, read, request, run, write};
use support::http_server::HttpServer;
use support::sandbox::{Sandbox, TOLLGATE};

/// Fields that every result has.
const NUMBERS: &str = "\"index\":0,\"attempts\":1,\"throttles\":0,\"tokens\":0,\"cost_micros\":0";

/// Returns all files of a directory with their contents.
fn contents(folder: &Sandbox) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

fn server() -> HttpServer {
    HttpServer::up(|_| r#"{"usage": {"prompt_tokens": 1, "completion_tokens": 1}}"#.into())
}

/// Runs with these words and checks that it is refused before the start, and that no file has changed.
fn assert_refused(folder: &Sandbox, words: &[&str], what: &str) {
    let server = server();
    let before = contents(folder);
    let mut command = folder.command(TOLLGATE);
    let ran = ran(command.args(["batch", "run", "--base-url", &server.url]).args(words));
    assert_eq!(ran.exit, 2, "{words:?}: {ran:?}");
    assert!(ran.stderr.contains(what), "{words:?}: {ran:?}");
    assert!(contents(folder) == before, "{words:?}: a file has changed");
    assert_eq!(server.requests().len(), 0, "{words:?}");
}

#[test]
fn requests_are_never_the_results() {
    let folder = Sandbox::new();
    write(&folder, "requests.jsonl", format!("{}\n{}\n", request("a"), request("b")));
    std::os::unix::fs::symlink("requests.jsonl", folder.path().join("link.jsonl")).unwrap();
    std::fs::hard_link(folder.path().join("requests.jsonl"), folder.path().join("hard.jsonl")).unwrap();
    for output in ["requests.jsonl", "./requests.jsonl", "link.jsonl", "hard.jsonl"] {
        for resume in [&[][..], &["--resume"], &["--resume", "--retry-failed"]] {
            let words = [&["requests.jsonl", "-o", output], resume].concat();
            assert_refused(&folder, &words, "are the same file");
        }
        assert_refused(
            &folder,
            &["requests.jsonl", "-o", "new.jsonl", "--errors", output],
            "are the same file",
        );
    }
    assert_refused(&folder, &["requests.jsonl", "-o", "x.jsonl", "--errors", "x.jsonl"], "are the same file");
}

#[test]
fn a_file_of_something_else_is_refused_with_and_without_resume() {
    let folder = Sandbox::new();
    write(&folder, "requests.jsonl", format!("{}\n", request("a")));
    for (name, text) in [
        ("other.jsonl", format!("{}\n", request("b"))),
        ("notes.txt", "milk\nbread\n".into()),
        ("thesis", "one line without an end".into()),
        ("data.json", "{\"id\":\"a\",\"name\":\"b\"}".into()),
        ("blank", "\n\n\n".into()),
        ("picture", "\u{0}\u{0}\n\u{0}".into()),
        ("tasks.jsonl", "{\"id\":\"x\",\"status\":\"failed\",\"title\":\"a task\"}\n".into()),
        ("task.json", "{\"id\":\"x\",\"status\":\"done\",\"title\":\"a task\"}".into()),
        ("lint.jsonl", "{\"file\":\"a.rs\",\"line\":3,\"error\":\"unused variable\"}\n".into()),
    ] {
        write(&folder, name, text);
        for resume in [&[][..], &["--resume"], &["--resume", "--retry-failed"]] {
            let words = [&["requests.jsonl", "-o", name], resume].concat();
            assert_refused(&folder, &words, "is not a file of results");
        }
        assert_refused(
            &folder,
            &["requests.jsonl", "-o", "new.jsonl", "--errors", name],
            "is not an errors file",
        );
    }
}

/// Options with which results are written from a separate journal.
const EXPORTS: [&[&str]; 3] = [&["--format", "openai"], &["--ordered"], &["--format", "openai", "--ordered"]];

#[test]
fn results_that_are_written_at_the_end_replace_no_file_of_something_else() {
    let folder = Sandbox::new();
    write(&folder, "requests.jsonl", format!("{}\n", request("a")));
    let result = format!(
        "{{\"id\":\"a\",\"status\":\"done\",\"output\":{{\"status_code\":200,\"body\":{{}}}},{NUMBERS}}}\n"
    );
    for (name, text) in [
        ("other.jsonl", format!("{}\n", request("b"))),
        ("notes.txt", "milk\nbread\n".into()),
        ("openai.jsonl", "{\"id\":\"batch_req_1\",\"custom_id\":\"a\",\"response\":null}\n".into()),
        ("half.jsonl", format!("{result}notes\n")),
        ("tasks.jsonl", format!("{result}{{\"id\":\"x\",\"status\":\"failed\",\"title\":\"a task\"}}\n")),
        ("blank", "\n\n\n".into()),
    ] {
        for resume in [&[][..], &["--resume"], &["--resume", "--retry-failed"]] {
            for export in EXPORTS {
                let words = [&["requests.jsonl", "-o", name], export, resume].concat();
                let journal = folder.path().join(format!("{name}.journal"));
                write(&folder, name, &text);
                assert_refused(&folder, &words, "is not a file of results");
                // A journal of a run does not make the file one of its results.
                std::fs::write(&journal, &result).unwrap();
                assert_refused(&folder, &words, "is not a file of results");
                // Nor is a journal ours because the results are.
                write(&folder, name, "");
                std::fs::write(&journal, format!("notes\n{text}")).unwrap();
                assert_refused(&folder, &words, "is not a file of results");
                std::fs::remove_file(&journal).unwrap();
            }
        }
    }
}

#[test]
fn the_journal_must_differ_from_the_other_files() {
    let folder = Sandbox::new();
    write(&folder, "requests.jsonl", format!("{}\n", request("a")));
    let path = |name: &str| folder.path().join(name);
    for export in EXPORTS {
        for errors in ["x.jsonl.journal", "./x.jsonl.journal"] {
            let words = [&["requests.jsonl", "-o", "x.jsonl", "--errors", errors], export].concat();
            assert_refused(&folder, &words, "are the same file");
        }
        for link in ["x.jsonl", "x.jsonl.journal"] {
            std::os::unix::fs::symlink("requests.jsonl", path(link)).unwrap();
            let words = [&["requests.jsonl", "-o", "x.jsonl", "--resume"], export].concat();
            assert_refused(&folder, &words, "are the same file");
            std::fs::remove_file(path(link)).unwrap();
        }
        std::fs::create_dir(path("x.jsonl.journal")).unwrap();
        assert_refused(
            &folder,
            &[&["requests.jsonl", "-o", "x.jsonl"], export].concat(),
            "not a regular file",
        );
        std::fs::remove_dir(path("x.jsonl.journal")).unwrap();
    }
}

#[test]
fn results_in_any_format_are_ours_in_the_next_run_with_their_journal_and_not_without() {
    for export in EXPORTS {
        let (folder, server) = (Sandbox::new(), server());
        write(&folder, "requests.jsonl", format!("{}\n", request("a")));
        let first = run(&folder, &server.url, export);
        assert_eq!(first.exit, 0, "{export:?}: {first:?}");
        let again = [&["requests.jsonl", "-o", "results.jsonl"], export].concat();
        assert_refused(&folder, &again, "exists; continue it with --resume");
        write(&folder, "requests.jsonl", format!("{}\n{}\n", request("a"), request("b")));
        assert_refused(
            &folder,
            &["requests.jsonl", "-o", "results.jsonl", "--resume"],
            "with --format or --ordered",
        );
        let resumed = run(&folder, &server.url, &[export, &["--resume"]].concat());
        assert_eq!((resumed.exit, server.requests().len()), (0, 2), "{export:?}: {resumed:?}");
        let ids: Vec<String> =
            lines(&folder, "results.jsonl").iter().map(|line| line["custom_id"].to_string()).collect();
        assert_eq!(ids, ["\"a\"", "\"b\""], "{export:?}");
        std::fs::remove_file(folder.path().join("results.jsonl.journal")).unwrap();
        let resume = [&again[..], &["--resume"]].concat();
        assert_refused(&folder, &resume, "results.jsonl.journal does not");
    }
}

#[test]
fn results_that_are_written_at_the_end_stay_behind_a_link() {
    let (folder, server) = (Sandbox::new(), server());
    write(&folder, "requests.jsonl", format!("{}\n", request("a")));
    write(&folder, "real.jsonl", "");
    std::os::unix::fs::symlink("real.jsonl", folder.path().join("results.jsonl")).unwrap();
    assert_eq!(run(&folder, &server.url, &["--format", "openai"]).exit, 0);
    assert!(std::fs::symlink_metadata(folder.path().join("results.jsonl")).unwrap().is_symlink());
    assert_eq!(lines(&folder, "real.jsonl").len(), 1);
}

#[test]
fn results_that_cannot_be_written_at_the_end_stay_in_the_journal_and_the_summary_says_so() {
    let folder = Sandbox::new();
    write(&folder, "requests.jsonl", format!("{}\n", request("a")));
    let path = folder.path().join("results.jsonl");
    let in_the_way = path.clone();
    let server = HttpServer::up(move |_| {
        std::fs::create_dir(&in_the_way).unwrap();
        r#"{"usage": {"prompt_tokens": 1, "completion_tokens": 1}}"#.into()
    });
    let first = run(&folder, &server.url, &["--format", "openai", "--json"]);
    let summary = support::batch::summary(&first);
    assert_eq!((first.exit, &summary["done"]), (1, &1.into()), "{first:?}");
    assert!(summary["unwritten"].as_str().unwrap().contains("--resume writes it again"), "{summary}");
    std::fs::remove_dir(&path).unwrap();
    assert_eq!(run(&folder, &server.url, &["--format", "openai", "--resume"]).exit, 0);
    assert_eq!((lines(&folder, "results.jsonl").len(), server.requests().len()), (1, 1));
}

#[test]
fn a_directory_or_a_device_holds_no_results() {
    let folder = Sandbox::new();
    write(&folder, "requests.jsonl", format!("{}\n", request("a")));
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    for output in ["folder", "/dev/null", "/dev/zero"] {
        assert_refused(&folder, &["requests.jsonl", "-o", output], "not a regular file");
        assert_refused(&folder, &["requests.jsonl", "-o", output, "--resume"], "not a regular file");
        assert_refused(
            &folder,
            &["requests.jsonl", "-o", "new.jsonl", "--errors", output],
            "not a regular file",
        );
    }
}

#[test]
fn an_empty_file_and_files_of_an_earlier_run_are_ours() {
    let (folder, server) = (Sandbox::new(), server());
    write(&folder, "requests.jsonl", format!("{}\nnonsense\n", request("a")));
    write(&folder, "results.jsonl", "");
    write(&folder, "results.jsonl.errors.jsonl", "");
    assert_eq!(run(&folder, &server.url, &[]).exit, 1, "a line is invalid");
    assert_eq!(lines(&folder, "results.jsonl.errors.jsonl").len(), 1);
    write(&folder, "requests.jsonl", format!("{}\n{}\n", request("a"), request("b")));
    let again = run(&folder, &server.url, &["--resume"]);
    assert_eq!(again.exit, 0, "{again:?}");
    assert_eq!(lines(&folder, "results.jsonl").len(), 2);
    assert_eq!(read(&folder, "results.jsonl.errors.jsonl"), "", "what is mended is an error no more");
}

#[test]
fn results_behind_a_link_stay_behind_it() {
    let (folder, server) = (Sandbox::new(), server());
    write(&folder, "requests.jsonl", format!("{}\n", request("a")));
    let failed =
        format!("{{\"id\":\"a\",\"status\":\"failed\",\"class\":\"fatal\",\"reason\":\"no\",{NUMBERS}}}\n");
    write(&folder, "real.jsonl", failed);
    std::os::unix::fs::symlink("real.jsonl", folder.path().join("results.jsonl")).unwrap();
    let retried = run(&folder, &server.url, &["--resume", "--retry-failed"]);
    assert_eq!(retried.exit, 0, "{retried:?}");
    assert!(std::fs::symlink_metadata(folder.path().join("results.jsonl")).unwrap().is_symlink());
    let results = lines(&folder, "real.jsonl");
    assert_eq!((results.len(), &results[0]["status"]), (1, &"done".into()));
}

#[test]
fn a_full_disk_keeps_every_result_that_is_reported_as_done() {
    let (folder, server) = (Sandbox::new(), server());
    let requests: String = (0..400).map(|number| request(&format!("r{number}")) + "\n").collect();
    write(&folder, "requests.jsonl", requests);
    // The maximum size of a file, in blocks of 512 bytes.
    let words = format!(
        "trap '' XFSZ; ulimit -f 32; exec tollgate batch run requests.jsonl -o results.jsonl --workers 8 --json \
         --base-url {}",
        server.url
    );
    let ran = folder.shell(&words);
    assert_eq!(ran.exit, 1, "{ran:?}");
    let summary = support::batch::summary(&ran);
    let written = lines(&folder, "results.jsonl").len();
    assert!((1..400).contains(&written), "{written}");
    assert_eq!(summary["done"], written, "{summary}");
    let resumed = support::batch::ran(&mut command(&folder, &server.url, &["--resume"]));
    assert_eq!(resumed.exit, 0, "{resumed:?}");
    assert_eq!(lines(&folder, "results.jsonl").len(), 400);
}
