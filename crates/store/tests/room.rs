//! The room in which callers wait for buckets that cannot grant by themselves.
#![cfg(not(loom))]

use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;

use tollgate_core::{Span, Tick};
use tollgate_store::{Key, ManualClock, Priority, Reply, Room, RoomFull, Ticket};

const NAMESPACE: &str = "test";
const MAX: usize = 1_000;

fn key(name: &str) -> Key {
    Key::new(&[name])
}

fn stand(ticket: &mut Ticket<'_>, names: &[&str]) -> Result<bool, RoomFull> {
    let keys: Vec<Key> = names.iter().map(|name| key(name)).collect();
    ticket.stand(NAMESPACE, &keys, MAX)
}

fn may_ask(ticket: &mut Ticket<'_>, names: &[&str]) -> bool {
    let keys: Vec<Key> = names.iter().map(|name| key(name)).collect();
    ticket.may_ask(NAMESPACE, &keys, MAX).expect("there is room")
}

fn is_poked(ticket: &Ticket<'_>, hands: &ManualClock) -> bool {
    let clock = hands.clock();
    let poked = pin!(ticket.poked(&clock, None));
    matches!(poked.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()))
}

#[test]
fn who_came_first_is_first_wherever_it_stands() {
    let (room, now) = (Room::default(), Tick::from_secs(1));
    let mut tickets: Vec<_> = (0..3).map(|_| room.ticket(Priority::Normal, now)).collect();
    for (ticket, names) in tickets.iter_mut().zip([["a", "b"], ["b", "c"], ["c", "a"]]) {
        stand(ticket, &names).expect("there is room");
    }
    assert_eq!(room.waiting(), 3);
    let may =
        |tickets: &mut Vec<Ticket<'_>>| tickets.iter_mut().map(|it| may_ask(it, &[])).collect::<Vec<_>>();
    assert_eq!(may(&mut tickets), [true, false, false]);
    drop(tickets.remove(0));
    assert_eq!(may(&mut tickets), [true, false]);
    drop(tickets.remove(0));
    assert_eq!(may(&mut tickets), [true]);
    drop(tickets);
    assert!(room.is_quiet());
}

#[test]
fn whoever_stands_first_is_told_when_the_one_ahead_leaves() {
    let (room, hands) = (Room::default(), ManualClock::at(Tick::from_secs(1)));
    let mut first = room.ticket(Priority::Normal, hands.now());
    let mut second = room.ticket(Priority::Normal, hands.now());
    stand(&mut first, &["a"]).expect("there is room");
    stand(&mut second, &["a"]).expect("there is room");
    assert!(!is_poked(&second, &hands));
    drop(first);
    assert!(is_poked(&second, &hands));
    second.listen();
    assert!(!is_poked(&second, &hands));
    room.poke("other", &key("a"));
    assert!(!is_poked(&second, &hands), "that was another namespace");
    room.poke(NAMESPACE, &key("a"));
    assert!(is_poked(&second, &hands));
}

#[test]
fn a_newcomer_joins_the_line_of_those_it_may_not_overtake() {
    let (room, now) = (Room::default(), Tick::from_secs(1));
    let mut waiting = room.ticket(Priority::Normal, now);
    stand(&mut waiting, &["a"]).expect("there is room");
    assert!(room.is_ahead(NAMESPACE, &key("a"), Priority::Normal, now).is_some());
    assert!(room.is_ahead(NAMESPACE, &key("b"), Priority::Normal, now).is_none());
    assert!(room.is_ahead(NAMESPACE, &key("a"), Priority::Interactive, now).is_none(), "it may be passed");
    let mut newcomer = room.ticket(Priority::Normal, now);
    assert!(may_ask(&mut newcomer, &["b"]));
    assert!(!may_ask(&mut newcomer, &["a", "b"]));
    assert!(newcomer.stands());
    drop(waiting);
    assert!(may_ask(&mut newcomer, &["a", "b"]));
}

#[test]
fn a_full_line_turns_away_and_nothing_was_joined() {
    let (room, now) = (Room::default(), Tick::from_secs(1));
    let mut waiting = room.ticket(Priority::Normal, now);
    stand(&mut waiting, &["a"]).expect("there is room");
    let mut turned_away = room.ticket(Priority::Normal, now);
    let keys = [key("b"), key("a")];
    assert_eq!(turned_away.stand(NAMESPACE, &keys, 1), Err(RoomFull { waiting: 1, max: 1 }));
    assert!(!turned_away.stands());
    assert_eq!(room.waiting(), 1);
}

#[test]
fn an_alarm_pokes_at_its_instant_and_alarms_do_not_pile_up() {
    let (room, hands) = (Room::default(), ManualClock::at(Tick::from_secs(1)));
    let clock = hands.clock();
    let mut ticket = room.ticket(Priority::Normal, hands.now());
    stand(&mut ticket, &["a"]).expect("there is room");
    let due = hands.now() + Span::from_secs(10);
    for _ in 0..1_000 {
        let mut poked = pin!(ticket.poked(&clock, Some(due)));
        assert!(poked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert_eq!(hands.alarms(), 1);
    assert_eq!(room.is_ahead(NAMESPACE, &key("a"), Priority::Normal, hands.now()), Some(Some(due)));
    hands.set(Tick::from_micros(due.as_micros() - 1));
    assert!(!is_poked(&ticket, &hands));
    hands.set(due);
    assert!(is_poked(&ticket, &hands));
}

/// A permit that is taken and given back by many threads: each grant is in the order of arrival, and no wake-up is lost.
#[test]
fn no_wake_up_is_lost_among_threads() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 500;
    let (room, is_free, granted) = (Room::default(), AtomicBool::new(true), AtomicU64::new(0));
    let hands = ManualClock::at(Tick::from_secs(1));
    let inside = Mutex::new(());
    let clock = hands.clock();
    let take = || is_free.swap(false, Ordering::SeqCst);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let mut ticket = room.ticket(Priority::Normal, clock.now());
                    let wait = async {
                        loop {
                            ticket.listen();
                            if may_ask(&mut ticket, &["a"]) && take() {
                                return;
                            }
                            if !stand(&mut ticket, &["a"]).expect("there is room") {
                                ticket.poked(&clock, None).await;
                            }
                        }
                    };
                    Reply::later(wait).wait();
                    {
                        let _alone = inside.try_lock().expect("two have one permit");
                        granted.fetch_add(1, Ordering::SeqCst);
                    }
                    is_free.store(true, Ordering::SeqCst);
                    drop(ticket);
                    room.poke(NAMESPACE, &key("a"));
                }
            });
        }
    });
    assert_eq!(granted.into_inner(), THREADS * ROUNDS);
    assert!(room.is_quiet());
}
