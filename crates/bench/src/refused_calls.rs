//! What being refused costs a batch of real calls: the command `tollgate batch run` against a provider that refuses some.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::command::{children_ms, program, run};
use crate::options::Effort;
use crate::scratch::Scratch;
use crate::single::SoloValue;

/// How many calls each batch makes. Of those that are refused, each eleventh is, so that it is a tenth of the requests.
const CALLS: usize = 22_000;
const REFUSED_EVERY: usize = 11;

/// How long answers take, and how long where none is refused: so both batches take about as long. The longer one takes, the
/// fewer events there are to look at when it wakes up, and that is no cost of being refused.
const LATENCY: &str = "20ms..60ms";
const LATENCY_IF_NONE: &str = "80ms..140ms";

/// The processor time of a batch of which a tenth is refused, of that of one that makes as many calls in the same time.
pub(crate) fn tenth_refused(_: &Effort) -> Result<SoloValue> {
    let tollgate = program()?;
    let outage = format!("429/{REFUSED_EVERY}");
    let none = batch_ms(&tollgate, CALLS, &["--latency", LATENCY_IF_NONE])?;
    let manners = ["--latency", LATENCY, "--outage", &outage];
    let some = batch_ms(&tollgate, CALLS - CALLS / REFUSED_EVERY, &manners)?;
    let detail = format!(
        "{some:.0} ms of processor time of {none:.0} for {CALLS} calls over HTTP, a tenth of the requests refused of none"
    );
    Ok(SoloValue { value: some / none, detail })
}

/// The processor time of a batch of so many requests.
fn batch_ms(tollgate: &Path, requests: usize, manners: &[&str]) -> Result<f64> {
    let scratch = Scratch::new()?;
    let provider = MockProcess::start(tollgate, manners)?;
    let file = write_requests(scratch.file("requests.jsonl"), requests)?;
    let [file, results] = [file, scratch.file("results.jsonl")].map(|path| path.display().to_string());
    let base = format!("{}/v1", provider.url);
    let before = children_ms()?;
    run(tollgate, &["batch", "run", &file, "--output", &results, "--base-url", &base])?;
    // The provider still runs, so what it took is not counted.
    Ok(children_ms()? - before)
}

fn write_requests(file: PathBuf, count: usize) -> Result<PathBuf> {
    let mut lines = BufWriter::new(File::create(&file)?);
    for number in 0..count {
        let body = r#"{"model": "m", "messages": [{"role": "user", "content": "Why?"}]}"#;
        writeln!(lines, "{{\"custom_id\": \"{number}\", \"body\": {body}}}")?;
    }
    lines.flush()?;
    Ok(file)
}

/// A mock provider, which ends with this.
struct MockProcess {
    process: Child,
    url: String,
    /// Kept open: it says more than its address.
    said: BufReader<ChildStdout>,
}

impl MockProcess {
    fn start(tollgate: &Path, manners: &[&str]) -> Result<MockProcess> {
        let mut command = Command::new(tollgate);
        command.args(["mock-provider", "--no-headers"]).args(manners);
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let said = process.stdout.take().context("it has no stdout")?;
        let mut provider = MockProcess { process, url: String::new(), said: BufReader::new(said) };
        while provider.url.is_empty() {
            let mut line = String::new();
            ensure!(provider.said.read_line(&mut line)? > 0, "the mock provider did not say where it is");
            provider.url = line.strip_prefix("url").unwrap_or_default().trim().to_owned();
        }
        Ok(provider)
    }
}

impl Drop for MockProcess {
    fn drop(&mut self) {
        // It may be gone already, and that is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
