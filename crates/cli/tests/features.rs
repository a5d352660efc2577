//! A build without a feature names it, and the command that installs it. What a build has is decided when it is built, so each
//! assertion is about the features of this one.

mod support;

use support::sandbox::Sandbox;

/// Each feature, whether this build has it, and a command line that needs it.
const USES: [(&str, bool, &[&str]); 8] = [
    ("batch", cfg!(feature = "batch"), &["batch", "run", "--help"]),
    ("dynamodb", cfg!(feature = "dynamodb"), &["aggregate", "--once", "--archive", "-x"]),
    ("dynamodb", cfg!(feature = "dynamodb"), &["--store", "dynamodb:x?", "status"]),
    ("local", cfg!(feature = "local"), &["local", "up", "--help"]),
    ("mock-provider", cfg!(feature = "mock-provider"), &["mock-provider", "--help"]),
    ("mock-provider", cfg!(feature = "mock-provider"), &["demo", "--help"]),
    ("redis", cfg!(feature = "redis"), &["--store", "redis+sentinel://127.0.0.1:1", "status"]),
    ("shm", cfg!(all(feature = "shm", target_os = "linux")), &["--store", "shm:", "status"]),
];

#[test]
fn what_a_build_leaves_out_says_how_to_install_it() {
    for (feature, is_built, words) in USES {
        let ran = Sandbox::new().tollgate(words);
        let line = format!("needs the feature `{feature}`");
        let shown = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(shown.contains(&line), !is_built, "{words:?}: {shown}");
        if !is_built {
            assert_eq!(ran.exit, 2, "{words:?}: {shown}");
            assert!(shown.contains("cargo install --path crates/cli --features "), "{shown}");
            assert!(shown.contains(feature), "{shown}");
        }
    }
}

#[test]
fn the_error_is_one_object_for_programs() {
    for (feature, is_built, words) in USES {
        if is_built {
            continue;
        }
        let ran = Sandbox::new().tollgate(&[&["--json"], words].concat());
        let value: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(
            (value["error"]["kind"].as_str(), value["error"]["exit"].as_u64()),
            (Some("usage"), Some(2))
        );
        assert!(value["error"]["message"].as_str().unwrap().contains(&format!("`{feature}`")), "{value}");
    }
}
