//! The Python package: its wheel, and its tests in an environment of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::{Cargo, PROGRAMS};
use crate::metadata;
use crate::python::Python;

/// What the tests of the package use beside it. None of it is a dependency of the package.
const TEST_PACKAGES: [&str; 12] = [
    "anthropic==2.*",
    "cloudpickle==3.*",
    "httpx==0.28.*",
    "hypothesis==6.*",
    "mypy==2.*",
    "numpy",
    "openai==3.*",
    "pyright==1.*",
    "pytest-timeout==2.*",
    "pytest==8.*",
    "trio",
    "uvloop",
];

/// Builds the wheel, installs it into an environment below the target directory, and runs its tests.
pub(crate) fn test(root: &Path) -> Result<()> {
    let target = metadata::load(root)?.target_directory;
    Cargo::workspace("build").args(["--lib"]).args(PROGRAMS).run(root)?;
    let wheel = pack(root, &target.join("debug/lib_core.so"), &target.join("wheels"))?;
    let python = Python::with(root, "python", &TEST_PACKAGES)?;
    python.install(root, &wheel)?;
    let mut pytest = python.command("python");
    pytest.args(["-m", "pytest", "--quiet", "--timeout=300", "python/tests"]).current_dir(root);
    if !pytest.env("PYTHONDONTWRITEBYTECODE", "1").status().context("pytest cannot be started")?.success() {
        bail!("the tests of the Python package failed");
    }
    Ok(())
}

/// Packs the library that cargo has built.
fn pack(root: &Path, library: &Path, folder: &Path) -> Result<PathBuf> {
    let mut pack = Command::new("python3");
    pack.arg("xtask/python/make_wheel.py").arg("python/pyproject.toml").arg(library);
    pack.arg(env!("CARGO_PKG_VERSION")).arg(folder).current_dir(root);
    let packed = pack.output().context("python3 cannot be started; this step needs it")?;
    if !packed.status.success() {
        bail!("the wheel cannot be packed: {}", String::from_utf8_lossy(&packed.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&packed.stdout).trim().into())
}
