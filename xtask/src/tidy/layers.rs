//! Allowed dependencies between crates.

use super::Violation;
use super::manifest;
use crate::metadata::Member;

/// The crates that a crate may use.
enum Allowed {
    Only(&'static [&'static str]),
    Everything,
}

/// The architecture as a table: a crate and the crates of this workspace it may use.
const LAYERS: [(&str, Allowed); 22] = [
    ("tollgate-core", Allowed::Only(&[])),
    ("tollgate-sys", Allowed::Only(&[])),
    ("tollgate-store", Allowed::Only(&["tollgate-core", "tollgate-sys"])),
    (
        "tollgate-file",
        Allowed::Only(&["tollgate-core", "tollgate-store", "tollgate-calendar", "tollgate-shm"]),
    ),
    ("tollgate-shm", Allowed::Only(&["tollgate-core", "tollgate-store", "tollgate-calendar"])),
    ("tollgate-redis", Allowed::Only(&["tollgate-core", "tollgate-store", "tollgate-calendar"])),
    ("tollgate-redis-local", Allowed::Only(&[])),
    ("tollgate-dynamo", Allowed::Only(&["tollgate-core", "tollgate-store", "tollgate-calendar"])),
    ("tollgate-dynamo-local", Allowed::Only(&["tollgate-store"])),
    ("tollgate-catalog", Allowed::Only(&["tollgate-core", "tollgate-store", "tollgate-calendar"])),
    ("tollgate-calendar", Allowed::Only(&["tollgate-core"])),
    (
        "tollgate",
        Allowed::Only(&[
            "tollgate-core",
            "tollgate-store",
            "tollgate-calendar",
            "tollgate-catalog",
            "tollgate-dynamo",
            "tollgate-file",
            "tollgate-redis",
            "tollgate-shm",
        ]),
    ),
    (
        "tollgate-open",
        Allowed::Only(&[
            "tollgate-store",
            "tollgate-dynamo",
            "tollgate-file",
            "tollgate-redis",
            "tollgate-shm",
        ]),
    ),
    (
        "tollgate-conformance",
        Allowed::Only(&[
            "tollgate",
            "tollgate-core",
            "tollgate-store",
            "tollgate-calendar",
            "tollgate-catalog",
        ]),
    ),
    ("tollgate-provider", Allowed::Only(&[])),
    ("tollgate-mock-provider", Allowed::Only(&["tollgate", "tollgate-provider"])),
    ("tollgate-batch", Allowed::Only(&["tollgate", "tollgate-provider", "tollgate-store"])),
    ("tollgate-cli", Allowed::Everything),
    ("tollgate-lambda", Allowed::Only(&["tollgate-core", "tollgate-dynamo", "tollgate-store"])),
    ("tollgate-python", Allowed::Everything),
    ("tollgate-bench", Allowed::Everything),
    ("xtask", Allowed::Everything),
];

/// Compares a member's normal dependencies with the table.
pub(crate) fn check(member: &Member, manifest: &str) -> Vec<Violation> {
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == member.name) else {
        let message = format!(
            "{} has no place among the layers, give it a row in xtask/src/tidy/layers.rs",
            member.name
        );
        return vec![Violation::new(&member.manifest, 1, message)];
    };
    let inside = member.dependencies.iter().filter(|dependency| is_ours(&dependency.name));
    let forbidden = inside.filter(|dependency| !allowed.permits(&dependency.name)).map(|dependency| {
        let message = format!("{} may not use {}, {}", member.name, dependency.name, allowed.advice());
        Violation::new(&member.manifest, line_of(manifest, &dependency.name), message)
    });
    forbidden.chain(core_stands_alone(member, manifest)).collect()
}

impl Allowed {
    fn permits(&self, name: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Only(names) => names.contains(&name),
        }
    }

    fn advice(&self) -> String {
        match self {
            Self::Everything => "it may use everything".to_owned(),
            Self::Only([]) => "it may use no other crate of the workspace".to_owned(),
            Self::Only(names) => format!("it may use {}", names.join(", ")),
        }
    }
}

fn core_stands_alone(member: &Member, manifest: &str) -> Vec<Violation> {
    if member.name != "tollgate-core" {
        return Vec::new();
    }
    let outside = member.dependencies.iter().filter(|dependency| !is_ours(&dependency.name));
    let forbidden = outside.filter(|dependency| !(dependency.name == "serde" && dependency.optional));
    forbidden
        .map(|dependency| {
            let message = format!(
                "tollgate-core depends on {}, it may have optional serde and nothing else",
                dependency.name
            );
            Violation::new(&member.manifest, line_of(manifest, &dependency.name), message)
        })
        .collect()
}

fn is_ours(name: &str) -> bool {
    name == "tollgate" || name == "xtask" || name.starts_with("tollgate-")
}

fn line_of(manifest: &str, dependency: &str) -> usize {
    manifest::dependencies(manifest)
        .iter()
        .find(|entry| entry.name == dependency)
        .map_or(1, |entry| entry.line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    fn found(name: &str, dependency: &str, optional: bool) -> Vec<String> {
        let member = Member {
            name: name.to_owned(),
            manifest: "Cargo.toml".to_owned(),
            dependencies: vec![Dependency { name: dependency.to_owned(), optional }],
            ..Member::default()
        };
        let manifest = format!("[dependencies]\n{dependency}.workspace = true\n");
        check(&member, &manifest).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_arrow_that_points_up_is_caught_with_its_line() {
        let said =
            "Cargo.toml:2: tollgate-store may not use tollgate, it may use tollgate-core, tollgate-sys";
        assert_eq!(found("tollgate-store", "tollgate", false), [said]);
        assert_eq!(found("tollgate", "tollgate-batch", true).len(), 1);
        assert_eq!(found("tollgate-core", "tollgate-store", false).len(), 1);
    }

    #[test]
    fn arrows_that_point_down_pass() {
        assert_eq!(found("tollgate-store", "tollgate-core", false), [""; 0]);
        assert_eq!(found("tollgate-batch", "tollgate", false), [""; 0]);
        assert_eq!(found("tollgate", "tollgate-file", true), [""; 0]);
        assert_eq!(found("tollgate-file", "tollgate-calendar", false), [""; 0]);
        assert_eq!(found("tollgate-cli", "tollgate-redis", false), [""; 0]);
        assert_eq!(found("tollgate-store", "parking_lot", false), [""; 0]);
    }

    #[test]
    fn core_may_have_optional_serde_and_nothing_else() {
        assert_eq!(found("tollgate-core", "serde", true), [""; 0]);
        assert_eq!(found("tollgate-core", "serde", false).len(), 1);
        assert_eq!(found("tollgate-core", "smallvec", true).len(), 1);
    }

    #[test]
    fn a_crate_without_a_row_is_caught() {
        assert!(found("tollgate-extra", "anyhow", false)[0].contains("layers.rs"));
    }
}
