//! The Python package: its wheel, and its tests in an environment of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::{Cargo, PROGRAMS};
use crate::metadata;
use crate::python::Python;

/// What the tests of the package use beside it. None of it is a dependency of the package.
const TEST_PACKAGES: [&str; 17] = [
    "anthropic==2.*",
    "async-batch-llm==0.28.0",
    "cloudpickle==3.*",
    "eventlet",
    "freezegun==1.*",
    "gevent",
    "httpx==0.28.*",
    "hypothesis==6.*",
    "mypy==2.*",
    "numpy",
    "openai==3.*",
    "pyright==1.*",
    "pytest-timeout==2.*",
    "pytest==8.*",
    "time-machine",
    "trio",
    "uvloop",
];

/// The versions that the wheel is for, each after `3.`.
const MINOR_VERSIONS: std::ops::RangeInclusive<u32> = 10..=13;

/// What the tests of Concurry need, and those of ours with Ray.
const CONCURRY_PACKAGES: [&str; 5] =
    ["concurry==0.13.2", "pytest-asyncio", "pytest-timeout==2.*", "pytest==8.*", "ray==2.*"];

/// Builds the wheel, installs it into an environment below the target directory, and runs its tests.
pub(crate) fn test(root: &Path) -> Result<()> {
    let wheel = build(root)?;
    run_tests(root, &wheel, &Python::with(root, "python", &TEST_PACKAGES)?)
}

/// As [`test()`], with every interpreter of this machine.
pub(crate) fn test_on_all(root: &Path) -> Result<()> {
    let wheel = build(root)?;
    let found: Vec<(u32, PathBuf)> =
        MINOR_VERSIONS.filter_map(|minor| Some((minor, interpreter(minor)?))).collect();
    if found.is_empty() {
        bail!("there is no Python from 3.10 to 3.13, neither in PATH nor of pyenv");
    }
    for (minor, interpreter) in found {
        println!("Python 3.{minor}: {}", interpreter.display());
        let name = format!("python-3.{minor}");
        run_tests(root, &wheel, &Python::of(&interpreter, root, &name, &TEST_PACKAGES)?)?;
    }
    run_concurry(root, &wheel)
}

/// Runs the tests of Concurry on our limits, and ours with Ray.
fn run_concurry(root: &Path, wheel: &Path) -> Result<()> {
    let python = Python::with(root, "python-concurry", &CONCURRY_PACKAGES)?;
    python.install(root, wheel)?;
    let ray: &[&str] = &["-m", "pytest", "--quiet", "--timeout=600", "python/tests/test_concurry_ray.py"];
    for arguments in [ray, &["python/tests/concurry_overlay/run.py"]] {
        let mut program = python.command("python");
        program.args(arguments).current_dir(root).env("PYTHONDONTWRITEBYTECODE", "1");
        if !program.status().context("python cannot be started")?.success() {
            bail!("`python {}` failed", arguments.join(" "));
        }
    }
    Ok(())
}

/// Finds Python 3.`minor` in PATH, or among those of pyenv.
fn interpreter(minor: u32) -> Option<PathBuf> {
    let in_path = PathBuf::from(format!("python3.{minor}"));
    if Command::new(&in_path).arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Some(in_path);
    }
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let pyenv = pyenv.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")))?;
    let versions = pyenv.join("versions").read_dir().ok()?.flatten();
    let of_minor = format!("3.{minor}.");
    let found = versions.filter(|version| version.file_name().to_string_lossy().starts_with(&of_minor));
    found.map(|version| version.path().join("bin/python")).find(|python| python.is_file())
}

fn build(root: &Path) -> Result<PathBuf> {
    let target = metadata::load(root)?.target_directory;
    Cargo::workspace("build").args(["--lib"]).args(PROGRAMS).run(root)?;
    pack(root, &target.join("debug/lib_core.so"), &target.join("wheels"))
}

fn run_tests(root: &Path, wheel: &Path, python: &Python) -> Result<()> {
    python.install(root, wheel)?;
    let mut pytest = python.command("python");
    pytest.args(["-m", "pytest", "--quiet", "--timeout=300", "python/tests"]).current_dir(root);
    if !pytest.env("PYTHONDONTWRITEBYTECODE", "1").status().context("pytest cannot be started")?.success() {
        bail!("the tests of the Python package failed");
    }
    Ok(())
}

/// Packages that the benchmark compares ours with.
const PEERS: [&str; 4] = ["ratelimit==2.2.1", "limits==5.*", "aiolimiter==1.*", "concurry==0.13.2"];

/// Builds the wheel with all optimisations, installs it beside its peers, and returns that environment's interpreter.
pub(crate) fn bench_interpreter(root: &Path) -> Result<PathBuf> {
    let target = metadata::load(root)?.target_directory;
    Cargo::new(["build", "--release", "--quiet", "--package", "tollgate-python"]).run(root)?;
    let wheel = pack(root, &target.join("release/lib_core.so"), &target.join("release-wheels"))?;
    let python = Python::with(root, "python-bench", &PEERS)?;
    python.install(root, &wheel)?;
    Ok(python.program("python"))
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
