//! The Python package beside packages from PyPI.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::options::Effort;
use crate::result::{BenchResult, Threshold};

/// The environment variable with an interpreter that has the package and its peers; `cargo xtask bench` sets it.
const INTERPRETER: &str = "TOLLGATE_BENCH_PYTHON";

/// The program that measures a row, below the root of the repository.
const PROGRAM: &str = "python/benches/rows.py";

/// A row that is measured by an interpreter of Python.
pub(crate) struct PythonRow {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) peer: Option<&'static str>,
    pub(crate) bar: Option<Threshold>,
}

impl PythonRow {
    pub(crate) fn measure(&self, effort: &Effort) -> Result<BenchResult> {
        let interpreter = std::env::var_os(INTERPRETER)
            .with_context(|| format!("{INTERPRETER} is not set; `cargo xtask bench` sets it"))?;
        let row = self.name.rsplit('/').next().unwrap_or(self.name);
        let output = Command::new(interpreter).arg(PROGRAM).arg(row).arg(effort.rounds.to_string()).output();
        let output = output.context("the interpreter cannot be started")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        let reading: Value = serde_json::from_slice(&output.stdout).context("the program printed no JSON")?;
        Ok(BenchResult {
            name: self.name.to_owned(),
            unit: self.unit,
            ours: reading["ours"].as_f64(),
            peer: self.peer.zip(reading["peer"].as_f64()),
            bar: self.bar,
            detail: reading["detail"].as_str().unwrap_or_default().to_owned(),
            ..BenchResult::default()
        })
    }
}
