//! The first call to an account goes alone: a key that is wrong should be found out by one call, not by as many as may be
//! under way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;
use tollgate_provider::{Class, FatalKind, Hint};

use super::http::Replied;

/// How long the others wait for the first. Some calls take minutes, and waiting for those helps no other call.
const ALONE: Duration = Duration::from_secs(1);

/// Whether the key of an account is any good.
#[derive(Default)]
pub(crate) struct FirstCall {
    is_open: AtomicBool,
    /// Held by the first call. What was said if the key is wrong.
    refusal: Mutex<Option<Hint>>,
}

impl FirstCall {
    /// Makes a call, unless one that came before shows that there is no use in it.
    ///
    /// # Cancel safety
    ///
    /// Dropped while it is the first, it leaves that to the next.
    ///
    /// # Errors
    ///
    /// What the provider said to the one that came before.
    pub(crate) async fn pass(&self, call: impl Future<Output = Replied>) -> Result<Replied, Hint> {
        if self.is_open.load(Ordering::Acquire) {
            return Ok(call.await);
        }
        let Ok(mut refusal) = timeout(ALONE, self.refusal.lock()).await else { return Ok(call.await) };
        if let Some(hint) = &*refusal {
            return Err(hint.clone());
        }
        if self.is_open.load(Ordering::Acquire) {
            drop(refusal);
            return Ok(call.await);
        }
        let replied = call.await;
        match replied.hint.class {
            Class::Fatal(FatalKind::Auth) => *refusal = Some(replied.hint.clone()),
            _ => self.is_open.store(true, Ordering::Release),
        }
        Ok(replied)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn replied(class: Class) -> Replied {
        Replied { status: Some(200), usage: None, request_id: None, body: Vec::new(), hint: Hint::of(class) }
    }

    fn together(class: Class) -> (usize, usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (gate, calls, refused) = (FirstCall::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        runtime.block_on(async {
            let one = || async {
                let call = async {
                    calls.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                    replied(class)
                };
                if gate.pass(call).await.is_err() {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            };
            tokio::join!(one(), one(), one());
        });
        (calls.into_inner(), refused.into_inner())
    }

    #[test]
    fn a_wrong_key_is_tried_once_and_a_good_one_lets_everybody_pass() {
        assert_eq!(together(Class::Fatal(FatalKind::Auth)), (1, 2));
        assert_eq!(together(Class::Ok), (3, 0));
        assert_eq!(together(Class::Throttled), (3, 0), "what is refused for now was let in");
    }
}
