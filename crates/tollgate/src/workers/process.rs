//! Workers in processes of their own.
//!
//! Each worker of the pool is a thread that has a child process. An input goes to it as a line of JSON, and a line comes
//! back. A child that ends is started anew with the next job, and children end when the pool does, however that ends:
//! what they read then is the end of their input.

use std::io::{self, BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::builder::{WorkerPoolBuilder, WorkersError};
use super::limits::{WorkerLimits, check_shared};
use super::pool::WorkerPool;
use super::run::words;
use super::worker::Worker;

/// The variable that tells a child the number of its worker.
const INDEX: &str = "TOLLGATE_WORKER_INDEX";

/// What an answer begins with, so that nothing else is taken for one.
const MARK: &str = "tollgate-answer ";

/// Why a worker process has no result of a job.
///
/// ```
/// use tollgate::workers::{JobError, ProcessError, WorkerPool};
///
/// // A worker process reads inputs and writes results with `tollgate::workers::serve`. This program does neither.
/// let pool: WorkerPool<u64, u64, ProcessError<String>> =
///     WorkerPool::threads(1).build_processes(|_| std::process::Command::new("true"))?;
/// assert!(matches!(pool.submit(1).wait()?.wait(), Err(JobError::Failed(ProcessError::Gone(_)))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError<E> {
    /// The job failed.
    #[error(transparent)]
    Failed(E),
    /// The job panicked, with these words. The process goes on.
    #[error("the job panicked: {0}")]
    Panicked(String),
    /// The process could not be started, has ended, or wrote something else than an answer. The next job starts another.
    #[error("the worker process is gone: {0}")]
    Gone(String),
}

/// Why a worker process ended before its input did.
///
/// ```
/// use tollgate::workers::{serve, ServeError, Worker};
///
/// /// What a worker process runs.
/// fn work() -> Result<(), ServeError> {
///     serve((), |_: &Worker, number: u64| Ok::<u64, String>(number + 1))
/// }
/// # let _ = work as fn() -> Result<(), ServeError>;
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The limits are not valid, or the other processes cannot see them.
    #[error(transparent)]
    Workers(#[from] WorkersError),
    /// The pool cannot be heard, or does not listen.
    #[error("the pool of workers does not answer: {0}")]
    Io(#[from] io::Error),
    /// The pool wrote something else than an input, or a result has no form as JSON.
    #[error("what was to be exchanged with the pool is not valid: {0}")]
    Invalid(String),
}

#[derive(Serialize, Deserialize)]
struct Question<I> {
    tries: u32,
    input: I,
}

#[derive(Serialize, Deserialize)]
enum ProcessAnswer<T, E> {
    Done(T),
    Failed(E),
    Panicked(String),
}

impl<I, T, E> WorkerPoolBuilder<I, T, ProcessError<E>>
where
    I: Serialize + Clone + Send + 'static,
    T: DeserializeOwned + Send + 'static,
    E: DeserializeOwned + Send + 'static,
{
    /// Workers that each have a process, which [`serve`] answers for. `command` says how the process of a worker is started,
    /// from its number; its standard input and output belong to the pool.
    ///
    /// The limits are those that the processes open themselves: a set that is given here as well must be in a store that
    /// they can see.
    ///
    /// ```no_run
    /// use std::process::Command;
    /// use tollgate::workers::{self, ProcessError, WorkerPool};
    ///
    /// if std::env::args().nth(1).as_deref() == Some("worker") {
    ///     workers::serve((), |_, number: u64| Ok::<_, String>(number * 2))?;
    /// } else {
    ///     let this = std::env::current_exe()?;
    ///     let pool = WorkerPool::<u64, u64, ProcessError<String>>::threads(4).build_processes(move |_| {
    ///         let mut worker = Command::new(&this);
    ///         worker.arg("worker");
    ///         worker
    ///     })?;
    ///     assert_eq!(pool.submit(21).wait()?.wait(), Ok(42));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WorkersError`].
    pub fn build_processes(
        self,
        command: impl Fn(usize) -> Command + Send + Sync + 'static,
    ) -> Result<WorkerPool<I, T, ProcessError<E>>, WorkersError> {
        let command = std::sync::Arc::new(command);
        self.in_threads().across_processes().build_with(move |_: &Worker| {
            let (command, mut child) = (std::sync::Arc::clone(&command), None);
            move |worker: &Worker, input: I| {
                let question = Question { tries: worker.tries(), input };
                let answered = ask(&mut child, || command(worker.index()), worker.index(), &question);
                match answered {
                    Ok(ProcessAnswer::Done(value)) => Ok(value),
                    Ok(ProcessAnswer::Failed(error)) => Err(ProcessError::Failed(error)),
                    Ok(ProcessAnswer::Panicked(why)) => Err(ProcessError::Panicked(why)),
                    Err(why) => {
                        child = None;
                        Err(ProcessError::Gone(why))
                    }
                }
            }
        })
    }
}

fn ask<Q: Serialize, A: DeserializeOwned>(
    child: &mut Option<Conversation>,
    command: impl FnOnce() -> Command,
    index: usize,
    question: &Q,
) -> Result<A, String> {
    let line = serde_json::to_string(question).map_err(|why| why.to_string())?;
    let conversation = match child {
        Some(conversation) => conversation,
        None => child.insert(Conversation::start(command(), index).map_err(|why| why.to_string())?),
    };
    let answer = conversation.exchange(&line).map_err(|why| why.to_string())?;
    let text = answer.strip_prefix(MARK).ok_or_else(|| match answer.is_empty() {
        true => "it has ended".to_owned(),
        false => format!("it wrote {:?}, but its standard output belongs to the pool", answer.trim_end()),
    })?;
    serde_json::from_str(text).map_err(|why| why.to_string())
}

/// A child process, and what is said to it and by it.
struct Conversation {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Conversation {
    fn start(mut command: Command, index: usize) -> io::Result<Conversation> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).env(INDEX, index.to_string());
        let mut child = command.spawn()?;
        let missing = || io::Error::other("it has no standard input or output");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        Ok(Conversation { child, input, output })
    }

    /// Asks, and waits for the answer; an empty one if the process has ended.
    fn exchange(&mut self, line: &str) -> io::Result<String> {
        writeln!(self.input, "{line}")?;
        self.input.flush()?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        Ok(answer)
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        // Nothing is asked of it any more. What it holds in a store is given back by that.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Answers the inputs of a pool of workers until there are no more: the main function of a worker process. See
/// [`WorkerPoolBuilder::build_processes`].
///
/// The job gets a [`Worker`] with the number that it has in the pool, and a [`LimitPool`](crate::LimitPool) over `limits`,
/// which have to be in a store that the other processes can see. A job that panics is an error of that job.
///
/// # Errors
///
/// [`ServeError`].
pub fn serve<I, T, E>(
    limits: impl Into<WorkerLimits>,
    mut job: impl FnMut(&Worker, I) -> Result<T, E>,
) -> Result<(), ServeError>
where
    I: DeserializeOwned,
    T: Serialize,
    E: Serialize,
{
    let limits = limits.into().into_pool()?;
    check_shared(&limits)?;
    let index = std::env::var(INDEX).ok().and_then(|number| number.parse().ok()).unwrap_or(0);
    let worker = Worker::new(index, limits.for_worker(index));
    for line in io::stdin().lock().lines() {
        let question: Question<I> = serde_json::from_str(&line?).map_err(invalid)?;
        worker.begin_try(question.tries);
        let done = catch_unwind(AssertUnwindSafe(|| job(&worker, question.input)));
        let answer = match done {
            Ok(Ok(value)) => ProcessAnswer::Done(value),
            Ok(Err(error)) => ProcessAnswer::Failed(error),
            Err(payload) => ProcessAnswer::Panicked(words(&*payload)),
        };
        let text = serde_json::to_string(&answer).map_err(invalid)?;
        let mut output = io::stdout().lock();
        writeln!(output, "{MARK}{text}")?;
        output.flush()?;
    }
    Ok(())
}

fn invalid(why: serde_json::Error) -> ServeError {
    ServeError::Invalid(why.to_string())
}
