//! A batch that is killed over and over, and resumed.

use std::collections::{BTreeSet, HashSet};

use crate::child::{ITEMS, Task};
use tollgate_batch::journal::Journal;

const KILLS: u64 = 200;

/// Returns the finished ids of the file.
fn finished(path: &std::path::Path) -> HashSet<String> {
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
    let memory = std::path::Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let folder = parent.join(format!("tollgate-batch-kills-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("results.jsonl");
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let (mut killed, mut before) = (0, HashSet::new());
    for round in 0..=KILLS {
        let mut child = Task::start("resume", &folder);
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut lines = Vec::new();
        if round < KILLS {
            // Killed after a random number of lines, which is a random instant for the child.
            lines.extend(std::iter::from_fn(|| child.next()).take((random % 40) as usize));
            let ended = lines.last().is_some_and(|line| line == "end");
            killed += u64::from(!ended);
            lines.extend(child.kill());
        } else {
            lines.extend(child.rest());
            assert_eq!(lines.last().map(String::as_str), Some("end"));
        }
        let after = finished(&path);
        for id in ids(&lines, "call") {
            assert!(!before.contains(id), "round {round}: {id} was finished, and called again");
        }
        for id in ids(&lines, "outcome") {
            assert!(after.contains(id), "round {round}: {id} was returned, and is not on disk");
        }
        assert!(before.is_subset(&after), "round {round}: something finished is gone");
        before = after;
    }
    let all: BTreeSet<String> = (0..ITEMS).map(|at| at.to_string()).collect();
    assert!(all.iter().eq(finished(&path).into_iter().collect::<BTreeSet<_>>().iter()), "some are missing");
    assert!(killed >= KILLS / 2, "only {killed} were killed before their end");
    std::fs::remove_dir_all(&folder).unwrap();
}
