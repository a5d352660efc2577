//! Signals that shut a server down.

use std::io;
#[cfg(unix)]
use std::task::Poll;
use std::time::Duration;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for SIGINT, SIGTERM or SIGHUP.
pub(in crate::commands) struct ServerSignal {
    #[cfg(unix)]
    signals: Vec<Signal>,
}

impl ServerSignal {
    /// Installs the handlers: from now on signals do not kill the process. Must be called in a runtime.
    #[cfg(unix)]
    pub(in crate::commands) fn watch() -> io::Result<ServerSignal> {
        let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
        if hangup_ends() {
            kinds.push(SignalKind::hangup());
        }
        Ok(ServerSignal { signals: kinds.into_iter().map(signal).collect::<io::Result<_>>()? })
    }

    #[cfg(not(unix))]
    pub(in crate::commands) fn watch() -> io::Result<ServerSignal> {
        Ok(ServerSignal {})
    }

    /// Waits for a signal, or until the time is over.
    pub(in crate::commands) async fn wait(&mut self, seconds: Option<u32>) -> io::Result<()> {
        match seconds {
            Some(seconds) => {
                let time = Duration::from_secs(seconds.into());
                tokio::time::timeout(time, self.wait_for_signal()).await.unwrap_or(Ok(()))
            }
            None => self.wait_for_signal().await,
        }
    }

    #[cfg(unix)]
    async fn wait_for_signal(&mut self) -> io::Result<()> {
        std::future::poll_fn(|cx| {
            let mut polled = self.signals.iter_mut().map(|signal| signal.poll_recv(cx));
            polled.find(Poll::is_ready).unwrap_or(Poll::Pending)
        })
        .await;
        Ok(())
    }

    #[cfg(not(unix))]
    async fn wait_for_signal(&mut self) -> io::Result<()> {
        tokio::signal::ctrl_c().await
    }
}

/// Returns true if SIGHUP would end the process. Under nohup(1) it is ignored, and handling it would undo that. Where this
/// is unknown, the signal is not handled.
#[cfg(unix)]
fn hangup_ends() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Signal 1 is the lowest bit.
    ignored.is_some_and(|mask| mask & 1 == 0)
}
