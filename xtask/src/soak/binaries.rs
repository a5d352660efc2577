//! The test binaries that a soak runs.

use std::path::Path;

use anyhow::Result;

use crate::test_binaries::{self, Binary};

/// Packages whose tests start no processes or threads, so that load does not affect them.
const PURE: [&str; 4] = ["tollgate-core", "tollgate-calendar", "tollgate-provider", "xtask"];

/// Binaries of other packages whose tests run in simulated time on one thread.
const SIMULATED: [&str; 4] =
    ["tollgate-batch/chaos", "tollgate-batch/goals", "tollgate-batch/numbers", "tollgate-batch/sweep"];

/// The build profile: optimised a little, with all checks of a test.
const PROFILE: &str = "soak";

/// Builds all tests, and returns those that may depend on timing, by name.
pub(super) fn build(root: &Path) -> Result<Vec<Binary>> {
    let mut binaries = test_binaries::build(root, PROFILE)?;
    binaries.retain(|binary| !is_pure(&binary.name));
    Ok(binaries)
}

fn is_pure(name: &str) -> bool {
    SIMULATED.contains(&name) || name.split_once('/').is_some_and(|(package, _)| PURE.contains(&package))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{metadata, repo};

    #[test]
    fn only_tests_that_may_depend_on_timing_are_run() {
        let names =
            ["tollgate-cli/sessions", "tollgate-core/all", "tollgate-batch/sweep", "tollgate-batch/journal"];
        let kept: Vec<&str> = names.into_iter().filter(|name| !is_pure(name)).collect();
        assert_eq!(kept, ["tollgate-cli/sessions", "tollgate-batch/journal"]);
    }

    #[test]
    fn every_pure_package_is_one_of_the_workspace() {
        let members = metadata::load(&repo::root().unwrap()).unwrap().members;
        for pure in PURE {
            assert!(members.iter().any(|member| member.name == pure), "{pure}");
        }
    }
}
