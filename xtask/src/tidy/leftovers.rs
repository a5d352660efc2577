//! Nothing half done: no placeholder macros, no debugging output, no test that does not run.

use super::Violation;

/// Signs of unfinished work, and what to do instead.
const LEFTOVERS: [(&str, &str); 4] = [
    ("todo!", "finish it or return an error"),
    ("unimplemented!", "implement it or return an error"),
    ("dbg!", "remove it or use tracing"),
    ("#[ignore", "make the test run or remove it"),
];

/// Finds them in code without comments and strings.
pub(crate) fn check(path: &str, code: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (index, line) in code.lines().enumerate() {
        for (leftover, advice) in LEFTOVERS {
            if stands_alone(line, leftover) {
                found.push(Violation::new(path, index + 1, format!("`{leftover}` is left over, {advice}")));
            }
        }
    }
    found
}

/// `my_dbg!` is another macro.
fn stands_alone(line: &str, leftover: &str) -> bool {
    line.match_indices(leftover)
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source::code_only;

    #[test]
    fn each_leftover_is_caught_on_its_line() {
        let code = "todo!()\nunimplemented!()\nlet x = dbg!(y);\n#[ignore = \"slow\"]\n#[ignore]\n";
        let lines: Vec<usize> = check("a.rs", code).iter().map(|violation| violation.line).collect();
        assert_eq!(lines, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn talking_about_them_is_fine() {
        assert_eq!(check("a.rs", &code_only("// no todo! here\nlet s = \"dbg!\";\nmy_dbg!(x);\n")), []);
    }
}
