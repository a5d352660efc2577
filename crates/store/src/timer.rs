//! One thread that rings the alarms of the system clock. It sleeps until the next one, and starts with the first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, OnceLock, Weak};
use std::thread;

use parking_lot::{Condvar, Mutex};
use tollgate_core::Tick;

use crate::{Alarm, Clock};

pub(crate) struct Timer {
    alarms: Mutex<BinaryHeap<Reverse<Entry>>>,
    earlier: Condvar,
}

struct Entry {
    at: Tick,
    alarm: Weak<dyn Alarm>,
}

impl Timer {
    pub(crate) fn get() -> &'static Timer {
        static TIMER: OnceLock<&'static Timer> = OnceLock::new();
        TIMER.get_or_init(|| {
            // It lives as long as the process, like the thread that owns it.
            let timer: &'static Timer =
                Box::leak(Box::new(Timer { alarms: Mutex::default(), earlier: Condvar::new() }));
            thread::Builder::new()
                .name("tollgate-timer".into())
                .spawn(|| timer.run())
                .expect("a process that cannot start one thread cannot wait at all");
            timer
        })
    }

    pub(crate) fn alarm(&self, at: Tick, alarm: Weak<dyn Alarm>) {
        let mut alarms = self.alarms.lock();
        let is_next = alarms.peek().is_none_or(|next| at < next.0.at);
        alarms.push(Reverse(Entry { at, alarm }));
        if is_next {
            self.earlier.notify_one();
        }
    }

    fn run(&self) {
        loop {
            self.next().ring(&Clock::system());
        }
    }

    /// Sleeps until an alarm is due whose owner is still there.
    fn next(&self) -> Arc<dyn Alarm> {
        let mut alarms = self.alarms.lock();
        loop {
            let now = Clock::system().now();
            match alarms.peek() {
                None => self.earlier.wait(&mut alarms),
                Some(next) if next.0.at > now => {
                    let sleep = next.0.at.since(now).to_duration();
                    self.earlier.wait_for(&mut alarms, sleep);
                }
                Some(_) => {
                    if let Some(alarm) = alarms.pop().and_then(|next| next.0.alarm.upgrade()) {
                        return alarm;
                    }
                }
            }
        }
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.at == other.at
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}
