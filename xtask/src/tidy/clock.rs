//! The system clock is read in one place, so that tests can control it.

use super::{Violation, source};

/// The clock itself, the runtime's clock, which tests pause, and programs that measure others.
const MAY_READ: [&str; 6] = [
    "crates/sys/src/clock.rs",
    "crates/store/src/clock",
    "crates/batch/src/time.rs",
    "crates/batch/tests/",
    "crates/bench/",
    "xtask/",
];

/// Finds reads of a clock in code without comments and strings.
pub(crate) fn check(path: &str, code: &str) -> Vec<Violation> {
    if MAY_READ.iter().any(|prefix| path.starts_with(prefix)) {
        return Vec::new();
    }
    let reads =
        ["Instant::now", "SystemTime::now"].into_iter().flat_map(|call| source::lines_with_word(code, call));
    reads
        .map(|line| {
            Violation::new(path, line, "reads the system's clock, take the time from the store's Clock")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_read_elsewhere_is_caught() {
        let code = "let a = std::time::Instant::now();\nlet b = SystemTime::now();\n";
        assert_eq!(check("crates/tollgate/src/lease.rs", code).len(), 2);
        assert_eq!(check("crates/store/src/clock.rs", code), []);
        assert_eq!(check("crates/store/src/clock/system.rs", code), []);
        assert_eq!(check("crates/bench/src/race.rs", code), []);
    }

    #[test]
    fn other_nows_pass() {
        assert_eq!(check("crates/store/src/memory.rs", "let now = clock.now();\n"), []);
    }
}
