//! What ends a server.

use std::io;
use std::time::Duration;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Somebody presses Ctrl-C, or the process is told to end.
pub(in crate::commands) struct Ending {
    #[cfg(unix)]
    signals: [Signal; 2],
}

impl Ending {
    /// From now on the process does not end by itself when it is told to. To be called in a runtime.
    #[cfg(unix)]
    pub(in crate::commands) fn watch() -> io::Result<Ending> {
        Ok(Ending { signals: [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?] })
    }

    #[cfg(not(unix))]
    pub(in crate::commands) fn watch() -> io::Result<Ending> {
        Ok(Ending {})
    }

    /// Waits for it, or until the time is over.
    pub(in crate::commands) async fn told(&mut self, seconds: Option<u32>) -> io::Result<()> {
        match seconds {
            Some(seconds) => {
                let time = Duration::from_secs(seconds.into());
                tokio::time::timeout(time, self.told_once()).await.unwrap_or(Ok(()))
            }
            None => self.told_once().await,
        }
    }

    #[cfg(unix)]
    async fn told_once(&mut self) -> io::Result<()> {
        let [interrupt, terminate] = &mut self.signals;
        std::future::poll_fn(|cx| match interrupt.poll_recv(cx) {
            std::task::Poll::Pending => terminate.poll_recv(cx),
            told => told,
        })
        .await;
        Ok(())
    }

    #[cfg(not(unix))]
    async fn told_once(&mut self) -> io::Result<()> {
        tokio::signal::ctrl_c().await
    }
}
