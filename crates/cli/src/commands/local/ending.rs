//! What ends a server.

use std::io;
use std::time::Duration;

/// Waits until somebody presses Ctrl-C, the process is told to end, or the time is over.
pub(super) async fn told_to_end(seconds: Option<u32>) -> io::Result<()> {
    let told = told();
    match seconds {
        Some(seconds) => {
            tokio::time::timeout(Duration::from_secs(seconds.into()), told).await.unwrap_or(Ok(()))
        }
        None => told.await,
    }
}

#[cfg(unix)]
async fn told() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    std::future::poll_fn(|cx| match interrupt.poll_recv(cx) {
        std::task::Poll::Pending => terminate.poll_recv(cx),
        told => told,
    })
    .await;
    Ok(())
}

#[cfg(not(unix))]
async fn told() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}
