//! Two processes that share a cooldown through a file.

use crate::child::Task;

pub(crate) fn a_429_in_one_process_stops_another_after_the_first_is_gone() {
    let folder = std::env::temp_dir().join(format!("tollgate-batch-sharing-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut observer = Task::start("observe", &folder);
    let mut output = vec![observer.next().unwrap()];
    let mut throttled = Task::start("meet", &folder);
    assert_eq!(throttled.next().as_deref(), Some("met"));
    throttled.kill();
    output.extend(observer.rest());
    let position = |word: &str| {
        output.iter().position(|line| line == word).unwrap_or_else(|| panic!("no {word}: {output:?}"))
    };
    let (cooling, cooled) = (position("cooling"), position("cooled"));
    assert!(output[..cooling].contains(&"start".to_owned()));
    assert!(
        !output[cooling..cooled].contains(&"start".to_owned()),
        "started in the cooldown of another process"
    );
    assert!(output.contains(&"end".to_owned()));
    std::fs::remove_dir_all(&folder).unwrap();
}
