//! Buckets that are forgotten and namespaces that are closed, as seen by those who are in the middle of something.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tollgate_core::Limit;
use tollgate_store::{
    Backend, CellChain, Clock, Key, Memory, Priority, QueueKey, Scope, Store, StoreError, WaitError,
    WaitRequest,
};

use crate::fixture::{START, each, is_taken, limits, memory, place, take, together};

#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn who_waits_for_a_bucket_that_is_forgotten_is_told() {
    let (hands, memory) = memory();
    let limits = limits([Limit::resource("slots", 1)]);
    let (key, one) = (Key::new(&["user", "api"]), each(&limits, 1));
    take(&memory, None, place(&key, &limits), &one).unwrap();
    let (cell, clock) = (memory.cell(&place(&key, &limits)).unwrap(), hands.clock());
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut wait = pin!(cell.acquire(&clock, WaitRequest::of(one.clone())));
    assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!(memory.forget("test", Scope::Entity("user")).wait(), Ok(1));
    assert_eq!(bell.0.load(Ordering::SeqCst), 1);
    let Poll::Ready(outcome) = wait.as_mut().poll(&mut Context::from_waker(&waker)) else { panic!("told") };
    assert_eq!(outcome, Err(WaitError::Gone));
    assert_eq!(
        cell.acquire(&clock, WaitRequest::of(one.clone())).wait(),
        Err(WaitError::Gone),
        "late as well"
    );
    assert_eq!(cell.waiting(), 0);
    assert!(is_taken(&take(&memory, None, place(&key, &limits), &one)));
}

#[test]
fn a_chain_with_a_forgotten_bucket_takes_nothing() {
    let (hands, memory) = memory();
    let limits = limits([Limit::per_day("calls", 10)]);
    let (one, clock) = (each(&limits, 1), hands.clock());
    let keys = ["child", "parent"].map(|name| Key::new(&[name, "api"]));
    let cells = keys.each_ref().map(|key| memory.cell(&place(key, &limits)).unwrap());
    let chain = CellChain::new(cells.to_vec()).unwrap();
    memory.forget("test", Scope::Entity("parent")).wait().unwrap();
    assert!(chain.try_take(&clock, &[&one, &one], None, Priority::default()).is_err());
    assert_eq!(cells[0].peek(&clock)[0].available(), 10);
}

#[test]
fn a_waiter_for_a_bucket_that_is_forgotten_asks_again() {
    let (hands, memory) = memory();
    let limits = limits([Limit::resource("slots", 1)]);
    let key = Key::new(&["user", "api"]);
    take(&memory, None, place(&key, &limits), &each(&limits, 1)).unwrap();
    let mut guard = memory.wait_queues().guard(&hands.clock(), Priority::default(), START);
    let queue = QueueKey { namespace: "test".into(), bucket: key.clone(), limit: "slots".into() };
    guard.enqueue([queue], 10).unwrap();
    let mut notified = pin!(guard.notified(None));
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    assert!(notified.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    memory.forget("test", Scope::All).wait().unwrap();
    assert_eq!(bell.0.load(Ordering::SeqCst), 1);
    assert!(notified.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
}

fn try_take(memory: &Memory, clock: &Clock, key: &str) -> Result<bool, StoreError> {
    let limits = limits([Limit::per_day("calls", 10)]);
    let taken = memory.namespace("test").try_take(
        clock,
        &["user", key],
        &limits,
        &each(&limits, 1),
        Priority::default(),
    );
    taken.map(|taken| taken.is_ok())
}

#[test]
fn a_closed_namespace_has_no_new_keys_by_any_way_in() {
    let (hands, memory) = memory();
    let clock = hands.clock();
    assert_eq!(try_take(&memory, &clock, "there"), Ok(true));
    memory.close("test").wait().unwrap();
    assert_eq!(try_take(&memory, &clock, "there"), Ok(true), "what is there stays");
    let gone = StoreError::NamespaceGone("test".into());
    assert_eq!(try_take(&memory, &clock, "new"), Err(gone.clone()));
    let limits = limits([Limit::per_day("calls", 10)]);
    let key = Key::new(&["user", "new"]);
    assert_eq!(memory.cell(&place(&key, &limits)).err(), Some(gone.clone()));
    assert!(memory.pin(&place(&key, &limits)).is_none());
    assert_eq!(memory.namespace("test").len(), 1);
    memory.forget("test", Scope::All).wait().unwrap();
    assert_eq!(try_take(&memory, &clock, "there"), Err(gone));
    assert_eq!(memory.namespace("test").len(), 0);
}

#[test]
fn nothing_is_made_after_a_namespace_was_closed_however_many_threads_try() {
    for _ in 0..20 {
        let (hands, memory) = memory();
        let clock = hands.clock();
        together(4, |thread| {
            if thread == 0 {
                memory.close("test").wait().unwrap();
                // Keys that were let in before are here to be forgotten, and none comes after.
                while memory.forget("test", Scope::All).wait() != Ok(0) {}
                assert_eq!(memory.namespace("test").len(), 0);
                return;
            }
            let mut tries = (0..).map(|number| try_take(&memory, &clock, &format!("{thread}-{number}")));
            assert!(tries.any(|taken| taken == Err(StoreError::NamespaceGone("test".into()))));
        });
        assert_eq!(memory.namespace("test").len(), 0);
    }
}

#[test]
fn the_keys_of_other_kinds_are_forgotten_with_all_and_stand_in_no_list() {
    let (_hands, memory) = memory();
    let limits = limits([Limit::per_day("calls", 10)]);
    for key in [Key::new(&["one"]), Key::new(&["one", "two"]), Key::new(&["one", "two", "three"])] {
        take(&memory, None, place(&key, &limits), &each(&limits, 1)).unwrap();
    }
    assert_eq!(memory.buckets("test", Scope::All, None, 10).wait().unwrap().items.len(), 1);
    assert_eq!(memory.forget("test", Scope::Entity("one")).wait(), Ok(1));
    assert_eq!(memory.forget("test", Scope::All).wait(), Ok(2));
    assert!(memory.clock().now() == START && memory.namespace("test").is_empty());
}
