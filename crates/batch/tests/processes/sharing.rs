//! Two processes that share a cooldown through a file.

use crate::child::Task;

pub(crate) fn a_429_in_one_process_stops_another_after_the_first_is_gone() {
    let folder = std::env::temp_dir().join(format!("tollgate-batch-sharing-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut hears = Task::start("hear", &folder);
    let mut said = vec![hears.next().unwrap()];
    let mut meets = Task::start("meet", &folder);
    assert_eq!(meets.next().as_deref(), Some("met"));
    meets.kill();
    said.extend(hears.rest());
    let place = |word: &str| {
        said.iter().position(|line| line == word).unwrap_or_else(|| panic!("no {word}: {said:?}"))
    };
    let (cooling, cooled) = (place("cooling"), place("cooled"));
    assert!(said[..cooling].contains(&"start".to_owned()));
    assert!(
        !said[cooling..cooled].contains(&"start".to_owned()),
        "started in the cooldown of another process"
    );
    assert!(said.contains(&"end".to_owned()));
    std::fs::remove_dir_all(&folder).unwrap();
}
