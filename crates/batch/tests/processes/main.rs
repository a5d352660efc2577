//! Batches in child processes that are killed.
//!
//! This program is its own child: an environment variable selects the role. So it has a `main` of
//! its own, and runs its tests itself.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "children print to their parent, and all of it is a test"
)]

mod child;
mod kills;
mod sharing;

use std::panic::catch_unwind;
use std::process::ExitCode;

type Test = (&'static str, fn());

const ALL: [Test; 2] = [
    (
        "killed_at_random_instants_and_resumed_200_times",
        kills::killed_at_random_instants_and_resumed_200_times,
    ),
    (
        "a_429_in_one_process_stops_another_after_the_first_is_gone",
        sharing::a_429_in_one_process_stops_another_after_the_first_is_gone,
    ),
];

fn main() -> ExitCode {
    if let Some(task) = child::Task::given() {
        task.run();
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted = arguments.iter().find(|argument| !argument.starts_with('-')).cloned().unwrap_or_default();
    let chosen = ALL.into_iter().filter(|(name, _)| name.contains(&wanted));
    if arguments.iter().any(|argument| argument == "--list") {
        chosen.for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (name, test) in chosen {
        let passed = catch_unwind(test).is_ok();
        failed += u32::from(!passed);
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
