//! The cost of the command `tollgate` as a process, with its start.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result, bail};
use tollgate::file::{Durability, FileStore};
use tollgate::{Level, Limit, Limiter, Limits, NewEntity};

use crate::options::Effort;
use crate::scratch::Scratch;
use crate::single::SoloValue;

const ENTITIES: usize = 100_000;
const CALLS: u64 = 1_000_000;
const WRITERS: usize = 32;

/// The repetitions of the shorter command, because the system measures processes in hundredths of a second.
const SHOWS: u32 = 20;

/// Hundredths of a second, the unit of Linux here.
const TICK_MS: f64 = 10.0;

/// Measures the processor time of `tollgate entity show` in milliseconds, on a file of 100,000 entities.
pub(crate) fn entity_show(_: &Effort) -> Result<SoloValue> {
    let tollgate = program()?;
    let scratch = Scratch::new()?;
    let file = scratch.file("limits.db");
    fill(&file)?;
    let store = format!("file:{}", file.display());
    let before = children_ms()?;
    for _ in 0..SHOWS {
        run(&tollgate, &["--store", &store, "entity", "show", "user-50000"])?;
    }
    let value = (children_ms()? - before) / f64::from(SHOWS);
    Ok(SoloValue { value, detail: format!("processor time of the process, mean of {SHOWS}") })
}

/// Measures the processor time of `tollgate simulate` in seconds, for 1,000,000 calls of 1,000 entities.
pub(crate) fn simulate(_: &Effort) -> Result<SoloValue> {
    let tollgate = program()?;
    let scratch = Scratch::new()?;
    let log = scratch.file("calls.jsonl");
    write_log(&log)?;
    let log = log.display().to_string();
    let before = children_ms()?;
    run(&tollgate, &["simulate", &log, "-l", "rpm:60", "-l", "tpm:60000", "-l", "slots:4/at-once"])?;
    let value = (children_ms()? - before) / 1_000.0;
    Ok(SoloValue {
        value,
        detail: "processor time of the process, 1,000 entities, about 4% of the calls denied".into(),
    })
}

/// Returns the release build of the command, in the directory of this program.
pub(crate) fn program() -> Result<PathBuf> {
    let this = std::env::current_exe().context("cannot find this program")?;
    let tollgate = this.with_file_name(format!("tollgate{}", std::env::consts::EXE_SUFFIX));
    if !tollgate.exists() {
        let shown = tollgate.display();
        bail!("{shown} is not there; build it: cargo build --release --package tollgate-cli");
    }
    Ok(tollgate)
}

pub(crate) fn run(tollgate: &Path, words: &[&str]) -> Result<()> {
    let mut command = Command::new(tollgate);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let output = command.output().with_context(|| format!("cannot start {}", tollgate.display()))?;
    if !output.status.success() {
        bail!("tollgate {} failed: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Returns the processor time of all child processes that have ended, in milliseconds.
pub(crate) fn children_ms() -> Result<f64> {
    let stat =
        std::fs::read_to_string("/proc/self/stat").context("only Linux reports the time of processes")?;
    // The name of the program is in brackets and may have blanks; after it comes the third field.
    let (_, fields) = stat.rsplit_once(')').context("/proc/self/stat has no name")?;
    let ticks = fields.split_whitespace().skip(13).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<std::result::Result<f64, _>>()? * TICK_MS)
}

fn fill(file: &Path) -> Result<()> {
    let store = FileStore::builder(file).durability(Durability::Off).build()?;
    let limiter = Limiter::open(Arc::new(store), "default").wait()?;
    let catalog = limiter.catalog();
    let limits = Limits::new([Limit::per_minute("rpm", 100), Limit::per_minute("tpm", 10_000)])?;
    catalog.set_limits(Level::System, &limits).wait()?;
    thread::scope(|scope| {
        let create = |writer: usize| {
            let mut mine = (writer..ENTITIES).step_by(WRITERS);
            mine.try_for_each(|index| {
                catalog.create_entity(NewEntity::new(format!("user-{index}"))).wait().map(drop)
            })
        };
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || create(writer))).collect();
        for writer in writers {
            writer.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??;
        }
        Ok(())
    })
}

/// Writes 1,000 calls a second, each entity about once a second in a varying order.
fn write_log(log: &Path) -> Result<()> {
    let mut file = BufWriter::new(File::create(log)?);
    for index in 0..CALLS {
        let entity = index * 7_919 % 1_000;
        let tokens = 500 + index * 104_729 % 1_000;
        writeln!(
            file,
            "{{\"time\": {}, \"entity\": \"user-{entity}\", \"resource\": \"gpt-4\", \"demand\": {{\"rpm\": 1, \"tpm\": {tokens}}}, \
             \"used\": {{\"rpm\": 1, \"tpm\": {}}}, \"duration_ms\": {}}}",
            1_794_744_000_000_000 + index * 1_000,
            tokens * 9 / 10,
            100 + index % 900,
        )?;
    }
    file.flush()?;
    Ok(())
}
