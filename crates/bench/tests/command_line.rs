//! The command line. Rows that measure memory need a separate process anyway.

use std::process::{Command, Output};

fn bench(line: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_tollgate-bench");
    Command::new(program).args(line.split_whitespace()).output().expect("cargo built it for this test")
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn help_and_list_succeed() {
    assert!(printed(&bench("--help")).contains("Examples:"));
    assert!(printed(&bench("--list")).lines().any(|name| name == "core/try_acquire-1-limit"));
}

#[test]
fn an_invalid_argument_exits_with_2() {
    let output = bench("--onyl core/");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--onyl"));
}

#[test]
fn memory_per_key_is_at_least_the_key_and_not_absurd() {
    for side in ["core/bytes-per-idle-key", "core/bytes-per-idle-key@governor"] {
        let output = bench(&format!("resident {side} 50000"));
        let bytes: f64 = printed(&output).trim().parse().unwrap();
        assert!((32.0..1000.0).contains(&bytes), "{side}: {bytes} bytes per key");
    }
}

#[test]
fn a_sweep_leaves_no_key() {
    let output = bench("resident core/bytes-after-sweep 50000");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn one_side_can_be_counted_and_an_unknown_side_is_named() {
    assert!(bench("count core/try_acquire-1-limit@governor 1000").status.success());
    let output = bench("count core/try_acquire-1-limit@nobody 1000");
    assert!(String::from_utf8_lossy(&output.stderr).contains("nobody"));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_run_prints_one_table_and_writes_what_it_printed() {
    let file = std::env::temp_dir().join(format!("tollgate-bench-{}.json", std::process::id()));
    let output = bench(&format!("--quick --only core/keyed-hot --json {}", file.display()));
    let written = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let rows: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(rows[0]["name"], "core/keyed-hot");
    // A head, and a line for each row; what is indented is about the row above.
    let lines = printed(&output).lines().filter(|line| !line.starts_with(' ')).count();
    assert_eq!(lines, 1 + rows.as_array().unwrap().len());
}
