//! One call: reserve, call the handler, settle.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tollgate::{Attempt, Demand, Lease, LimitSet, Reach};

use crate::item::{CallReply, ItemAttempt, TokenUsage};

/// The call has not started: it waits for its reservation.
pub(super) const ADMITTING: u8 = 0;
/// The handler has been called.
pub(super) const STARTED: u8 = 1;
/// A cooldown began before the call started, so it never will.
pub(super) const RECALLED: u8 = 2;

/// Computes the demand of a call from its tokens.
pub(super) type DemandOf = Arc<dyn Fn(u64) -> Demand + Send + Sync>;

/// How a call ended.
pub(super) enum End<O> {
    /// The handler replied.
    Replied(CallReply<O>),
    /// The call did not start, and its reservation was cancelled.
    NotStarted,
    /// The demand can never be admitted.
    Denied(String),
}

/// What to reserve for a call, and the stage of the call.
pub(super) struct CallReservation {
    pub(super) set: LimitSet,
    pub(super) demand: DemandOf,
    pub(super) tokens: u64,
    pub(super) stage: Arc<AtomicU8>,
    /// A reservation that was made already.
    pub(super) held: Option<HeldReservation>,
}

/// The reservation of a call that has not started. Dropping it cancels the reservation.
pub(super) struct HeldReservation(Option<Lease<'static>>);

/// Whether the limits of an account admit a call.
pub(super) enum LimitRoom {
    /// They do, and the demand is taken; `None` if there are no limits.
    Taken(Option<HeldReservation>),
    /// Not before this time has passed.
    In(Duration),
    /// Unknown until the call has waited in the queue.
    Unknown,
}

impl HeldReservation {
    fn into_lease(mut self) -> Option<Lease<'static>> {
        self.0.take()
    }
}

impl Drop for HeldReservation {
    fn drop(&mut self) {
        if let Some(lease) = self.0.take() {
            // The limits are in this process, so this does not wait.
            let _ = lease.cancel().wait();
        }
    }
}

/// Reserves the demand of a call, if the limits are in this process and admit it now.
pub(super) fn try_reserve(set: &LimitSet, demand: Demand) -> LimitRoom {
    if set.reach() != Reach::Process {
        return LimitRoom::Unknown;
    }
    match set.try_acquire(demand).wait() {
        Ok(Attempt::Admitted(lease)) => LimitRoom::Taken(Some(HeldReservation(Some(lease.into_owned())))),
        Ok(Attempt::Denied(denial)) => denial.wait().map_or(LimitRoom::Unknown, LimitRoom::In),
        Err(_) => LimitRoom::Unknown,
    }
}

/// Makes one call.
///
/// # Cancel safety
///
/// Dropping it drops the future of the handler.
pub(super) async fn make<P, S, O, F>(
    attempt: ItemAttempt<P, S>,
    handler: Arc<impl Fn(ItemAttempt<P, S>) -> F>,
) -> End<O>
where
    F: Future<Output = CallReply<O>>,
{
    End::Replied(handler(attempt).await)
}

/// Makes one call once the limits of its account admit it.
///
/// # Cancel safety
///
/// Dropping it while it waits for the reservation leaves no trace. Dropping it later leaves the
/// estimate charged, since the call may have been made.
pub(super) async fn reserve_and_make<P, S, O, F>(
    attempt: ItemAttempt<P, S>,
    handler: Arc<impl Fn(ItemAttempt<P, S>) -> F>,
    reservation: CallReservation,
) -> End<O>
where
    F: Future<Output = CallReply<O>>,
{
    let CallReservation { set, demand, tokens, stage, held } = reservation;
    let lease = match held.and_then(HeldReservation::into_lease) {
        Some(lease) => lease,
        None => match set.acquire(demand(tokens)).await {
            Ok(lease) => lease.into_owned(),
            Err(cause) => return End::Denied(cause.to_string()),
        },
    };
    let starts = stage.compare_exchange(ADMITTING, STARTED, Ordering::AcqRel, Ordering::Acquire);
    if starts.is_err() {
        give_back(lease).await;
        return End::NotStarted;
    }
    let reply = handler(attempt).await;
    settle(lease, reply.usage, &demand).await;
    End::Replied(reply)
}

/// Cancels the reservation. If the store does not answer, the reservation stays charged until its
/// lease expires.
async fn give_back(lease: Lease<'static>) {
    let _ = lease.cancel().await;
}

/// Settles with the known usage, cancels if nothing was used, or leaves the estimate charged if the
/// usage is unknown.
async fn settle(lease: Lease<'static>, usage: TokenUsage, demand: &DemandOf) {
    match usage {
        TokenUsage::Zero => give_back(lease).await,
        TokenUsage::Known(tokens) => {
            // A usage that is not valid still ends the lease, and the limits themselves warn of it.
            let _ = lease.settle(demand(tokens)).await;
        }
        TokenUsage::Unknown => drop(lease),
    }
}
