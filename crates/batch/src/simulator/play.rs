//! A batch on a clock that jumps, with nothing but the machine of the scope.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tollgate::Tick;
use tollgate_provider::{Class, Hint};

use super::Provider;
use crate::pace::Load;
use crate::scope::{Call, Line, Permit, Rules, Scope};

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
    pub scope: Scope,
}

struct Reply {
    item: usize,
    call: Call,
    hint: Hint,
}

/// Calls `provider` for items of these sizes with so many workers until all are done.
pub fn play(provider: &mut Provider, sizes: &[u64], workers: usize, seed: u64) -> Played {
    let mut scope = Scope::new(Rules::default(), seed);
    let mut line = Line::default();
    (0..sizes.len()).for_each(|item| line.put(item));
    let mut replies: BinaryHeap<Reverse<(Tick, u64)>> = BinaryHeap::new();
    let mut under_way: std::collections::HashMap<u64, Reply> = Default::default();
    let (mut now, mut number, mut done) = (Tick::ZERO, 0_u64, 0);
    while done < sizes.len() {
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
                Permit::AfterReply | Permit::Closed(_) => break,
            }
            line.take();
            let call = scope.start(now, load);
            let (hint, latency) = provider.call(now, sizes[item]);
            number += 1;
            replies.push(Reverse((now + latency, number)));
            under_way.insert(number, Reply { item, call, hint });
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
            scope.reply(now, &reply.call, &reply.hint);
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
