//! The command `tollgate`, in the process of the interpreter.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs a command line and returns its exit code. The first word is the name of the program.
#[pyfunction]
pub(crate) fn _run_command(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| tollgate_cli::run(words))
}
