//! A batch that is killed over and over, and resumed.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use crate::child::{ITEMS, Task};
use tollgate::store::SplitMix64;
use tollgate_batch::journal::Journal;

const KILLS: u64 = 200;

/// Returns the finished ids of the file.
fn finished(path: &Path) -> HashSet<String> {
    let Ok(lines) = Journal::read(path) else { return HashSet::new() };
    let mut finished = HashSet::new();
    for line in lines {
        let line = line.unwrap();
        assert!(finished.insert(line.id.clone()), "{} is finished twice", line.id);
    }
    finished
}

fn ids<'a>(lines: &'a [String], verb: &str) -> impl Iterator<Item = &'a str> {
    let verb = format!("{verb} ");
    lines.iter().filter_map(move |line| line.strip_prefix(&verb))
}

pub(crate) fn killed_at_random_instants_and_resumed_200_times() {
    // A killed process loses nothing that it has written, synced or not, so the file may be in
    // memory, where syncs take no time.
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let folder = parent.join(format!("tollgate-batch-kills-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("results.jsonl");
    let mut random = SplitMix64::new(17);
    let (mut killed, mut before) = (0, HashSet::new());
    while killed < KILLS {
        let mut child = Task::start("resume", &folder);
        // The child is killed after a random number of lines, which is a random instant for it. How far it has come by then
        // depends on the machine; so a batch that is finished is checked, and the next one begins.
        let mut lines: Vec<String> =
            std::iter::from_fn(|| child.next()).take(random.below(40) as usize).collect();
        let is_over = lines.last().is_some_and(|line| line == "end");
        killed += u64::from(!is_over);
        lines.extend(child.kill());
        before = check_round(killed, &lines, before, &path);
        if is_over {
            assert_all_finished(&path);
            std::fs::remove_file(&path).unwrap();
            before.clear();
        }
    }
    let lines = Task::start("resume", &folder).rest();
    assert_eq!(lines.last().map(String::as_str), Some("end"));
    check_round(KILLS, &lines, before, &path);
    assert_all_finished(&path);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Checks what one run of the child reported against the ids that were finished before it and are after it, which it returns.
fn check_round(killed: u64, lines: &[String], before: HashSet<String>, path: &Path) -> HashSet<String> {
    let after = finished(path);
    for id in ids(lines, "call") {
        assert!(!before.contains(id), "kill {killed}: {id} was finished, and called again");
    }
    for id in ids(lines, "outcome") {
        assert!(after.contains(id), "kill {killed}: {id} was returned, and is not on disk");
    }
    assert!(before.is_subset(&after), "kill {killed}: something finished is gone");
    after
}

fn assert_all_finished(path: &Path) {
    let all: BTreeSet<String> = (0..ITEMS).map(|id| id.to_string()).collect();
    assert_eq!(all, finished(path).into_iter().collect::<BTreeSet<_>>(), "some are missing");
}
