//! The roles of child processes.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tollgate::file::FileStore;
use tollgate_batch::journal::{Journal, OnFailed};
use tollgate_batch::{Batch, BatchEvent, CallReply, Item, ItemAttempt, SharedCooldown};
use tollgate_provider::Hint;

const ROLE: &str = "TOLLGATE_BATCH_CHILD";
const FOLDER: &str = "TOLLGATE_BATCH_FOLDER";

/// The number of items of the batch that is killed and resumed.
pub(crate) const ITEMS: u64 = 4_000;

/// A child process and its output.
pub(crate) struct ChildProcess {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// The role of a child process.
pub(crate) struct Task {
    role: String,
    folder: PathBuf,
}

impl Task {
    /// Returns the role in the environment, if this is a child.
    pub(crate) fn given() -> Option<Task> {
        let role = std::env::var(ROLE).ok()?;
        Some(Task { role, folder: std::env::var_os(FOLDER)?.into() })
    }

    pub(crate) fn run(self) {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        match self.role.as_str() {
            "resume" => runtime.block_on(resume(&self.folder)),
            "meet" => runtime.block_on(meet(&self.folder)),
            "observe" => runtime.block_on(observe(&self.folder)),
            other => panic!("no such role: {other}"),
        }
    }

    /// Starts this program as a child.
    pub(crate) fn start(role: &str, folder: &Path) -> ChildProcess {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(ROLE, role)
            .env(FOLDER, folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        ChildProcess { child, lines }
    }
}

impl ChildProcess {
    pub(crate) fn next(&mut self) -> Option<String> {
        self.lines.next()?.ok()
    }

    /// Kills the child, and returns the rest of its output.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.rest()
    }

    /// Waits for the end of the child, and returns the rest of its output.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        let rest = self.lines.by_ref().map_while(Result::ok).collect();
        self.child.wait().unwrap();
        rest
    }
}

/// Prints a line in one write, so that it is complete or missing.
fn say(line: String) {
    let _ = std::io::stdout().write_all(format!("{line}\n").as_bytes());
    let _ = std::io::stdout().flush();
}

async fn resume(folder: &Path) {
    let journal = Journal::open(folder.join("results.jsonl"), OnFailed::Keep).unwrap();
    let items = (0..ITEMS).map(|at| Item::new(at.to_string(), at));
    let mut run = Batch::new().workers(16).resume(journal, items, |call: ItemAttempt<u64>| async move {
        say(format!("call {}", call.id()));
        tokio::task::yield_now().await;
        if call.number() == 1 && call.payload().is_multiple_of(1_000) {
            return CallReply::refused(Hint::throttled(Some(Duration::from_millis(1))));
        }
        CallReply::done(*call.payload(), Hint::ok())
    });
    while let Some(outcome) = run.next().await {
        say(format!("outcome {}", outcome.id));
    }
    say("end".into());
}

fn shared(folder: &Path) -> SharedCooldown {
    let store = FileStore::open(folder.join("store.db")).unwrap();
    SharedCooldown::new(Arc::new(store), "batch").poll_interval(Duration::from_millis(20))
}

/// Meets a 429, shares the cooldown, and is killed.
async fn meet(folder: &Path) {
    let run = Batch::new().share(shared(folder)).run([Item::new("0", ())], |_: ItemAttempt<()>| async {
        CallReply::<()>::refused(Hint::throttled(Some(Duration::from_secs(2))))
    });
    let cooldowns = shared(folder);
    while cooldowns.remaining(&["default".into()]).await.unwrap()[0].is_none() {
        tokio::task::yield_now().await;
    }
    say("met".into());
    run.finish().await.unwrap();
}

/// Calls without meeting a 429 itself; ends when a cooldown has ended.
async fn observe(folder: &Path) {
    let (ended, mut end) = tokio::sync::mpsc::unbounded_channel();
    let batch =
        Batch::new().workers(2).share(shared(folder)).observer(move |event: &BatchEvent<'_>| match event {
            BatchEvent::Started { .. } => say("start".into()),
            BatchEvent::CoolingDown { .. } => say("cooling".into()),
            BatchEvent::CooledDown { .. } => {
                say("cooled".into());
                let _ = ended.send(());
            }
            _ => {}
        });
    let mut run = batch.run((0_u64..).map(|at| Item::new(at.to_string(), ())), |_: ItemAttempt<()>| async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        CallReply::done((), Hint::ok())
    });
    loop {
        tokio::select! {
            _ = end.recv() => break,
            outcome = run.next() => assert!(outcome.is_some()),
        }
    }
    say("end".into());
}
