//! The simulation of a batch: the state machine of a scope on a clock that jumps.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use tollgate::{Span, Tick};
use tollgate_provider::{Class, Hint};

use super::SimProvider;
use crate::pace::Load;
use crate::scope::{CooldownPolicy, PaceScope, Permit, StartQueue, StartedCall};

/// The most calls for each item: a pace that lets no call pass would never end.
const CALLS_MAX: u64 = 50;

/// The result of a simulation.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// When the last item was done.
    pub makespan: Tick,
    /// How many calls were made.
    pub calls: u64,
    /// How many calls were refused.
    pub rejected: u64,
    /// How many cooldowns began.
    pub generations: u64,
    /// The state machine at the end.
    pub scope: PaceScope,
}

/// A call between its start and its reply.
struct ArrivingCall {
    item: usize,
    call: StartedCall,
    /// What the provider answered, once the call has arrived there.
    hint: Option<Hint>,
}

/// Calls `provider` for items of these sizes with `workers` workers until all are done.
pub fn simulate(provider: &mut SimProvider, sizes: &[u64], workers: usize, seed: u64) -> Simulated {
    let mut scope = PaceScope::new(CooldownPolicy::default(), seed);
    let mut queue = StartQueue::default();
    (0..sizes.len()).for_each(|item| queue.put(item));
    let mut events: BinaryHeap<Reverse<(Tick, u64)>> = BinaryHeap::new();
    let mut in_flight: HashMap<u64, ArrivingCall> = HashMap::new();
    let (mut now, mut number, mut done) = (Tick::ZERO, 0_u64, 0);
    while done < sizes.len() && number < CALLS_MAX * sizes.len() as u64 {
        let mut wake = None;
        while in_flight.len() < workers {
            let Some(item) = queue.peek().copied() else { break };
            let load = Load::tokens(sizes[item]);
            match scope.permit(now, load) {
                Permit::Now => {}
                Permit::CoolingUntil(at) | Permit::PacedUntil(at) => {
                    wake = Some(at);
                    break;
                }
                Permit::Closed(_) => break,
            }
            queue.take();
            let call = scope.start(now, load);
            let way = provider.delay();
            number += 1;
            let (hint, after) = match way {
                Span::ZERO => {
                    let (hint, latency) = provider.call(now, sizes[item]);
                    (Some(hint), latency)
                }
                way => (None, way),
            };
            events.push(Reverse((now + after, number)));
            in_flight.insert(number, ArrivingCall { item, call, hint });
        }
        let event = events.peek().map(|Reverse((at, _))| *at);
        let Some(next) = [wake, event].into_iter().flatten().min() else { break };
        now = next;
        while let Some(Reverse((at, number))) = events.peek().copied() {
            if at > now {
                break;
            }
            events.pop();
            let Some(ArrivingCall { item, call, hint }) = in_flight.remove(&number) else { continue };
            let Some(hint) = hint else {
                let (hint, latency) = provider.call(now, sizes[item]);
                events.push(Reverse((now + latency, number)));
                in_flight.insert(number, ArrivingCall { item, call, hint: Some(hint) });
                continue;
            };
            scope.reply(now, &call, &hint, true);
            match hint.class {
                Class::Ok => done += 1,
                _ => queue.park(item),
            }
        }
    }
    let counters = scope.counters();
    let (calls, rejected, generations) = (counters.calls, counters.rejected, counters.generations);
    Simulated { makespan: now, calls, rejected, generations, scope }
}

/// Returns how long a caller takes that never waits: a call starts as soon as a worker is free, and
/// a refused item is called again at once.
pub fn simulate_without_waiting(provider: &mut SimProvider, sizes: &[u64], workers: usize) -> Tick {
    let mut waiting: Vec<usize> = (0..sizes.len()).rev().collect();
    let mut replies: BinaryHeap<Reverse<(Tick, usize, bool)>> = BinaryHeap::new();
    let mut now = Tick::ZERO;
    loop {
        while replies.len() < workers
            && let Some(item) = waiting.pop()
        {
            let (hint, latency) = provider.call(now, sizes[item]);
            replies.push(Reverse((now + latency, item, hint.class == Class::Ok)));
        }
        let Some(Reverse((at, item, is_done))) = replies.pop() else { return now };
        now = at;
        if !is_done {
            waiting.push(item);
        }
    }
}
