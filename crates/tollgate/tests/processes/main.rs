//! Several processes on one file, really started and really killed.
//!
//! This program is its own child: what it does is set by its environment. So it has a main of its own, and runs its
//! tests itself.
#![allow(
    clippy::print_stdout,
    reason = "children talk to their parent, and a test runner to whoever started it"
)]

mod child;
mod family;
mod history;
#[cfg(target_os = "linux")]
mod order;
mod tests;

use std::panic::catch_unwind;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(task) = child::Task::given() {
        task.run();
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted = arguments.iter().find(|argument| !argument.starts_with('-')).cloned().unwrap_or_default();
    let chosen = tests::ALL.iter().filter(|(name, _)| name.contains(&wanted));
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
