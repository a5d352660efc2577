//! Gauges: how much is in use at once.
//!
//! A holder that may die without a release has an id and an expiry, after which its share is
//! released. Anonymous use is only counted: its caller is sure to release it.

use std::collections::BTreeMap;

use crate::{Holder, Ready, Tick};

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Holders {
    anonymous: u64,
    holds: BTreeMap<u128, Hold>,
}

#[derive(Clone, Debug, PartialEq)]
struct Hold {
    amount: u64,
    expires: Tick,
}

impl Holders {
    pub(crate) fn with_anonymous(anonymous: u64) -> Holders {
        Holders { anonymous, holds: BTreeMap::new() }
    }

    /// Creates the holders, in order of their ids; `None` if they are out of order or one of them
    /// holds nothing.
    pub(crate) fn of(anonymous: u64, holds: Vec<(Holder, u64)>) -> Option<Holders> {
        let in_order = holds.windows(2).all(|pair| pair[0].0.id < pair[1].0.id);
        if !in_order || holds.iter().any(|(_, amount)| *amount == 0) {
            return None;
        }
        let hold = |(holder, amount): (Holder, u64)| (holder.id, Hold { amount, expires: holder.expires });
        Some(Holders { anonymous, holds: holds.into_iter().map(hold).collect() })
    }

    /// Returns the anonymous use, and what each holder holds.
    pub(crate) fn parts(&self) -> (u64, impl ExactSizeIterator<Item = (Holder, u64)>) {
        let hold = |(id, hold): (&u128, &Hold)| (Holder { id: *id, expires: hold.expires }, hold.amount);
        (self.anonymous, self.holds.iter().map(hold))
    }

    /// Returns what is in use, if all of it is anonymous.
    pub(crate) fn only_anonymous(&self) -> Option<u64> {
        self.holds.is_empty().then_some(self.anonymous)
    }

    /// Returns how much is in use at `now`. Expired holders do not count, even if they were not
    /// dropped yet.
    pub(crate) fn in_use(&self, now: Tick) -> u64 {
        let held = self.holds.values().filter(|hold| hold.expires > now).map(|hold| hold.amount);
        held.fold(self.anonymous, u64::saturating_add)
    }

    pub(crate) fn expire(&mut self, now: Tick) -> usize {
        let before = self.holds.len();
        self.holds.retain(|_, hold| hold.expires > now);
        before - self.holds.len()
    }

    /// Drops the holders for whose ids `keep` returns false, and returns how many.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(u128) -> bool) -> usize {
        let before = self.holds.len();
        self.holds.retain(|id, _| keep(*id));
        before - self.holds.len()
    }

    /// Returns true if there are expired holders that were not dropped yet.
    pub(crate) fn has_expired(&self, now: Tick) -> bool {
        self.holds.values().any(|hold| hold.expires <= now)
    }

    /// Sets the expiry of expired holders to `until` if `is_alive` returns true for their ids.
    pub(crate) fn revive(&mut self, now: Tick, until: Tick, mut is_alive: impl FnMut(u128) -> bool) {
        let expired = self.holds.iter_mut().filter(|(_, hold)| hold.expires <= now);
        expired.filter(|(id, _)| is_alive(**id)).for_each(|(_, hold)| hold.expires = until);
    }

    pub(crate) fn hold(&mut self, holder: Option<Holder>, amount: u64) {
        match holder {
            None => self.anonymous = self.anonymous.saturating_add(amount),
            Some(holder) => {
                let fresh = Hold { amount: 0, expires: holder.expires };
                let hold = self.holds.entry(holder.id).or_insert(fresh);
                hold.amount = hold.amount.saturating_add(amount);
                hold.expires = holder.expires;
            }
        }
    }

    /// Releases at most `amount` of what `holder` holds. An unknown holder has been released or has
    /// expired.
    pub(crate) fn release(&mut self, holder: Option<u128>, amount: u64) {
        let Some(id) = holder else {
            self.anonymous = self.anonymous.saturating_sub(amount);
            return;
        };
        if let Some(hold) = self.holds.get_mut(&id) {
            hold.amount = hold.amount.saturating_sub(amount);
            if hold.amount == 0 {
                self.holds.remove(&id);
            }
        }
    }

    /// Sets the expiry of a known holder, and returns false if it is not known.
    pub(crate) fn renew(&mut self, holder: Holder) -> bool {
        self.holds.get_mut(&holder.id).map(|hold| hold.expires = holder.expires).is_some()
    }

    /// Returns when `cost` will fit, if that is known: when enough holders have expired.
    pub(crate) fn ready(&self, capacity: u64, now: Tick, cost: u64) -> Ready {
        let mut missing = self.in_use(now).saturating_add(cost).saturating_sub(capacity);
        if missing == 0 {
            return Ready::Now;
        }
        let mut live: Vec<&Hold> = self.holds.values().filter(|hold| hold.expires > now).collect();
        live.sort_by_key(|hold| hold.expires);
        for hold in live {
            missing = missing.saturating_sub(hold.amount);
            if missing == 0 {
                return Ready::at(hold.expires);
            }
        }
        Ready::Unknown
    }
}
