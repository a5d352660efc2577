//! The rules of `deny.toml` for dependencies, where cargo-deny is installed.

use std::path::Path;

use anyhow::{Result, bail};

use crate::command::Cargo;

/// How cargo-deny reports that it cannot reach the database of advisories, which is on a host of its own.
const UNREACHABLE: &str = "failed to fetch advisory database";

/// Checks bans, licences and sources, which need no network but that of cargo, and then advisories.
pub(crate) fn check(root: &Path) -> Result<()> {
    if Cargo::new(["deny", "--version"]).output(root).is_err() {
        println!("    skipped: cargo-deny is not installed (cargo install --locked cargo-deny)");
        return Ok(());
    }
    Cargo::new(["deny", "check", "bans", "licenses", "sources"]).run(root)?;
    match Cargo::new(["deny", "check", "advisories"]).output(root) {
        Err(error) if error.to_string().contains(UNREACHABLE) => {
            println!("    advisories skipped: their database cannot be fetched");
            Ok(())
        }
        Err(error) => bail!(error),
        Ok(_) => Ok(()),
    }
}
