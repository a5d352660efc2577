//! The first call to an account is made alone: an invalid key is then detected by one call, not by all concurrent ones.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;
use tollgate_provider::{Class, FatalKind, Hint};

use super::http::Replied;

/// How long other calls wait for the first. Some calls take minutes, and waiting for them would only delay the rest.
const ALONE: Duration = Duration::from_secs(1);

/// The state of the first call of an account.
#[derive(Default)]
pub(crate) struct FirstCall {
    is_open: AtomicBool,
    /// Locked by the first call. The reply of the provider, if the key is invalid.
    refusal: Mutex<Option<Hint>>,
}

impl FirstCall {
    /// Makes a call, unless an earlier call has shown that the key is invalid.
    ///
    /// # Cancel safety
    ///
    /// If the first call is dropped, the next call becomes the first.
    ///
    /// # Errors
    ///
    /// The reply of the provider to the earlier call.
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
        let first_call = FirstCall::default();
        let calls = AtomicUsize::new(0);
        let refused = AtomicUsize::new(0);
        runtime.block_on(async {
            let one = || async {
                let call = async {
                    calls.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                    replied(class)
                };
                if first_call.pass(call).await.is_err() {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            };
            tokio::join!(one(), one(), one());
        });
        (calls.into_inner(), refused.into_inner())
    }

    #[test]
    fn an_invalid_key_is_tried_once_and_a_valid_one_admits_all_calls() {
        assert_eq!(together(Class::Fatal(FatalKind::Auth)), (1, 2));
        assert_eq!(together(Class::Ok), (3, 0));
        assert_eq!(together(Class::Throttled), (3, 0), "a throttled call proves that the key is valid");
    }
}
