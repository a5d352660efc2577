//! A layer for tower services: every request acquires before it is passed on.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tollgate_core::{AsDemand, Denial};
use tower_layer::Layer;
use tower_service::Service;

use crate::{AcquireError, Attempt, LimitSet};

type DemandFn<Request> = dyn Fn(&Request) -> Box<dyn AsDemand + Send> + Send + Sync;
type UsageOf<Response> = dyn Fn(&Response) -> Box<dyn AsDemand + Send> + Send + Sync;

/// Limits a service by a set: requests wait for their turn, or are refused, before the service sees them.
///
/// ```
/// use tollgate::{demand, tower::LimitLayer, Limit, LimitSet};
/// use tower_layer::Layer;
///
/// # struct Echo;
/// let set = LimitSet::new([Limit::per_second("rps", 100)])?;
/// let layer = LimitLayer::<String, String>::new(set, |_request| demand! { rps: 1 });
/// let service = layer.layer(Echo);
/// # Ok::<(), tollgate::LimitsError>(())
/// ```
pub struct LimitLayer<Request, Response> {
    shared: Arc<LayerShared<Request, Response>>,
}

struct LayerShared<Request, Response> {
    set: LimitSet,
    demand: Box<DemandFn<Request>>,
    usage: Option<Box<UsageOf<Response>>>,
    refuses: bool,
}

/// A service behind a [`LimitLayer`].
///
/// ```
/// use tollgate::{demand, tower::LimitLayer, Limit, LimitSet};
/// use tower_layer::Layer;
///
/// # struct Echo;
/// let set = LimitSet::new([Limit::per_second("rps", 100)])?;
/// let layer = LimitLayer::<String, String>::new(set, |_request| demand! { rps: 1 });
/// let limited: tollgate::tower::Limited<Echo, String, String> = layer.layer(Echo);
/// # drop(limited);
/// # Ok::<(), tollgate::LimitsError>(())
/// ```
pub struct Limited<S, Request, Response> {
    inner: S,
    shared: Arc<LayerShared<Request, Response>>,
}

/// Why a request failed.
///
/// ```
/// use tollgate::tower::LimitedError;
///
/// fn status(error: &LimitedError<std::io::Error>) -> u16 {
///     match error {
///         LimitedError::Denied(_) => 429,
///         LimitedError::Acquire(_) => 503,
///         _ => 500,
///     }
/// }
///
/// assert_eq!(status(&LimitedError::Service(std::io::Error::other("no route"))), 500);
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LimitedError<E> {
    /// The limits deny it, and the layer does not wait.
    #[error("denied: {0}")]
    Denied(Box<Denial>),
    /// Nothing could be acquired.
    #[error(transparent)]
    Acquire(AcquireError),
    /// The service failed.
    #[error(transparent)]
    Service(E),
}

impl<Request, Response> LimitLayer<Request, Response> {
    /// Limits by `set`, of which each request takes what `demand` says.
    pub fn new<D: AsDemand + Send + 'static>(
        set: LimitSet,
        demand: impl Fn(&Request) -> D + Send + Sync + 'static,
    ) -> LimitLayer<Request, Response> {
        let demand = Box::new(move |request: &Request| Box::new(demand(request)) as _);
        LimitLayer { shared: Arc::new(LayerShared { set, demand, usage: None, refuses: false }) }
    }

    /// Settles each request with what `usage` reads from its response.
    #[must_use]
    pub fn settle<D: AsDemand + Send + 'static>(
        self,
        usage: impl Fn(&Response) -> D + Send + Sync + 'static,
    ) -> Self {
        let usage = Box::new(move |response: &Response| Box::new(usage(response)) as _);
        self.with(|shared| shared.usage = Some(usage))
    }

    /// Refuses requests that would have to wait.
    #[must_use]
    pub fn refuse(self) -> Self {
        self.with(|shared| shared.refuses = true)
    }

    fn with(mut self, change: impl FnOnce(&mut LayerShared<Request, Response>)) -> Self {
        change(Arc::get_mut(&mut self.shared).expect("a layer is configured before it is used"));
        self
    }
}

impl<Request, Response> Clone for LimitLayer<Request, Response> {
    fn clone(&self) -> Self {
        LimitLayer { shared: Arc::clone(&self.shared) }
    }
}

impl<S, Request, Response> Layer<S> for LimitLayer<Request, Response> {
    type Service = Limited<S, Request, Response>;

    fn layer(&self, inner: S) -> Self::Service {
        Limited { inner, shared: Arc::clone(&self.shared) }
    }
}

impl<S: Clone, Request, Response> Clone for Limited<S, Request, Response> {
    fn clone(&self) -> Self {
        Limited { inner: self.inner.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<S, Request> Service<Request> for Limited<S, Request, S::Response>
where
    S: Service<Request> + Clone + Send + 'static,
    S::Future: Send,
    S::Response: Send + 'static,
    S::Error: Send + 'static,
    Request: Send + 'static,
{
    type Response = S::Response;
    type Error = LimitedError<S::Error>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context).map_err(LimitedError::Service)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        // The clone is not ready, so it takes the place of the one that is.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let demand = (shared.demand)(&request);
            let lease = if shared.refuses {
                match shared.set.try_acquire(demand).await.map_err(LimitedError::Acquire)? {
                    Attempt::Admitted(lease) => lease,
                    Attempt::Denied(denial) => return Err(LimitedError::Denied(denial)),
                }
            } else {
                shared.set.acquire(demand).await.map_err(LimitedError::Acquire)?
            };
            let response = inner.call(request).await.map_err(LimitedError::Service)?;
            // The caller has its response; a report that is missing or not valid must not take it away.
            match &shared.usage {
                Some(usage) => drop(lease.settle(usage(&response)).await),
                None => drop(lease.commit().await),
            }
            Ok(response)
        })
    }
}
