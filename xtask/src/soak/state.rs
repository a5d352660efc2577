//! The state of a soak, so that an interrupted one can be resumed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// The runs of each binary, by its name and hash.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SoakState(BTreeMap<String, Runs>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Runs {
    count: u64,
    millis: u64,
    failures: Vec<String>,
}

impl SoakState {
    /// Reads the state of these binaries. Entries of other builds are dropped.
    pub(super) fn load(path: &Path, keys: &[String]) -> Result<SoakState> {
        let Ok(text) = fs::read_to_string(path) else { return Ok(SoakState::default()) };
        let remedy = || format!("{} cannot be parsed; remove it to start over", path.display());
        let value: Value = serde_json::from_str(&text).with_context(remedy)?;
        let mut state = SoakState::parse(&value).with_context(remedy)?;
        let names: Vec<&str> = keys.iter().filter_map(|key| key.split(' ').next()).collect();
        // Entries that were not selected this time stay, unless there is another build of them.
        state.0.retain(|key, _| {
            keys.contains(key) || key.split(' ').next().is_some_and(|name| !names.contains(&name))
        });
        Ok(state)
    }

    fn parse(value: &Value) -> Option<SoakState> {
        let runs = |value: &Value| {
            let failures =
                value["failures"].as_array()?.iter().map(|failure| failure.as_str().map(String::from));
            let count = value["runs"].as_u64()?;
            let millis = value["millis"].as_u64()?;
            Some(Runs { count, millis, failures: failures.collect::<Option<_>>()? })
        };
        let all = value.as_object()?.iter().map(|(key, value)| Some((key.clone(), runs(value)?)));
        all.collect::<Option<_>>().map(SoakState)
    }

    /// Replaces the file atomically.
    pub(super) fn save(&self, path: &Path) -> Result<()> {
        let runs = |(key, runs): (&String, &Runs)| {
            let Runs { count, millis, failures } = runs;
            (key.clone(), json!({ "runs": count, "millis": millis, "failures": failures }))
        };
        let text = Value::Object(self.0.iter().map(runs).collect()).to_string();
        let beside = path.with_extension("new");
        fs::write(&beside, text).with_context(|| format!("cannot write {}", beside.display()))?;
        fs::rename(&beside, path).with_context(|| format!("cannot write {}", path.display()))
    }

    fn of(&self, key: &str) -> Runs {
        self.0.get(key).cloned().unwrap_or_default()
    }

    /// Returns the next run: the index of the binary among the keys, and the number of the run. The binary with the fewest runs
    /// comes first, so that each was run once before any is run twice; those in `running` are skipped.
    pub(super) fn next(&self, keys: &[String], times: u64, running: &[usize]) -> Option<(usize, u64)> {
        let counts = keys.iter().map(|key| self.of(key).count).enumerate();
        let counts = counts.filter(|(place, _)| !running.contains(place));
        let (place, count) = counts.min_by_key(|(_, count)| *count)?;
        (count < times).then_some((place, count + 1))
    }

    /// Returns how many runs are left.
    pub(super) fn left(&self, keys: &[String], times: u64) -> u64 {
        keys.iter().map(|key| times.saturating_sub(self.of(key).count)).sum()
    }

    /// Adds a run.
    pub(super) fn add(&mut self, key: &str, millis: u64, failure: Option<String>) {
        let runs = self.0.entry(key.to_owned()).or_default();
        runs.count += 1;
        runs.millis += millis;
        runs.failures.extend(failure);
    }

    /// Returns how many runs were made, and their total time in milliseconds.
    pub(super) fn done(&self, keys: &[String]) -> (u64, u64) {
        let runs = keys.iter().map(|key| self.of(key));
        runs.fold((0, 0), |(count, millis), runs| (count + runs.count, millis + runs.millis))
    }

    /// Returns the failures.
    pub(super) fn failures(&self, keys: &[String]) -> Vec<String> {
        keys.iter().flat_map(|key| self.of(key).failures).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn each_binary_is_run_once_before_any_is_run_twice() {
        let keys = keys(&["a 1", "b 1"]);
        let mut state = SoakState::default();
        let mut order = Vec::new();
        while let Some((place, round)) = state.next(&keys, 2, &[]) {
            order.push((place, round, state.left(&keys, 2)));
            state.add(&keys[place], 10, None);
        }
        assert_eq!(order, [(0, 1, 4), (1, 1, 3), (0, 2, 2), (1, 2, 1)]);
        assert_eq!((state.left(&keys, 2), state.done(&keys)), (0, (4, 40)));
        assert_eq!(state.next(&keys, 3, &[]), Some((0, 3)));
        assert_eq!(state.next(&keys, 3, &[0]), Some((1, 3)), "no binary runs twice at once");
    }

    #[test]
    fn a_failure_is_a_run_and_is_remembered() {
        let keys = keys(&["a 1", "b 1"]);
        let mut state = SoakState::default();
        state.add("a 1", 5, Some("it hung".to_owned()));
        assert_eq!(
            (state.next(&keys, 1, &[]), state.failures(&keys)),
            (Some((1, 1)), vec!["it hung".to_owned()])
        );
    }

    #[test]
    fn another_process_resumes_the_soak_unless_the_binary_has_changed() {
        let path = std::env::temp_dir().join(format!("tollgate-soak-{}.json", std::process::id()));
        let mut state = SoakState::default();
        assert_eq!(SoakState::load(&path, &keys(&["a 1"])).unwrap(), state);
        state.add("a 1", 5, Some("it \"hung\"".to_owned()));
        state.add("b 1", 7, None);
        state.save(&path).unwrap();
        assert_eq!(SoakState::load(&path, &keys(&["a 1", "b 1"])).unwrap(), state);
        // Entries that were not selected stay, and a new build starts over.
        let chosen = SoakState::load(&path, &keys(&["b 2"])).unwrap();
        assert_eq!((chosen.done(&keys(&["a 1"])), chosen.done(&keys(&["b 1", "b 2"]))), ((1, 5), (0, 0)));
        fs::write(&path, "{ torn").unwrap();
        assert!(SoakState::load(&path, &[]).unwrap_err().to_string().contains("remove it"));
        fs::remove_file(&path).unwrap();
    }
}
