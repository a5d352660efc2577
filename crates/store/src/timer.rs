//! One thread that rings the alarms of the system clock. It sleeps until the next one, and starts with the first, and
//! again with the first of a process that was forked off.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use tollgate_core::Tick;

use crate::clock::AlarmTarget;
use crate::{Alarm, Clock, PerProcess, generation};

#[derive(Default)]
pub(crate) struct Timer {
    alarms: Mutex<TimerAlarms>,
    earlier: Condvar,
    /// Set once its thread was started.
    runs: OnceLock<()>,
}

#[derive(Default)]
struct TimerAlarms {
    heap: BinaryHeap<Reverse<TimerEntry>>,
    /// The number of alarms when those whose owner is gone were last removed.
    swept: usize,
}

/// So few alarms are not worth looking through.
const NOT_SWEPT: usize = 64;

impl TimerAlarms {
    /// Adds an alarm. Those whose owner is gone are thrown out whenever the number has doubled, so that the dead
    /// are never more than the living, and each addition pays for looking at two.
    fn add(&mut self, entry: TimerEntry) {
        self.heap.push(Reverse(entry));
        if self.heap.len() > NOT_SWEPT.max(self.swept * 2) {
            self.heap.retain(|entry| !entry.0.alarm.is_gone());
            self.swept = self.heap.len();
        }
    }
}

struct TimerEntry {
    at: Tick,
    alarm: AlarmTarget,
}

impl Timer {
    pub(crate) fn get() -> &'static Timer {
        static TIMERS: OnceLock<PerProcess<Timer>> = OnceLock::new();
        let process = generation().into();
        let timer = TIMERS.get_or_init(|| PerProcess::new(process)).get(process);
        timer.runs.get_or_init(|| {
            thread::Builder::new()
                .name("tollgate-timer".into())
                .spawn(|| timer.run())
                .expect("a process that cannot start one thread cannot wait at all");
        });
        timer
    }

    fn lock(&self) -> MutexGuard<'_, TimerAlarms> {
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn alarm(&self, at: Tick, alarm: AlarmTarget) {
        let mut alarms = self.lock();
        let is_next = alarms.heap.peek().is_none_or(|next| at < next.0.at);
        alarms.add(TimerEntry { at, alarm });
        if is_next {
            self.earlier.notify_one();
        }
    }

    fn run(&self) {
        loop {
            let (at, alarm) = self.next();
            // A waker that panics must not stop the thread that rings all other alarms. The panic has been reported.
            let _ = catch_unwind(AssertUnwindSafe(|| alarm.ring(at, &Clock::system())));
        }
    }

    /// Sleeps until an alarm is due whose owner is still there.
    fn next(&self) -> (Tick, Arc<dyn Alarm>) {
        let mut alarms = self.lock();
        loop {
            let now = Clock::system().now();
            match alarms.heap.peek() {
                None => alarms = self.earlier.wait(alarms).unwrap_or_else(PoisonError::into_inner),
                Some(next) if next.0.at > now => {
                    let sleep = next.0.at.since(now).to_duration();
                    let woken = self.earlier.wait_timeout(alarms, sleep);
                    alarms = woken.unwrap_or_else(PoisonError::into_inner).0;
                }
                Some(_) => {
                    let due = alarms.heap.pop().map(|next| next.0);
                    if let Some(due) = due.and_then(|due| Some((due.at, due.alarm.upgrade()?))) {
                        return due;
                    }
                }
            }
        }
    }
}

impl PartialEq for TimerEntry {
    fn eq(&self, other: &TimerEntry) -> bool {
        self.at == other.at
    }
}

impl Eq for TimerEntry {}

impl PartialOrd for TimerEntry {
    fn partial_cmp(&self, other: &TimerEntry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TimerEntry {
    fn cmp(&self, other: &TimerEntry) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct SilentAlarm;

    impl Alarm for SilentAlarm {
        fn ring(self: Arc<Self>, _: Tick, _: &Clock) {}
    }

    #[test]
    fn alarms_whose_owners_are_gone_do_not_pile_up() {
        let mut alarms = TimerAlarms::default();
        let living: Vec<Arc<dyn Alarm>> = (0..100).map(|_| Arc::new(SilentAlarm) as Arc<dyn Alarm>).collect();
        let at = Tick::MAX;
        living.iter().for_each(|alarm| {
            alarms.add(TimerEntry { at, alarm: AlarmTarget::Alarm(Arc::downgrade(alarm)) })
        });
        for _ in 0..100_000 {
            let gone: Arc<dyn Alarm> = Arc::new(SilentAlarm);
            alarms.add(TimerEntry { at, alarm: AlarmTarget::Alarm(Arc::downgrade(&gone)) });
        }
        let kept = alarms.heap.iter().filter(|entry| !entry.0.alarm.is_gone()).count();
        assert_eq!(kept, 100);
        assert!(alarms.heap.len() <= 200, "{} alarms", alarms.heap.len());
    }
}
