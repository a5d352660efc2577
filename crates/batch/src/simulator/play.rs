//! A batch on a clock that jumps, with nothing but the machine of the scope.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use tollgate::Tick;
use tollgate_provider::{Class, Hint};

use super::SimProvider;
use crate::pace::Load;
use crate::scope::{CooldownPolicy, PaceScope, Permit, StartQueue, StartedCall};

/// After so many calls for each item it ends, whatever is left: a pace that lets nothing pass would never end.
const CALLS_MAX: u64 = 50;

/// What came of it.
#[derive(Clone, Debug)]
pub struct Played {
    /// When the last item was done.
    pub makespan: Tick,
    /// Calls that were made.
    pub calls: u64,
    /// Calls that were refused.
    pub rejected: u64,
    /// Cooldowns.
    pub generations: u64,
    /// The machine, at the end.
    pub scope: PaceScope,
}

struct SimReply {
    item: usize,
    call: StartedCall,
    hint: Hint,
}

/// Calls `provider` for items of these sizes with so many workers until all are done.
pub fn play(provider: &mut SimProvider, sizes: &[u64], workers: usize, seed: u64) -> Played {
    let mut scope = PaceScope::new(CooldownPolicy::default(), seed);
    let mut line = StartQueue::default();
    (0..sizes.len()).for_each(|item| line.put(item));
    let mut replies: BinaryHeap<Reverse<(Tick, u64)>> = BinaryHeap::new();
    let mut under_way: HashMap<u64, SimReply> = HashMap::new();
    let (mut now, mut number, mut done) = (Tick::ZERO, 0_u64, 0);
    while done < sizes.len() && number < CALLS_MAX * sizes.len() as u64 {
        let mut wake = None;
        while under_way.len() < workers {
            let Some(item) = line.peek().copied() else { break };
            let load = Load::tokens(sizes[item]);
            match scope.permit(now, load) {
                Permit::Now => {}
                Permit::CoolingUntil(at) | Permit::PacedUntil(at) => {
                    wake = Some(at);
                    break;
                }
                Permit::Closed(_) => break,
            }
            line.take();
            let call = scope.start(now, load);
            let (hint, latency) = provider.call(now, sizes[item]);
            number += 1;
            replies.push(Reverse((now + latency, number)));
            under_way.insert(number, SimReply { item, call, hint });
        }
        let reply = replies.peek().map(|Reverse((at, _))| *at);
        let Some(next) = [wake, reply].into_iter().flatten().min() else { break };
        now = next;
        while let Some(Reverse((at, number))) = replies.peek().copied() {
            if at > now {
                break;
            }
            replies.pop();
            let Some(reply) = under_way.remove(&number) else { continue };
            scope.reply(now, &reply.call, &reply.hint, true);
            match reply.hint.class {
                Class::Ok => done += 1,
                _ => line.park(reply.item),
            }
        }
    }
    let counters = scope.counters();
    let (calls, rejected, generations) = (counters.calls, counters.rejected, counters.generations);
    Played { makespan: now, calls, rejected, generations, scope }
}

/// How long it takes who never waits: a call starts as soon as a worker is free, and what is refused is called again at once.
pub fn play_at_once(provider: &mut SimProvider, sizes: &[u64], workers: usize) -> Tick {
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
