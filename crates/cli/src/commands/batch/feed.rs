//! Feeds a batch with requests from a thread of their own, so that an input that has to be waited for holds up nothing else.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::mpsc;
use tollgate_batch::Item;

use super::input::{PlannedRequest, Requests};

/// How many requests are read ahead of the batch, which has a buffer of its own.
const AHEAD_MAX: usize = 64;

/// Requests as a stream.
pub(super) struct Feed(mpsc::Receiver<Item<PlannedRequest>>);

impl Feed {
    /// Begins to read. The thread ends with the input, or with the next request after the stream was dropped.
    ///
    /// # Errors
    ///
    /// The system has no thread left.
    pub(super) fn new(requests: Requests) -> std::io::Result<Feed> {
        let (sender, receiver) = mpsc::channel(AHEAD_MAX);
        // It may wait for stdin for ever, which nothing can interrupt, so no code joins it: it ends with the process.
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
