//! Claims of waiters: what a take sends about the position of its caller among the waiters of all processes.
//!
//! The server has a list of the waiters for each limit, by rank, and for each bucket the expiry of its claims. A script reads
//! both only if the value of the bucket is marked as one that may have waiters, so a take without waiters costs no more. A
//! waiter claims with the same call that asks again, and the call that grants removes its claims.

use std::collections::BTreeMap;

use tokio::task::JoinHandle;
use tollgate_core::{Span, Tick};
use tollgate_store::workers::CallTimer;
use tollgate_store::{Clock, Mutex, OwnedTransaction, QueuePlace, Rank, Step, Transaction};

use crate::inner::RedisInner;

/// How many waiters may have claims before those that were not renewed are removed.
const NOTED_MAX: usize = 4_096;

/// After how long a claim that was not renewed is removed: longer than it holds.
const OUTDATED_AFTER: Span = Span::from_secs(2);

/// The claims of this process that the server may know of.
pub(crate) struct Claims {
    /// Distinguishes the waiters of this process from those of others.
    instance: u64,
    by_rank: Mutex<BTreeMap<Rank, ClaimState>>,
}

/// The claims of one waiter, and when they were last sent to the server by this host's clock.
struct ClaimState {
    at: Tick,
    claims: Vec<ClaimKeys>,
}

/// The keys under which the server has a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ClaimKeys {
    bucket: Vec<u8>,
    claims: Vec<u8>,
    queue: Vec<u8>,
    limit: Box<str>,
}

/// A limit that a call takes from, and for which it may have to wait.
struct TakenLimit {
    step: usize,
    place: usize,
    amount: u64,
    keys: ClaimKeys,
}

/// The position among waiters of a caller that took nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueStatus {
    /// The limit that waiters ahead of the caller claim.
    pub(crate) held: Option<ClaimedLimit>,
    /// How many waiters are ahead, if the caller waits itself.
    pub(crate) ahead: u32,
}

/// A limit that is claimed by waiters ahead of a caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimedLimit {
    pub(crate) step: usize,
    pub(crate) place: usize,
}

/// The arguments of `apply.lua` for a call that takes in turn, after those of any call.
pub(crate) struct InTurn {
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) arguments: Vec<Vec<u8>>,
}

impl Claims {
    pub(crate) fn new() -> Claims {
        // Without randomness, waiters of two processes that are due in one microsecond have no order.
        Claims { instance: getrandom::u64().unwrap_or_default(), by_rank: Mutex::default() }
    }

    /// Returns the 16 bytes that name a waiter, and order waiters that are due at the same time.
    fn waiter(&self, rank: Rank) -> Vec<u8> {
        [rank.ticket.to_be_bytes(), self.instance.to_be_bytes()].concat()
    }

    fn rank_bytes(&self, rank: Rank) -> Vec<u8> {
        [&number(rank.due.as_micros())[..], &self.waiter(rank)].concat()
    }

    fn note(&self, rank: Rank, keys: ClaimKeys) {
        let at = Clock::system().now();
        let mut by_rank = self.by_rank.lock();
        if by_rank.len() >= NOTED_MAX {
            // A waiter may leave while the call of a waiter ahead of it is being made, and be noted after that.
            by_rank.retain(|_, noted| at.since(noted.at) < OUTDATED_AFTER);
        }
        let noted = by_rank.entry(rank).or_insert(ClaimState { at, claims: Vec::new() });
        noted.at = at;
        if !noted.claims.contains(&keys) {
            noted.claims.push(keys);
        }
    }

    /// Forgets the claims of a waiter that was granted: the server has removed them.
    pub(crate) fn granted(&self, rank: Option<Rank>) {
        rank.map(|rank| self.by_rank.lock().remove(&rank));
    }
}

impl QueueStatus {
    /// Parses the reply of `apply.lua` to a call that takes in turn.
    pub(crate) fn of(bytes: &[u8]) -> QueueStatus {
        let (numbers, _) = bytes.as_chunks::<8>();
        let [step, place, ahead] = numbers else { return QueueStatus::default() };
        let number = |bytes: &[u8; 8]| f64::from_le_bytes(*bytes) as u32;
        let place_of = |bytes: &[u8; 8]| Some(number(bytes).checked_sub(1)? as usize);
        let held = place_of(step).zip(place_of(place)).map(|(step, place)| ClaimedLimit { step, place });
        QueueStatus { held, ahead: number(ahead) }
    }
}

impl RedisInner {
    fn limits_taken(&self, call: &Transaction<'_>) -> Vec<TakenLimit> {
        let of_step = |(index, step): (usize, &Step<'_>)| {
            let (place, layout) = (step.place, &self.service.layout);
            let costs = step.takes().into_iter().flat_map(|costs| costs.amounts().iter().copied());
            // Other limits keep no caller waiting, or all of them until the same instant.
            let limits = place.limits.iter().zip(costs).enumerate().filter(|(_, (limit, amount))| {
                *amount > 0 && !limit.is_shadow() && !limit.is_cooldown() && !limit.is_unbounded()
            });
            let taken = limits.map(|(at, (limit, amount))| {
                let limit = limit.name().as_str();
                let keys = ClaimKeys {
                    bucket: layout.bucket(place.namespace, place.key),
                    claims: layout.claims(place.namespace, place.key),
                    queue: layout.queue(place.namespace, place.key, limit),
                    limit: limit.into(),
                };
                TakenLimit { step: index, place: at, amount, keys }
            });
            taken.collect::<Vec<_>>()
        };
        call.steps.iter().enumerate().flat_map(of_step).collect()
    }

    /// Returns the arguments about the caller's place. From here on the server may know of the claims.
    pub(crate) fn in_turn(&self, call: &Transaction<'_>, place: &QueuePlace) -> InTurn {
        let taken = self.limits_taken(call);
        let own = |step: &Step<'_>| self.service.layout.claims(step.place.namespace, step.place.key);
        let mut keys: Vec<Vec<u8>> = call.steps.iter().map(own).collect();
        keys.extend(taken.iter().map(|limit| limit.keys.queue.clone()));
        let mut arguments = vec![match place.rank {
            Some(rank) => self.claims.rank_bytes(rank),
            None => number(place.priority.patience().as_micros()).to_vec(),
        }];
        for TakenLimit { step, place: at, amount, keys } in taken {
            let is_same = |queue: &tollgate_store::QueueKey| {
                self.service.layout.queue(&queue.namespace, &queue.bucket, &queue.limit) == keys.queue
            };
            let claim = place.claims.iter().find(|claim| is_same(&claim.limit));
            let numbers = [step as u64 + 1, at as u64 + 1, amount, u64::from(claim.is_some())];
            let mut argument: Vec<u8> = numbers.into_iter().flat_map(number).collect();
            argument.extend(keys.limit.as_bytes());
            let followers = claim.map_or(&[][..], |claim| &claim.followers);
            let behind = followers.iter().flat_map(|rank| self.claims.rank_bytes(*rank)).collect();
            arguments.extend([argument, behind]);
            place.rank.iter().chain(followers).for_each(|rank| self.claims.note(*rank, keys.clone()));
        }
        InTurn { keys, arguments }
    }

    /// Returns the commands that remove the claims of a waiter that is granted.
    pub(crate) fn granting(&self, call: &Transaction<'_>, rank: Rank) -> Vec<[Vec<u8>; 3]> {
        let waiter = self.claims.waiter(rank);
        let removal = |TakenLimit { keys, .. }: TakenLimit| {
            let field = [&waiter[..], keys.limit.as_bytes()].concat();
            [[b"ZREM".to_vec(), keys.queue, waiter.clone()], [b"HDEL".to_vec(), keys.claims, field]]
        };
        self.limits_taken(call).into_iter().flat_map(removal).collect()
    }

    /// Removes the claims of a waiter that left without a grant, in the background.
    pub(crate) fn leave_queues(&self, rank: Rank) -> Option<JoinHandle<()>> {
        let noted = self.claims.by_rank.lock().remove(&rank)?;
        self.remove_claims(rank, &noted.claims)
    }

    /// Removes the claims of a waiter that left during a call, which may have made them after they were removed.
    pub(crate) fn leave_late(&self, rank: Rank, call: &OwnedTransaction) {
        self.claims.granted(Some(rank));
        let taken = call.with(|call| self.limits_taken(call));
        let claims: Vec<ClaimKeys> = taken.into_iter().map(|limit| limit.keys).collect();
        self.remove_claims(rank, &claims);
    }

    fn remove_claims(&self, rank: Rank, claims: &[ClaimKeys]) -> Option<JoinHandle<()>> {
        if claims.is_empty() {
            return None;
        }
        let keys: Vec<Vec<u8>> =
            claims.iter().flat_map(|it| [it.bucket.clone(), it.claims.clone(), it.queue.clone()]).collect();
        let mut arguments = vec![self.claims.waiter(rank)];
        arguments.extend(claims.iter().map(|claim| claim.limit.as_bytes().to_vec()));
        // Later callers of this process are not held back by these claims.
        let buckets = claims.iter().map(|claim| claim.bucket.clone()).collect();
        let pending = self.background.pending().add(buckets);
        self.in_background(move |inner| async move {
            // Should it fail, the claims expire.
            let left =
                inner.service.run(CallTimer::start(), &inner.service.scripts.leave, &keys, &arguments).await;
            drop(pending);
            left
        })
    }
}

/// Encodes a number as scripts unpack it. Ranks are times, and amounts are bounded, so a double holds them.
fn number(number: u64) -> [u8; 8] {
    (number as f64).to_le_bytes()
}
