//! The members of the workspace, from `cargo metadata --no-deps`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command::Cargo;

/// The part of the metadata the commands use.
pub(crate) struct Metadata {
    pub(crate) target_directory: PathBuf,
    pub(crate) members: Vec<Member>,
}

/// One package of the workspace.
#[derive(Default)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) description: String,
    /// Its manifest from the root of the repository, with forward slashes.
    pub(crate) manifest: String,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) examples: Vec<Example>,
}

/// A normal dependency: neither for tests nor for a build script.
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) optional: bool,
}

/// One example program of a package.
pub(crate) struct Example {
    pub(crate) name: String,
    pub(crate) source: PathBuf,
}

/// Reads the metadata of the workspace at `root`.
pub(crate) fn load(root: &Path) -> Result<Metadata> {
    let json = Cargo::new(["metadata", "--no-deps", "--format-version", "1"]).output(root)?;
    let value: Value = serde_json::from_str(&json).context("cargo metadata wrote no JSON")?;
    parse(root, &value).context("cargo metadata has another shape than expected")
}

fn parse(root: &Path, value: &Value) -> Option<Metadata> {
    let members = value["packages"].as_array()?.iter().map(|package| member(root, package));
    Some(Metadata {
        target_directory: value["target_directory"].as_str()?.into(),
        members: members.collect::<Option<_>>()?,
    })
}

fn member(root: &Path, package: &Value) -> Option<Member> {
    let manifest = Path::new(package["manifest_path"].as_str()?);
    let relative = manifest.strip_prefix(root).unwrap_or(manifest);
    let dependencies = package["dependencies"].as_array()?.iter();
    let examples = package["targets"].as_array()?.iter().filter(|target| target["kind"][0] == "example");
    Some(Member {
        name: package["name"].as_str()?.to_owned(),
        description: package["description"].as_str().unwrap_or_default().to_owned(),
        manifest: relative.to_string_lossy().replace('\\', "/"),
        dependencies: dependencies
            .filter(|dependency| dependency["kind"].is_null())
            .map(dependency)
            .collect::<Option<_>>()?,
        examples: examples.map(example).collect::<Option<_>>()?,
    })
}

fn dependency(value: &Value) -> Option<Dependency> {
    Some(Dependency { name: value["name"].as_str()?.to_owned(), optional: value["optional"].as_bool()? })
}

fn example(target: &Value) -> Option<Example> {
    Some(Example { name: target["name"].as_str()?.to_owned(), source: target["src_path"].as_str()?.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn development_dependencies_are_not_normal_ones() {
        let package = serde_json::json!({
            "name": "tollgate-core", "manifest_path": "/r/crates/core/Cargo.toml", "targets": [],
            "dependencies": [
                { "name": "serde", "kind": null, "optional": true },
                { "name": "proptest", "kind": "dev", "optional": false },
            ],
        });
        let member = member(Path::new("/r"), &package).unwrap();
        assert_eq!(member.manifest, "crates/core/Cargo.toml");
        assert_eq!(member.dependencies.len(), 1);
        assert!(member.dependencies[0].optional);
    }
}
