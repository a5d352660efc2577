//! Several futures in one task.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

/// Polls all futures, in one task, until each is ready, and returns their outputs in order. Each is begun by the first poll.
///
/// # Cancel safety
///
/// Dropping it drops all futures that are not ready, and the outputs of the others.
pub async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        let mut is_ready = true;
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(answer) => *output = Some(answer),
                    Poll::Pending => is_ready = false,
                }
            }
        }
        if is_ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}
