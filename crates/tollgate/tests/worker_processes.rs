//! Workers in processes of their own. This program is its own worker process, so it has a main of its own.
#![allow(
    clippy::print_stdout,
    reason = "a test runner reports on standard output, and one job writes where it should not"
)]

use std::panic::catch_unwind;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use tollgate::file::{Durability, FileStore};
use tollgate::workers::{self, JobError, ProcessError, Shutdown, Worker, WorkerPool};
use tollgate::{Limit, LimitSet, Retry, demand};

type Pool = WorkerPool<u64, u64, ProcessError<String>>;

/// The input of a job that ends its process.
const ENDS: u64 = 1_000;
/// The input of a job that panics.
const PANICS: u64 = 1_001;
/// The input of a job that fails.
const FAILS: u64 = 1_002;
/// The input of a job that writes to the output that belongs to the pool.
const WRITES: u64 = 1_003;

const ALL: [(&str, fn()); 3] = [
    ("results_come_from_processes_that_share_a_limit", results_come_from_processes_that_share_a_limit),
    (
        "what_goes_wrong_in_a_process_is_told_and_the_next_job_has_another",
        what_goes_wrong_in_a_process_is_told_and_the_next_job_has_another,
    ),
    ("a_set_that_processes_cannot_see_is_refused", a_set_that_processes_cannot_see_is_refused),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, file] = &*arguments
        && first == "worker"
    {
        work(file);
        return ExitCode::SUCCESS;
    }
    let wanted = arguments.iter().find(|argument| !argument.starts_with('-')).cloned().unwrap_or_default();
    let chosen = ALL.into_iter().filter(|(name, _)| name.contains(&wanted));
    if arguments.iter().any(|argument| argument == "--list") {
        chosen.for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (name, test) in chosen {
        let passed = catch_unwind(test).is_ok();
        failed += u32::from(!passed);
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn shared(file: &str) -> LimitSet {
    let store = FileStore::builder(file).durability(Durability::Off).build().expect("the file can be opened");
    let limits = [Limit::per_day("rpd", 10)];
    LimitSet::builder().limits(limits).store(Arc::new(store)).name("shared").build().expect("it is valid")
}

fn work(file: &str) {
    let job = |worker: &Worker, number: u64| match number {
        ENDS => std::process::exit(3),
        PANICS => panic!("number {number} is bad"),
        FAILS => Err(format!("try {} of worker {}", worker.tries(), worker.index())),
        WRITES => {
            println!("hello");
            Ok(0)
        }
        _ => {
            let taken =
                worker.limits().try_acquire(demand! { rpd: 1 }).wait().map_err(|error| error.to_string())?;
            Ok(u64::from(taken.is_admitted()))
        }
    };
    workers::serve(shared(file), job).expect("the pool is there");
}

fn file_of(test: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("workers-{test}.db"));
    for suffix in ["", "-wal", "-shm"] {
        // What an earlier run left behind, if it did.
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    path.display().to_string()
}

fn command(file: &str) -> impl Fn(usize) -> Command + Send + Sync + 'static {
    let file = file.to_owned();
    move |_| {
        let mut command = Command::new(std::env::current_exe().expect("this program is somewhere"));
        command.args(["worker", &file]);
        command
    }
}

fn results_come_from_processes_that_share_a_limit() {
    let file = file_of("share");
    let pool: Pool = WorkerPool::threads(3).build_processes(command(&file)).expect("it can be built");
    let results = pool.gather(0..30).wait();
    let admitted: u64 = results.into_iter().map(|result| result.expect("it is done")).sum();
    assert_eq!(admitted, 10, "10 of 30 pass, whichever process they are in");
    pool.shutdown(Shutdown::Drain).wait();
    assert_eq!(shared(&file).peek().wait().expect("the file is there").limits[0].available(), 0);
}

fn what_goes_wrong_in_a_process_is_told_and_the_next_job_has_another() {
    let retry = Retry::attempts(2).pause(std::time::Duration::ZERO);
    let builder =
        WorkerPool::threads(1).retry(retry).retry_if(|error| matches!(error, ProcessError::Failed(_)));
    let pool: Pool = builder.build_processes(command(&file_of("wrong"))).expect("it can be built");
    let done = |number| pool.submit(number).wait().expect("it is open").wait();
    assert_eq!(done(0), Ok(1));
    let gone = |number| match done(number) {
        Err(JobError::Failed(ProcessError::Gone(why))) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(gone(ENDS), "it has ended");
    assert_eq!(done(0), Ok(1));
    let panicked = ProcessError::Panicked("number 1001 is bad".into());
    assert_eq!(done(PANICS), Err(JobError::Failed(panicked)));
    let failed = ProcessError::Failed("try 2 of worker 0".into());
    assert_eq!(done(FAILS), Err(JobError::Failed(failed)), "it is tried again");
    assert!(gone(WRITES).contains("hello"));
    assert_eq!(done(0), Ok(1));
    let nothing: Pool = WorkerPool::threads(1)
        .build_processes(|_| Command::new("/no/such/program"))
        .expect("it can be built");
    assert!(nothing.submit(0).wait().expect("it is open").wait().is_err());
}

fn a_set_that_processes_cannot_see_is_refused() {
    let here = LimitSet::new([Limit::per_day("rpd", 1)]).expect("it is valid");
    let hidden: Result<Pool, _> = WorkerPool::threads(1).limits(here).build_processes(command("nowhere"));
    assert!(hidden.is_err());
}
