//! One call: reserve, ask the handler, settle.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tollgate::{Attempt, Demand, Lease, LimitSet, Reach};

use crate::item::{CallReply, ItemAttempt, TokenUsage};

/// Not yet started: something has to be reserved first.
pub(super) const ADMITTING: u8 = 0;
/// The handler has it.
pub(super) const STARTED: u8 = 1;
/// A cooldown began before it started, and it never will.
pub(super) const RECALLED: u8 = 2;

/// What a call takes from the limits of its account.
pub(super) type DemandOf = Arc<dyn Fn(u64) -> Demand + Send + Sync>;

/// How a call ended.
pub(super) enum End<O> {
    /// The handler answered.
    Replied(CallReply<O>),
    /// It did not start, and has given back what it had reserved.
    GaveBack,
    /// What it asks can never be reserved.
    Denied(String),
}

/// What to reserve, and whether that still makes sense.
pub(super) struct Reservation {
    pub(super) set: LimitSet,
    pub(super) demand: DemandOf,
    pub(super) tokens: u64,
    pub(super) stage: Arc<AtomicU8>,
    /// What was reserved already.
    pub(super) held: Option<HeldReservation>,
}

/// What was reserved for a call that has not started. Dropped, all of it is given back.
pub(super) struct HeldReservation(Option<Lease<'static>>);

/// Whether the limits of an account have room.
pub(super) enum LimitRoom {
    /// They had, and it is taken; nothing if there are no limits.
    Taken(Option<HeldReservation>),
    /// Not for so long.
    In(Duration),
    /// Only a waiter in the queue finds out.
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

/// Takes what a call of so many tokens needs, if there is room and that is known at once.
pub(super) fn room(set: &LimitSet, demand: Demand) -> LimitRoom {
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
/// That of the handler.
pub(super) async fn make<P, S, O, F>(
    attempt: ItemAttempt<P, S>,
    handler: Arc<impl Fn(ItemAttempt<P, S>) -> F>,
) -> End<O>
where
    F: Future<Output = CallReply<O>>,
{
    End::Replied(handler(attempt).await)
}

/// Makes one call once there is room for it in the limits of its account.
///
/// # Cancel safety
///
/// Dropping it while it waits for its reservation leaves no trace; dropping it later keeps the estimate charged, since
/// the call may have been made.
pub(super) async fn reserve_and_make<P, S, O, F>(
    attempt: ItemAttempt<P, S>,
    handler: Arc<impl Fn(ItemAttempt<P, S>) -> F>,
    reservation: Reservation,
) -> End<O>
where
    F: Future<Output = CallReply<O>>,
{
    let Reservation { set, demand, tokens, stage, held } = reservation;
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
        return End::GaveBack;
    }
    let reply = handler(attempt).await;
    settle(lease, reply.usage, &demand).await;
    End::Replied(reply)
}

/// Gives back all of it. Where the store is away it stays charged, which the store's own policy is about.
async fn give_back(lease: Lease<'static>) {
    let _ = lease.cancel().await;
}

/// Settles with what was used: known, nothing, or unknown, in which case the estimate stays charged.
async fn settle(lease: Lease<'static>, usage: TokenUsage, demand: &DemandOf) {
    match usage {
        TokenUsage::Zero => give_back(lease).await,
        TokenUsage::Known(tokens) => {
            // A report that is not valid still ends the lease; the limits themselves warn of it.
            let _ = lease.settle(demand(tokens)).await;
        }
        TokenUsage::Unknown => drop(lease),
    }
}
