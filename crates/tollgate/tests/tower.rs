//! The layer for tower services: waits, refuses, settles, and stays out of the way of errors.

#![cfg(feature = "tower")]

mod support;

use std::future::{Ready, pending, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use support::{advance_ms, answer, available, builder, hands, poll, set};
use tollgate::tower::{LimitLayer, LimitedError};
use tollgate::{AcquireError, DemandError, Limit, LimitBuilder, LimitSet, OnDrop, demand};
use tower_layer::Layer;
use tower_service::Service;

/// Answers with how many tokens it used; fails for a request of 13; counts what it has seen.
#[derive(Clone, Default)]
struct Provider {
    seen: Arc<AtomicUsize>,
    is_down: bool,
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("the provider's own error")]
struct Overloaded;

impl Service<i64> for Provider {
    type Response = i64;
    type Error = Overloaded;
    type Future = Ready<Result<i64, Overloaded>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Overloaded>> {
        Poll::Ready(if self.is_down { Err(Overloaded) } else { Ok(()) })
    }

    fn call(&mut self, tokens: i64) -> Self::Future {
        self.seen.fetch_add(1, Ordering::SeqCst);
        ready(if tokens == 13 { Err(Overloaded) } else { Ok(tokens) })
    }
}

fn limits() -> [LimitBuilder; 2] {
    [Limit::per_minute("tpm", 100), Limit::resource("slots", 2)]
}

fn layer(set: &LimitSet) -> LimitLayer<i64, i64> {
    LimitLayer::new(set.clone(), |_request| demand! { tpm: 50 })
}

fn left(set: &LimitSet) -> (i64, i64) {
    (available(set, "tpm"), available(set, "slots"))
}

#[test]
fn a_request_waits_for_its_turn_before_the_service_sees_it() {
    let hands = hands();
    let (set, provider) = (set(&hands, limits()), Provider::default());
    let mut service = layer(&set).layer(provider.clone());
    for _ in 0..2 {
        assert_eq!(answer(&mut service.call(7)).unwrap(), 7);
    }
    let mut waiting = service.call(8);
    assert!(poll(&mut waiting).is_pending());
    assert_eq!((provider.seen.load(Ordering::SeqCst), set.peek().wait().unwrap().waiting), (2, 1));
    advance_ms(&hands, 29_999);
    assert!(poll(&mut waiting).is_pending());
    advance_ms(&hands, 1);
    assert_eq!(answer(&mut waiting).unwrap(), 8);
    assert_eq!(left(&set), (0, 2), "what is not settled stays charged, and slots are free");
}

#[test]
fn a_layer_that_refuses_says_why_and_the_service_sees_nothing() {
    let (set, provider) = (set(&hands(), limits()), Provider::default());
    let mut service = layer(&set).refuse().layer(provider.clone());
    assert!(answer(&mut service.call(7)).is_ok() && answer(&mut service.clone().call(7)).is_ok());
    let error = answer(&mut service.call(7)).unwrap_err();
    assert_eq!(error.to_string(), "denied: tpm has 0 of the 50 asked; retry in 30s");
    let LimitedError::Denied(denial) = error else { panic!("another error") };
    assert_eq!(denial.wait(), Some(Duration::from_secs(30)));
    assert_eq!((provider.seen.load(Ordering::SeqCst), set.peek().wait().unwrap().waiting), (2, 0));
}

#[test]
fn a_response_settles_what_its_request_took() {
    let set = set(&hands(), limits());
    let mut service = layer(&set).settle(|used| demand! { tpm: *used }).layer(Provider::default());
    for (used, tokens) in [(10, 90), (0, 90), (50, 40)] {
        assert_eq!(answer(&mut service.call(used)).unwrap(), used);
        assert_eq!(left(&set), (tokens, 2));
    }
}

#[test]
fn a_report_that_is_not_valid_does_not_take_the_response_away() {
    let set = set(&hands(), limits());
    let mut service = layer(&set).settle(|used| demand! { tpm: *used }).layer(Provider::default());
    assert_eq!(answer(&mut service.call(-5)).unwrap(), -5);
    assert_eq!(left(&set), (50, 2));
}

#[test]
fn the_services_error_passes_unmasked_frees_resources_and_keeps_the_charge() {
    let set = set(&hands(), limits());
    for layer in [layer(&set), layer(&set).refuse().settle(|used| demand! { tpm: *used })] {
        let error = answer(&mut layer.layer(Provider::default()).call(13)).unwrap_err();
        assert_eq!(error.to_string(), "the provider's own error");
        assert!(matches!(error, LimitedError::Service(Overloaded)));
    }
    assert_eq!(left(&set), (0, 2));
}

#[test]
fn a_service_that_is_not_ready_is_no_matter_of_the_limits() {
    let set = set(&hands(), limits());
    let mut service = layer(&set).layer(Provider { is_down: true, ..Provider::default() });
    let Poll::Ready(Err(error)) = service.poll_ready(&mut Context::from_waker(Waker::noop())) else {
        panic!("a service that is down was ready")
    };
    assert!(matches!(error, LimitedError::Service(Overloaded)));
    assert_eq!(left(&set), (100, 2));
}

#[test]
fn a_demand_that_can_never_fit_is_an_error_of_its_own() {
    let set = set(&hands(), limits());
    let layer = LimitLayer::<i64, i64>::new(set.clone(), |tokens| demand! { tpm: *tokens });
    for (request, layer) in
        [(101, layer), (-1, LimitLayer::new(set.clone(), |t| demand! { tpm: *t }).refuse())]
    {
        let error = answer(&mut layer.layer(Provider::default()).call(request)).unwrap_err();
        let LimitedError::Acquire(AcquireError::Demand(why)) = error else { panic!("another error") };
        assert!(matches!(why, DemandError::Impossible { .. } | DemandError::BadAmount { .. }));
    }
    assert_eq!(left(&set), (100, 2));
}

#[test]
fn a_response_without_a_report_stays_charged_also_where_drops_are_refunded() {
    let set = builder(&hands(), limits()).on_drop(OnDrop::Refund).build().unwrap();
    let mut service = layer(&set).layer(Provider::default());
    answer(&mut service.call(7)).unwrap();
    assert_eq!(left(&set), (50, 2), "the call was made");
    assert!(answer(&mut service.call(13)).is_err());
    assert_eq!(left(&set), (50, 2), "a failed one is dropped, and refunded");
}

/// A service that never answers.
#[derive(Clone)]
struct Silent;

impl Service<i64> for Silent {
    type Response = i64;
    type Error = Overloaded;
    type Future = Pin<Box<dyn Future<Output = Result<i64, Overloaded>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Overloaded>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: i64) -> Self::Future {
        Box::pin(pending())
    }
}

#[test]
fn a_request_that_is_dropped_frees_its_resources_or_its_place_in_the_queue() {
    let set = set(&hands(), limits());
    let mut service = layer(&set).layer(Silent);
    let mut calls: Vec<_> = (0..3).map(|_| service.call(7)).collect();
    assert_eq!(left(&set), (100, 2), "nothing is taken before it is polled");
    assert!(calls.iter_mut().all(|call| poll(call).is_pending()));
    assert_eq!((left(&set), set.peek().wait().unwrap().waiting), ((0, 0), 1));
    drop(calls);
    assert_eq!((left(&set), set.peek().wait().unwrap().waiting), ((0, 2), 0));
}
