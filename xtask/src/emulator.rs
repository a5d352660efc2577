//! The suites against another implementation of DynamoDB, over HTTP, and the real Lambda on it.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::command::{Cargo, PROGRAMS};
use crate::python::Python;
use crate::{metadata, test_binaries};

/// How long the emulator may take to start, in tries of [`PAUSE`].
const TRIES: u32 = 300;

const PAUSE: Duration = Duration::from_millis(200);

/// The suites that run on the emulator, too.
const SUITES: [&str; 4] = [
    "tollgate-dynamo/catalog",
    "tollgate-dynamo/conformance",
    "tollgate-dynamo/limiter",
    "tollgate-dynamo/records",
];

/// Runs the suites and the Lambda.
pub(crate) fn run(root: &Path) -> Result<()> {
    let python = Python::prepare(root)?;
    let emulator = Emulator::start(root, &python)?;
    run_suites(root, &emulator.endpoint)?;
    lambda(root, &python, &emulator.endpoint)
}

/// Runs the binaries that `cargo test` has built already.
fn run_suites(root: &Path, endpoint: &str) -> Result<()> {
    let binaries = test_binaries::build(root, "dev")?;
    for name in SUITES {
        let binary = binaries.iter().find(|binary| binary.name == name);
        let binary = binary.with_context(|| format!("there is no test binary {name}"))?;
        println!("    TOLLGATE_TEST_DYNAMODB={endpoint} {name}");
        let mut suite = Command::new(&binary.executable);
        suite.current_dir(&binary.folder).env("TOLLGATE_TEST_DYNAMODB", endpoint);
        if !suite.status().with_context(|| format!("{name} cannot be started"))?.success() {
            bail!("{name} failed on the emulator");
        }
    }
    Ok(())
}

/// Checks the template by the rules of CloudFormation.
pub(crate) fn check_template(root: &Path) -> Result<()> {
    let mut lint = Python::prepare(root)?.command("cfn-lint");
    let status =
        lint.arg("deploy/template.json").current_dir(root).status().context("cfn-lint cannot start")?;
    if !status.success() {
        bail!("`cfn-lint deploy/template.json` found something");
    }
    Ok(())
}

fn lambda(root: &Path, python: &Python, endpoint: &str) -> Result<()> {
    Cargo::workspace("build").args(PROGRAMS).run(root)?;
    let built = metadata::load(root)?.target_directory.join("debug");
    let mut script = python.command("python");
    script.arg("xtask/python/lambda_on_ministack.py").arg(endpoint);
    script.arg(built.join("bootstrap")).arg(built.join("tollgate")).current_dir(root);
    if !script.status().context("the script cannot be started")?.success() {
        bail!("the Lambda did not record the usage");
    }
    Ok(())
}

/// An emulator on a free port, killed on drop.
struct Emulator {
    process: Child,
    endpoint: String,
}

impl Emulator {
    fn start(root: &Path, python: &Python) -> Result<Emulator> {
        // The port was free a moment ago: the emulator cannot choose one itself.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let folder = metadata::load(root)?.target_directory.join("ministack");
        std::fs::create_dir_all(&folder)?;
        let log = std::fs::File::create(folder.join("log.txt"))?;
        let mut start = python.command("ministack");
        start.env("GATEWAY_PORT", port.to_string()).env("BIND_HOST", "127.0.0.1").env("LOG_LEVEL", "WARNING");
        start.current_dir(&folder).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let process = start.spawn().context("ministack cannot be started")?;
        let mut emulator = Emulator { process, endpoint: format!("http://127.0.0.1:{port}") };
        emulator.wait_for(port)?;
        Ok(emulator)
    }

    #[expect(clippy::disallowed_methods, reason = "the emulator does not report when it is ready")]
    fn wait_for(&mut self, port: u16) -> Result<()> {
        for _ in 0..TRIES {
            if let Some(status) = self.process.try_wait()? {
                bail!("ministack ended ({status}); its log is in target/ministack");
            }
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        bail!("ministack does not answer; its log is in target/ministack")
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
