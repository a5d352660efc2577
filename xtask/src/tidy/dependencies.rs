//! Every dependency is named once, in `[workspace.dependencies]`, but crates that a published one needs for its tests and that depend on
//! it: they are a path without a version.

use super::{Violation, manifest};

/// Requires `workspace = true` of every dependency of a member.
pub(crate) fn check(path: &str, text: &str) -> Vec<Violation> {
    let strays = manifest::dependencies(text)
        .into_iter()
        .filter(|dependency| !dependency.from_workspace && !dependency.is_unpublished);
    strays
        .map(|dependency| {
            let message = format!(
                "{name} is specified here, name it in [workspace.dependencies] and write `{name}.workspace = true`",
                name = dependency.name,
            );
            Violation::new(path, dependency.line, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_or_a_path_of_its_own_is_caught() {
        for stray in ["serde = \"1\"", "serde = { version = \"1\" }", "serde = { path = \"../serde\" }"] {
            let found = check("Cargo.toml", &format!("[dependencies]\n{stray}\n"));
            assert_eq!(found.len(), 1, "{stray}");
            assert_eq!(found[0].line, 2);
        }
    }

    #[test]
    fn a_path_without_a_version_is_for_tests_only() {
        let text =
            |table: &str, more: &str| format!("[{table}]\ntollgate = {{ path = \"../tollgate\"{more} }}\n");
        assert_eq!(check("Cargo.toml", &text("dev-dependencies", "")), []);
        assert_eq!(check("Cargo.toml", &text("dev-dependencies", ", version = \"1\"")).len(), 1);
        assert_eq!(check("Cargo.toml", &text("dependencies", "")).len(), 1);
    }

    #[test]
    fn features_may_be_added_to_the_workspace_s_choice() {
        let text =
            "[dependencies]\ntokio = { workspace = true, features = [\"time\"] }\nserde.workspace = true\n";
        assert_eq!(check("Cargo.toml", text), []);
    }
}
