//! The memory store.

mod recent;
mod space;
mod table;

use std::collections::HashMap;
use std::sync::Arc;

use tollgate_core::{Bucket, Costs, Denial, Limits, Status, Take, Tick};

use crate::inner::{Aftermath, Inner};
use crate::store::Done;
use crate::sync::{Mutex, MutexGuard};
use crate::{Applied, Call, Cell, Clock, Key, Op, Place, Priority, Reach, Reply, Step, Store, StoreError};

use recent::Recent;
pub use space::Space;

/// Buckets in the memory of this process: the default, and the fastest.
///
/// Each namespace has its own table and its own bound on keys, so that one tenant cannot push out another. A
/// bucket that equals a fresh one says nothing and is swept out a little at a time as keys come in; one that
/// says something is never dropped, because that would admit too much.
pub struct Memory {
    clock: Clock,
    keys_max: usize,
    spaces: Mutex<HashMap<Box<str>, Arc<Space>>>,
    recent: Recent,
}

/// What is to be done for each cell once no lock is held.
type Afters = Vec<(Arc<Cell>, Aftermath)>;

/// Settings of a [`Memory`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct MemoryBuilder {
    clock: Clock,
    keys_max: usize,
}

impl MemoryBuilder {
    /// The clock; the system's unless it says otherwise.
    pub fn clock(self, clock: Clock) -> MemoryBuilder {
        MemoryBuilder { clock, ..self }
    }

    /// How many keys a namespace may have in use. By default [`Space::KEYS_MAX`].
    pub fn keys_max(self, keys_max: usize) -> MemoryBuilder {
        MemoryBuilder { keys_max, ..self }
    }

    /// The store.
    pub fn build(self) -> Memory {
        let MemoryBuilder { clock, keys_max } = self;
        Memory { clock, keys_max, spaces: Mutex::new(HashMap::new()), recent: Recent::default() }
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::builder().build()
    }
}

impl Memory {
    /// Settings to start from.
    pub fn builder() -> MemoryBuilder {
        MemoryBuilder { clock: Clock::system(), keys_max: Space::KEYS_MAX }
    }

    /// The buckets of a namespace. Keeping it saves looking it up.
    pub fn space(&self, namespace: &str) -> Arc<Space> {
        let mut spaces = self.spaces.lock();
        if let Some(space) = spaces.get(namespace) {
            return Arc::clone(space);
        }
        let space = Arc::new(Space::new(namespace, self.keys_max));
        spaces.insert(namespace.into(), Arc::clone(&space));
        space
    }

    /// The cell of a bucket, which stays in place for as long as somebody has it.
    ///
    /// # Errors
    ///
    /// [`StoreError::NamespaceFull`].
    pub fn cell(&self, place: &Place<'_>) -> Result<Arc<Cell>, StoreError> {
        self.space(place.namespace).cell(place.key, place.limits, self.clock.now())
    }

    fn apply_once(&self, call: &Call<'_>) -> Result<Applied, StoreError> {
        let mut afters = Vec::new();
        let applied = match call.id {
            None => self.apply_steps(call.steps, &mut afters),
            Some(id) => self.recent.once(id, self.clock.now(), || self.apply_steps(call.steps, &mut afters)),
        };
        // Only now is no lock held any more, neither of a cell nor of the calls that are remembered.
        afters.into_iter().for_each(|(cell, after)| cell.follow_up(after, &self.clock));
        applied
    }

    /// Applies the steps; a call that is denied leaves nothing behind, not even an empty bucket.
    fn apply_steps(&self, steps: &[Step<'_>], afters: &mut Afters) -> Result<Applied, StoreError> {
        let space = |step: &Step<'_>| self.space(step.place.namespace);
        let is_new = |step: &&Step<'_>| take_of(step).is_some() && space(step).find(step.place.key).is_none();
        let new: Vec<&Step<'_>> = steps.iter().filter(is_new).collect();
        let applied = self.apply_to_cells(steps, afters);
        if !matches!(applied, Ok(Applied::Done(_))) {
            new.into_iter().for_each(|step| space(step).forget(step.place.key, self.clock.now()));
        }
        applied
    }

    fn apply_to_cells(&self, steps: &[Step<'_>], afters: &mut Afters) -> Result<Applied, StoreError> {
        let cells = steps.iter().map(|step| self.cell_for(step)).collect::<Result<Vec<_>, _>>()?;
        let mut order: Vec<usize> = (0..cells.len()).filter(|index| cells[*index].is_some()).collect();
        let address = |index: &usize| cells[*index].as_ref().map(|cell| cell.lock_order());
        order.sort_by_key(address);
        if order.windows(2).any(|pair| address(&pair[0]) == address(&pair[1])) {
            return Err(StoreError::BadCall("two steps name one bucket; make it one step".into()));
        }
        let now = self.clock.now();
        let mut locked: Vec<Option<MutexGuard<'_, Inner>>> = cells.iter().map(|_| None).collect();
        for index in order {
            locked[index] = cells[index].as_ref().map(|cell| cell.lock());
        }
        let denials = denials(steps, &locked, now);
        if !denials.is_empty() {
            return Ok(Applied::Denied(denials));
        }
        let done = steps.iter().zip(&mut locked).map(|(step, inner)| commit(step, inner.as_deref_mut(), now));
        let done = done.collect();
        for (cell, inner) in cells.iter().zip(&mut locked) {
            if let (Some(cell), Some(inner)) = (cell, inner)
                && inner.side.is_some()
            {
                afters.push((Arc::clone(cell), inner.serve(now)));
            }
        }
        Ok(Applied::Done(done))
    }

    /// The cell of a step. Only what charges makes one: a refund or a renewal must create nothing.
    fn cell_for(&self, step: &Step<'_>) -> Result<Option<Arc<Cell>>, StoreError> {
        let charges = match &step.op {
            Op::Take { .. } => true,
            Op::Settle(usage) => usage.is_over(),
            Op::Renew(_) => false,
        };
        if charges {
            return self.cell(&step.place).map(Some);
        }
        Ok(self.space(step.place.namespace).find(step.place.key))
    }
}

/// The denial of every take, if any take is denied; otherwise nothing.
fn denials(steps: &[Step<'_>], locked: &[Option<MutexGuard<'_, Inner>>], now: Tick) -> Vec<Denial> {
    let takes = || {
        steps.iter().zip(locked).filter_map(|(step, inner)| Some((take_of(step)?, step, inner.as_deref()?)))
    };
    let fits = |(costs, step, inner): (&Costs, &Step<'_>, &Inner)| {
        let open = inner.is_open(now, Priority::default());
        let fits = |bucket: &Bucket, limits: &Limits| bucket.fits(limits, now, costs);
        open && under(inner, step.place.limits, now, fits)
    };
    if takes().all(fits) {
        return Vec::new();
    }
    let denial = |(costs, step, inner): (&Costs, &Step<'_>, &Inner)| {
        under(inner, step.place.limits, now, |bucket, limits| {
            let denial = bucket.denial(limits, now, costs);
            if inner.side.is_none() {
                return denial;
            }
            denial.not_before(inner.ready_under(limits, bucket, now, costs, Priority::default()))
        })
    };
    takes().map(denial).collect()
}

fn take_of<'a>(step: &'a Step<'_>) -> Option<&'a Costs> {
    match &step.op {
        Op::Take { costs, .. } => Some(costs),
        Op::Settle(_) | Op::Renew(_) => None,
    }
}

/// Asks the bucket as it would be under `limits`, without changing it.
fn under<R>(inner: &Inner, limits: &Limits, now: Tick, ask: impl FnOnce(&Bucket, &Limits) -> R) -> R {
    if inner.limits.same(limits) || inner.limits == *limits {
        return ask(&inner.bucket, &inner.limits);
    }
    let mut bucket = inner.bucket.clone();
    bucket.adopt(&inner.limits, limits, now);
    ask(&bucket, limits)
}

fn commit(step: &Step<'_>, inner: Option<&mut Inner>, now: Tick) -> Done {
    match (&step.op, inner) {
        (Op::Take { costs, term }, Some(inner)) => {
            if !inner.is_under(step.place.limits) {
                inner.adopt(now, step.place.limits);
            }
            let Inner { limits, bucket, .. } = inner;
            let holder = term.map(|term| term.starting(now));
            Done::Taken(bucket.commit(limits, now, &Take { costs, holder }))
        }
        (Op::Settle(usage), inner) => {
            if let Some(inner) = inner {
                inner.settle(now, step.place.limits, usage);
            }
            Done::Settled
        }
        (Op::Renew(term), Some(Inner { limits, bucket, .. })) => {
            Done::Renewed(bucket.renew(limits, now, term.starting(now)))
        }
        (Op::Take { .. } | Op::Renew(_), None) => Done::Renewed(false),
    }
}

impl Store for Memory {
    fn reach(&self) -> Reach {
        Reach::Process
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn apply<'a>(&'a self, call: &Call<'a>) -> Reply<'a, Result<Applied, StoreError>> {
        Reply::ready(self.apply_once(call))
    }

    fn peek<'a>(&'a self, place: &Place<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        let now = self.clock.now();
        let statuses = match self.space(place.namespace).find(place.key) {
            Some(cell) => under(&cell.lock(), place.limits, now, |bucket, limits| bucket.peek(limits, now)),
            None => Bucket::fresh(place.limits, Tick::ZERO).peek(place.limits, now),
        };
        Reply::ready(Ok(statuses))
    }
}

impl Space {
    /// Takes `costs` of the bucket at `parts` now, or says why not. The fastest way in for many keys.
    ///
    /// The limits come with the call. Limits of other names that came with other calls keep what was used of them.
    ///
    /// # Errors
    ///
    /// [`StoreError::NamespaceFull`] for a new key where there is no room.
    #[inline]
    pub fn try_take<S: AsRef<str>>(
        &self,
        clock: &Clock,
        parts: &[S],
        limits: &Limits,
        costs: &Costs,
    ) -> Result<Result<Tick, Box<Denial>>, StoreError> {
        let now = clock.now();
        let (taken, after) = Key::with_bytes(parts, |bytes| {
            self.with(bytes, limits, now, |cell| {
                let mut inner = cell.lock();
                if inner.is_under(limits) {
                    return (inner.try_take(now, costs, None, Priority::default()), None);
                }
                let costs = inner.join(now, limits, costs);
                // Under other limits those who wait may pass, and they come first.
                let after = inner.side.is_some().then(|| Box::new((Arc::clone(cell), inner.serve(now))));
                (inner.try_take(now, &costs, None, Priority::default()), after)
            })
        })?;
        if let Some(after) = after {
            let (cell, after) = *after;
            cell.follow_up(after, clock);
        }
        Ok(taken)
    }
}
