//! Work under a lease: committed if it succeeds, given back if it does not.

use std::future::IntoFuture;

use tollgate_store::Reply;

use crate::{Acquire, AcquireError, Error, Lease, LeaseError, LimiterError, LimiterLease};

/// What an [`Acquire`] answers: a lease of either kind, or why there is none.
pub trait AcquireOutput {
    /// The lease.
    type Lease: EndLease;

    /// The lease, or why there is none as an error of any kind.
    ///
    /// # Errors
    ///
    /// The reason that there is no lease.
    fn into_result(self) -> Result<Self::Lease, Error>;
}

/// What can end without its owner waiting: a lease of either kind.
pub trait EndLease {
    /// Ends it as it was taken and reported.
    ///
    /// # Cancel safety
    ///
    /// When this returns, awaited or not, the lease has ended, or its end was sent to the store.
    ///
    /// # Errors
    ///
    /// The store could not write the end of the lease.
    fn commit(self) -> Reply<'static, Result<(), LeaseError>>;

    /// Gives everything back, as if nothing had been taken or reported. What has to be sent is sent in the background.
    fn give_back(&mut self);
}

/// A lease while work goes on under it. Dropped with it, by an early return, a panic or a cancelled task, it is given back.
struct WorkGuard<L: EndLease>(Option<L>);

impl<L: EndLease> Drop for WorkGuard<L> {
    fn drop(&mut self) {
        if let Some(lease) = &mut self.0 {
            lease.give_back();
        }
    }
}

impl<S, D> Acquire<'_, S, D> {
    /// Waits for a lease and calls `work` with it. If `work` succeeds, the lease is committed, with what was reported; if it
    /// fails, panics or is cancelled, everything is given back.
    ///
    /// ```
    /// use tollgate::{demand, Limit, LimitSet};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let set = LimitSet::new([Limit::per_minute("tpm", 1_000)])?;
    /// let answer = set.acquire(demand! { tpm: 400 }).run(async |lease| {
    ///     // ... call the API ...
    ///     lease.report(demand! { tpm: 150 })?;
    ///     Ok::<_, tollgate::Error>("an answer")
    /// });
    /// assert_eq!(answer.await?, "an answer");
    /// assert_eq!(set.peek().await?.limits[0].available(), 850);
    ///
    /// let failed = set.acquire(demand! { tpm: 400 }).run(async |_| {
    ///     Err::<(), Box<dyn std::error::Error>>("no route to the host".into())
    /// });
    /// assert!(failed.await.is_err());
    /// assert_eq!(set.peek().await?.limits[0].available(), 850, "everything was given back");
    /// # Ok::<(), tollgate::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropped before `work` has succeeded, it leaves nothing taken.
    ///
    /// # Errors
    ///
    /// Why there was no lease, what `work` answers, or why the store could not write the end of the lease.
    pub async fn run<T, E, F>(self, work: F) -> Result<T, E>
    where
        Self: IntoFuture<Output: AcquireOutput>,
        F: AsyncFnOnce(&mut LeaseOf<Self>) -> Result<T, E>,
        E: From<Error>,
    {
        let mut guard = WorkGuard(Some(self.await.into_result()?));
        let lease = guard.0.as_mut().expect("it was put there");
        let answer = work(lease).await?;
        let lease = guard.0.take().expect("it was put there");
        lease.commit().await.map_err(Error::Lease)?;
        Ok(answer)
    }
}

/// The lease that an [`Acquire`] is for.
type LeaseOf<A> = <<A as IntoFuture>::Output as AcquireOutput>::Lease;

impl<'a> AcquireOutput for Result<Lease<'a>, AcquireError> {
    type Lease = Lease<'a>;

    fn into_result(self) -> Result<Lease<'a>, Error> {
        self.map_err(Error::Acquire)
    }
}

impl<'a> AcquireOutput for Result<LimiterLease<'a>, LimiterError> {
    type Lease = LimiterLease<'a>;

    fn into_result(self) -> Result<LimiterLease<'a>, Error> {
        self.map_err(Error::Limiter)
    }
}

impl EndLease for Lease<'_> {
    fn commit(self) -> Reply<'static, Result<(), LeaseError>> {
        Lease::commit(self)
    }

    fn give_back(&mut self) {
        self.cancel_detached();
    }
}

impl EndLease for LimiterLease<'_> {
    fn commit(self) -> Reply<'static, Result<(), LeaseError>> {
        LimiterLease::commit(self)
    }

    fn give_back(&mut self) {
        self.cancel_detached();
    }
}
