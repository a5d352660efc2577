//! A batch writes to its own files only, and to no other a single byte.
#![cfg(all(unix, feature = "batch"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;

use support::batch::{command, lines, ran, read, request, run, write};
use support::http_server::HttpServer;
use support::sandbox::{Sandbox, TOLLGATE};

/// All files of a folder with what is in them.
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
    ] {
        write(&folder, name, text);
        for resume in [&[][..], &["--resume"], &["--resume", "--retry-failed"]] {
            let words = [&["requests.jsonl", "-o", name], resume].concat();
            assert_refused(&folder, &words, "is not a file of results");
        }
        assert_refused(
            &folder,
            &["requests.jsonl", "-o", "new.jsonl", "--errors", name],
            "is not a file of errors",
        );
    }
}

#[test]
fn a_directory_or_a_device_holds_no_results() {
    let folder = Sandbox::new();
    write(&folder, "requests.jsonl", format!("{}\n", request("a")));
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    for output in ["folder", "/dev/null", "/dev/zero"] {
        assert_refused(&folder, &["requests.jsonl", "-o", output], "no regular file");
        assert_refused(&folder, &["requests.jsonl", "-o", output, "--resume"], "no regular file");
        assert_refused(
            &folder,
            &["requests.jsonl", "-o", "new.jsonl", "--errors", output],
            "no regular file",
        );
    }
}

#[test]
fn an_empty_file_and_files_of_an_earlier_run_are_ours() {
    let (folder, server) = (Sandbox::new(), server());
    write(&folder, "requests.jsonl", format!("{}\nnonsense\n", request("a")));
    write(&folder, "results.jsonl", "");
    write(&folder, "results.jsonl.errors.jsonl", "");
    assert_eq!(run(&folder, &server.url, &[]).exit, 1, "a line is no request");
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
    write(&folder, "real.jsonl", "{\"id\":\"a\",\"status\":\"failed\"}\n");
    std::os::unix::fs::symlink("real.jsonl", folder.path().join("results.jsonl")).unwrap();
    let retried = run(&folder, &server.url, &["--resume", "--retry-failed"]);
    assert_eq!(retried.exit, 0, "{retried:?}");
    assert!(std::fs::symlink_metadata(folder.path().join("results.jsonl")).unwrap().is_symlink());
    let results = lines(&folder, "real.jsonl");
    assert_eq!((results.len(), &results[0]["status"]), (1, &"done".into()));
}

#[test]
fn a_full_disk_leaves_what_is_said_to_be_done() {
    let (folder, server) = (Sandbox::new(), server());
    let requests: String = (0..400).map(|number| request(&format!("r{number}")) + "\n").collect();
    write(&folder, "requests.jsonl", requests);
    // A file that may have so many blocks of 512 bytes at most, and no more.
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
