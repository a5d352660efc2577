//! Reads requests on a thread of their own, so that an input that blocks delays nothing else.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::mpsc;
use tollgate_batch::Item;

use super::input::{PlannedRequest, Requests};

/// The maximum number of requests that are read ahead of the batch, which has its own buffer.
const AHEAD_MAX: usize = 64;

/// Requests as a stream.
pub(super) struct Feed(mpsc::Receiver<Item<PlannedRequest>>);

impl Feed {
    /// Starts the thread. It ends with the input, or with the next request after the stream was dropped.
    ///
    /// # Errors
    ///
    /// The system has no thread left.
    pub(super) fn new(requests: Requests) -> std::io::Result<Feed> {
        let (sender, receiver) = mpsc::channel(AHEAD_MAX);
        // A read of stdin may block forever and cannot be interrupted, so the thread is not joined: it ends with the process.
        std::thread::Builder::new().name("requests".into()).spawn(move || {
            for item in requests {
                if sender.blocking_send(item).is_err() {
                    return;
                }
            }
        })?;
        Ok(Feed(receiver))
    }
}

impl Stream for Feed {
    type Item = Item<PlannedRequest>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Item<PlannedRequest>>> {
        self.0.poll_recv(context)
    }
}
