//! A server process.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::installed::{ServerKind, libraries};
use crate::port::Port;
use crate::resp::{Client, RespReply};

/// Starts the server, prints its process id, and kills it when the last process that holds the
/// other end of its input is gone, even if the process that started it was killed.
const SUPERVISE: &str =
    r#""$@" </dev/null >>"$TOLLGATE_LOG" 2>&1 & echo $!; read -r _; kill -9 $! 2>/dev/null"#;

const TRIES: u32 = 400;
const PAUSE: Duration = Duration::from_millis(25);

/// A server on a port of its own. Dropping it stops the server.
///
/// ```no_run
/// use tollgate_redis_local::{RespReply, Server, ServerKind};
///
/// let mut server = Server::start(ServerKind::Redis);
/// server.command(&["SET", "key", "1"]);
/// server.kill();
/// server.restart();
/// // It stores nothing on disk.
/// assert_eq!(server.command(&["GET", "key"]), RespReply::Null);
/// ```
pub struct Server {
    program: PathBuf,
    folder: TempFolder,
    port: Port,
    /// The configuration file, if there is one.
    config: Option<PathBuf>,
    arguments: Vec<String>,
    running: Option<Running>,
}

struct Running {
    shell: Child,
    pid: Pid,
}

/// A folder that is removed with its owner.
pub(crate) struct TempFolder(PathBuf);

impl TempFolder {
    /// Creates a new folder. A killed process leaves its folders behind, and another process may
    /// have its id by now: a server that found the files of an earlier one would continue with its
    /// state.
    pub(crate) fn new() -> TempFolder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("tollgate-redis-{}-{count}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            match fs::create_dir(&folder) {
                Ok(()) => return TempFolder(folder),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => panic!("cannot create a temporary folder at {}: {error}", folder.display()),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Server {
    /// Starts a server that stores nothing on disk.
    pub fn start(kind: ServerKind) -> Server {
        Server::with(kind, &["--save", "", "--appendonly", "no"])
    }

    /// Starts a server with additional arguments.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be started, with its log.
    pub fn with(kind: ServerKind, arguments: &[&str]) -> Server {
        Server::of(kind, None, arguments)
    }

    /// Starts a sentinel with this configuration file.
    pub(crate) fn sentinel(kind: ServerKind, config: &Path) -> Server {
        Server::of(kind, Some(config.to_path_buf()), &["--sentinel"])
    }

    fn of(kind: ServerKind, config: Option<PathBuf>, arguments: &[&str]) -> Server {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let (program, folder, port) = (kind.find(), TempFolder::new(), Port::reserve());
        let mut server = Server { program, folder, port, config, arguments, running: None };
        server.restart();
        server
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Returns the address.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    /// Returns the folder of the server's files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Opens a connection.
    pub fn client(&self) -> Client {
        Client::connect(self.port())
    }

    /// Sends a command and waits for the reply.
    pub fn command(&self, words: &[&str]) -> RespReply {
        self.client().command(words)
    }

    /// Starts the server, after it was killed or for the first time.
    ///
    /// # Panics
    ///
    /// Panics if it does not start.
    pub fn restart(&mut self) {
        self.kill();
        let log = self.folder.path().join("log.txt");
        let mut start = Command::new("sh");
        start.arg("-c").arg(SUPERVISE).arg("sh").arg(&self.program).args(&self.config);
        start
            .args(["--port", &self.port().to_string(), "--bind", "127.0.0.1", "--dir"])
            .arg(self.folder.path());
        start.args(&self.arguments).env("TOLLGATE_LOG", &log).current_dir(self.folder.path());
        let libraries = std::env::join_paths(libraries(&self.program)).expect("paths can be joined");
        start.env("LD_LIBRARY_PATH", libraries);
        let mut shell =
            start.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sh can be started");
        let mut line = String::new();
        let read = shell.stdout.as_mut().map(|out| BufReader::new(out).read_line(&mut line));
        read.expect("the output is a pipe").expect("the shell prints the process id");
        let pid = line.trim().parse().ok().and_then(Pid::from_raw).expect("a process has a number");
        self.running = Some(Running { shell, pid });
        self.wait_until_ready(&log);
    }

    #[expect(clippy::disallowed_methods, reason = "a program does not notify when it is ready")]
    fn wait_until_ready(&self, log: &Path) {
        for _ in 0..TRIES {
            // A server that requires a password replies as well.
            if Client::try_connect(self.port())
                .and_then(|mut client| client.try_command(&["PING"]))
                .is_ok_and(|reply| reply.is_up())
            {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        panic!("{} did not start: {}", self.program.display(), fs::read_to_string(log).unwrap_or_default());
    }

    fn signal(&self, signal: Signal) {
        if let Some(running) = &self.running {
            // The process may have ended by itself.
            let _ = kill_process(running.pid, signal);
        }
    }

    /// Suspends the server: connections stay open, and it does not reply.
    pub fn suspend(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes a suspended server.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        if let Some(mut running) = self.running.take() {
            drop(running.shell.stdin.take());
            let _ = running.shell.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_killed_process_with_the_same_id_is_not_reused() {
        let left = TempFolder::new();
        let number = left
            .path()
            .to_str()
            .and_then(|path| path.rsplit('-').next())
            .and_then(|number| number.parse().ok());
        let number: u32 = number.expect("its name ends with a number");
        let next =
            left.path().with_file_name(format!("tollgate-redis-{}-{}", std::process::id(), number + 1));
        fs::create_dir(&next).expect("it is not there yet");
        fs::write(next.join("nodes.conf"), "of another cluster").expect("the folder is there");
        let fresh = TempFolder::new();
        assert_eq!(fs::read_dir(fresh.path()).expect("it was made").count(), 0);
        fs::remove_dir_all(&next).expect("it is there");
    }
}
