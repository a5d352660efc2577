//! The test binaries of the workspace.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command::Cargo;

/// A program that runs tests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Binary {
    /// Its package and its target, such as `tollgate-cli/sessions`; `lib` and `bin` are the tests within the source.
    pub(crate) name: String,
    pub(crate) executable: PathBuf,
    /// The directory of its package, in which cargo would run it.
    pub(crate) folder: PathBuf,
}

/// Builds all tests in a profile of cargo, and returns their binaries by name.
pub(crate) fn build(root: &Path, profile: &str) -> Result<Vec<Binary>> {
    let cargo = Cargo::workspace("test").args(["--no-run", "--profile", profile, "--message-format", "json"]);
    // Cargo's progress is shown on the terminal.
    let mut binaries = parse(&cargo.answer(root)?)?;
    binaries.sort_by(|one, two| one.name.cmp(&two.name));
    Ok(binaries)
}

fn parse(messages: &str) -> Result<Vec<Binary>> {
    let mut binaries = Vec::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line).context("cargo wrote no JSON")?;
        binaries.extend(binary_of(&message));
    }
    Ok(binaries)
}

/// Returns the test binary of a message of cargo, if it has one.
fn binary_of(message: &Value) -> Option<Binary> {
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let executable = message["executable"].as_str().filter(|_| is_test)?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let target = match message["target"]["kind"][0].as_str()? {
        kind @ ("lib" | "bin") => kind,
        _ => message["target"]["name"].as_str()?,
    };
    let name = format!("{}/{target}", package_of(message["package_id"].as_str()?));
    Some(Binary { name, executable: executable.into(), folder: folder.into() })
}

/// Returns the package name in an id such as `path+file:///r/crates/cli#tollgate-cli@0.1.0`, where a package that is named as its folder
/// leaves its name out: `path+file:///r/xtask#0.1.0`.
fn package_of(id: &str) -> &str {
    let (path, rest) = id.split_once('#').unwrap_or((id, ""));
    match rest.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit('/').next().unwrap_or(path),
    }
}

impl Binary {
    /// Returns a hash of the file.
    pub(crate) fn hash(&self) -> Result<u64> {
        let bytes = fs::read(&self.executable);
        Ok(hash(&bytes.with_context(|| format!("cannot read {}", self.executable.display()))?))
    }
}

/// Hashes a word at a time, because there are gigabytes. The hash need not resist attacks.
fn hash(bytes: &[u8]) -> u64 {
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(mix(0, bytes.len() as u64), mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(package: &str, kind: &str, target: &str, test: bool) -> String {
        serde_json::json!({
            "reason": "compiler-artifact",
            "package_id": format!("path+file:///r/crates/x#{package}@0.1.0"),
            "manifest_path": "/r/crates/x/Cargo.toml",
            "target": { "kind": [kind], "name": target },
            "profile": { "test": test },
            "executable": format!("/r/target/{target}"),
        })
        .to_string()
    }

    #[test]
    fn only_test_binaries_are_found() {
        let messages = [
            message("tollgate-cli", "test", "sessions", true),
            message("tollgate-cli", "bin", "tollgate", false),
            message("tollgate-cli", "bin", "tollgate", true),
            message("tollgate-store", "lib", "tollgate_store", true),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let binaries = parse(&messages.join("\n")).unwrap();
        let names: Vec<&str> = binaries.iter().map(|binary| binary.name.as_str()).collect();
        assert_eq!(names, ["tollgate-cli/sessions", "tollgate-cli/bin", "tollgate-store/lib"]);
        assert_eq!(binaries[0].executable, Path::new("/r/target/sessions"));
        assert_eq!(binaries[0].folder, Path::new("/r/crates/x"));
        assert!(parse("no json").is_err());
    }

    #[test]
    fn a_package_is_known_by_its_id() {
        assert_eq!(package_of("path+file:///r/crates/cli#tollgate-cli@0.1.0"), "tollgate-cli");
        assert_eq!(package_of("path+file:///r/xtask#0.1.0"), "xtask");
    }

    #[test]
    fn a_byte_more_or_another_byte_is_another_hash() {
        let hashes =
            [&b""[..], b"\0", b"\0\0", b"abcdefgh", b"abcdefgh\0", b"abcdefgi", b"babcdefg"].map(hash);
        for (place, one) in hashes.iter().enumerate() {
            assert!(hashes[..place].iter().all(|two| one != two), "{place}");
        }
    }
}
