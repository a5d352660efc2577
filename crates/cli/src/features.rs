//! Features: parts of the program that a build may leave out. A build without one still knows its commands and the addresses of
//! its stores, and reports how to install it.

/// A feature of this crate, with what it adds to the program.
struct Feature {
    name: &'static str,
    /// Whether this build has it.
    is_built: bool,
    /// Whether it is one of the default features in `Cargo.toml`.
    is_default: bool,
    commands: &'static [&'static str],
}

const FEATURES: [Feature; 6] = [
    Feature { name: "batch", is_built: cfg!(feature = "batch"), is_default: true, commands: &["batch"] },
    Feature {
        name: "dynamodb",
        is_built: cfg!(feature = "dynamodb"),
        is_default: false,
        commands: &["aggregate"],
    },
    Feature { name: "local", is_built: cfg!(feature = "local"), is_default: false, commands: &["local"] },
    Feature {
        name: "mock-provider",
        is_built: cfg!(feature = "mock-provider"),
        is_default: true,
        commands: &["demo", "mock-provider"],
    },
    Feature { name: "redis", is_built: cfg!(feature = "redis"), is_default: true, commands: &[] },
    Feature {
        name: "shm",
        is_built: cfg!(all(feature = "shm", target_os = "linux")),
        is_default: true,
        commands: &[],
    },
];

/// Returns the commands that this build leaves out, each with the error that names its feature and how to install it.
pub(crate) fn missing_commands() -> impl Iterator<Item = (&'static str, String)> {
    let missing = FEATURES.iter().filter(|feature| !feature.is_built);
    missing.flat_map(|feature| {
        let why = |command: &&'static str| (*command, feature.missing(&format!("the command `{command}`")));
        feature.commands.iter().map(why)
    })
}

/// Returns the error for the address of a store whose feature this build leaves out.
pub(crate) fn missing_store(scheme: &str, feature: &str) -> Option<String> {
    let feature = FEATURES.iter().find(|known| known.name == feature && !known.is_built)?;
    Some(feature.missing(&format!("a store at `{scheme}:`")))
}

impl Feature {
    /// Returns the error for `what` in a build without the feature.
    fn missing(&self, what: &str) -> String {
        format!(
            "{what} needs the feature `{}`, which this build leaves out; install it: {}",
            self.name,
            install(self.name, |feature| feature.is_built)
        )
    }
}

/// Returns the command that installs a build with one more feature. `is_built` are those of this build, which it keeps.
fn install(name: &str, is_built: impl Fn(&Feature) -> bool) -> String {
    let is_wanted = |feature: &&Feature| feature.name == name || (is_built(feature) && !feature.is_default);
    let names: Vec<&str> = FEATURES.iter().filter(is_wanted).map(|feature| feature.name).collect();
    format!("cargo install --path crates/cli --features {}", names.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::parse_store;

    const MANIFEST: &str = include_str!("../Cargo.toml");

    /// Returns the features of the manifest, each with those that it enables.
    fn manifest() -> Vec<(&'static str, &'static str)> {
        let lines = MANIFEST.lines().skip_while(|line| *line != "[features]").skip(1);
        lines.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split_once(" = ")).collect()
    }

    #[test]
    fn the_table_is_that_of_the_manifest() {
        let manifest = manifest();
        let (_, defaults) = manifest.iter().find(|(name, _)| *name == "default").unwrap();
        let named: Vec<&str> =
            manifest.iter().map(|(name, _)| *name).filter(|name| *name != "default").collect();
        let mut known: Vec<&str> = FEATURES.iter().map(|feature| feature.name).collect();
        known.sort_unstable();
        let mut sorted = named.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, known);
        for feature in &FEATURES {
            assert_eq!(
                defaults.contains(&format!("\"{}\"", feature.name)),
                feature.is_default,
                "{}",
                feature.name
            );
        }
    }

    #[test]
    fn what_is_installed_keeps_the_features_that_were_asked_for_before() {
        let line = |built: &[&str], missing: &str| install(missing, |feature| built.contains(&feature.name));
        let install = "cargo install --path crates/cli --features";
        assert_eq!(line(&["batch", "redis"], "dynamodb"), format!("{install} dynamodb"));
        assert_eq!(line(&["batch", "dynamodb"], "local"), format!("{install} dynamodb,local"));
        assert_eq!(line(&[], "redis"), format!("{install} redis"));
    }

    #[test]
    fn a_store_is_missing_exactly_if_its_feature_is() {
        for (url, name) in [
            ("shm:limits", "shm"),
            ("redis://127.0.0.1", "redis"),
            ("valkeys+cluster://127.0.0.1", "redis"),
            ("dynamodb:limits", "dynamodb"),
        ] {
            let feature = FEATURES.iter().find(|feature| feature.name == name).unwrap();
            let why = parse_store(url).err();
            assert_eq!(why.is_none(), feature.is_built, "{url}: {why:?}");
            let is_explained = |why: String| why.contains("cargo install") || why.contains("needs Linux");
            assert!(why.is_none_or(is_explained), "{url}");
        }
    }
}
