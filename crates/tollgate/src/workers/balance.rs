//! Which worker a job is handed to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tollgate_store::random_u64;

/// Which worker a job is handed to.
///
/// Round robin gives each worker a queue of its own, and a job is done by the worker whose turn it was, however long
/// that one is busy. With the others all workers serve one queue: no job waits while a worker is idle, and the policy
/// says which of several idle ones gets it.
///
/// ```
/// use tollgate::workers::{Balance, WorkerPool};
///
/// let pool = WorkerPool::threads(2).balance(Balance::LeastActive).build(|_, n: u64| Ok::<_, std::fmt::Error>(n + 1))?;
/// assert_eq!(pool.submit(1).wait()?.wait()?, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Balance {
    /// One after the other, whatever they have to do.
    #[default]
    RoundRobin,
    /// Any that is idle.
    Random,
    /// The first that is idle.
    LeastActive,
    /// Of those that are idle, the one that was handed the fewest jobs so far.
    LeastTotal,
}

/// Hands jobs to workers by a rule of its own: by a key of the input, say, so that a worker finds what it has in its cache.
///
/// Each worker has a queue of its own then. Functions from the input and the workers to a place are balancers.
///
/// ```
/// use std::convert::Infallible;
/// use tollgate::workers::{WorkerLoad, WorkerPool};
///
/// let by_key = |key: &u64, workers: &[WorkerLoad]| *key as usize % workers.len();
/// let pool = WorkerPool::threads(2).balancer(by_key).build(|worker, _: u64| Ok::<_, Infallible>(worker.index()))?;
/// let done: Vec<usize> = pool.gather([4, 7, 9, 2]).wait().into_iter().collect::<Result<_, _>>()?;
/// assert_eq!(done, [0, 1, 1, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Balancer<I>: Send + Sync {
    /// The place in `workers`, of which there is at least one, of the one for this job. Places past the end count from the
    /// start again.
    fn choose(&self, input: &I, workers: &[WorkerLoad]) -> usize;
}

impl<I, F: Fn(&I, &[WorkerLoad]) -> usize + Send + Sync> Balancer<I> for F {
    fn choose(&self, input: &I, workers: &[WorkerLoad]) -> usize {
        self(input, workers)
    }
}

/// What a worker has to do, and had.
///
/// ```
/// use tollgate::workers::{WorkerPool};
///
/// let pool = WorkerPool::threads(2).build(|_, n: u64| Ok::<_, std::fmt::Error>(n))?;
/// pool.gather(0..4).wait();
/// let total: Vec<usize> = pool.stats().workers.iter().map(|worker| worker.total).collect();
/// assert_eq!(total, [2, 2], "one after the other");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerLoad {
    /// The number of the worker.
    pub index: usize,
    /// The jobs that it runs and that wait for it alone.
    pub active: usize,
    /// The jobs that it was handed so far.
    pub total: usize,
}

/// How jobs are handed out: by a policy of ours, or by one that the user wrote.
pub(super) enum Choice<I> {
    Policy(Balance),
    Own(Arc<dyn Balancer<I>>),
}

impl<I> Choice<I> {
    /// Whether a job is for one worker from the start, and not for any that is idle.
    pub(super) fn pins(&self) -> bool {
        matches!(self, Choice::Policy(Balance::RoundRobin) | Choice::Own(_))
    }

    /// The worker for the next job, of those that are open, where jobs are for one worker from the start.
    pub(super) fn choose(
        &self,
        input: &I,
        loads: &[WorkerCount],
        turn: &AtomicUsize,
        is_open: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let open: Vec<usize> = (0..loads.len()).filter(|index| is_open(*index)).collect();
        let nth = |number: usize| number.checked_rem(open.len()).map(|place| open[place]);
        match self {
            Choice::Own(_) if open.is_empty() => None,
            Choice::Own(balancer) => {
                let workers: Vec<WorkerLoad> = open.iter().map(|index| loads[*index].seen(*index)).collect();
                nth(balancer.choose(input, &workers))
            }
            Choice::Policy(_) => nth(turn.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

impl Balance {
    /// The place of the one that gets a job, of idle workers.
    pub(super) fn choose_idle(self, idle: &[usize], loads: &[WorkerCount]) -> usize {
        let least = |of: &dyn Fn(usize) -> usize| {
            let places = idle.iter().copied().enumerate();
            places.min_by_key(|(_, worker)| of(*worker)).map_or(0, |(place, _)| place)
        };
        match self {
            Balance::Random => random_u64() as usize % idle.len().max(1),
            Balance::LeastTotal => least(&|worker| loads[worker].total.load(Ordering::Relaxed)),
            Balance::RoundRobin | Balance::LeastActive => least(&|worker| worker),
        }
    }
}

/// What a worker has to do, and had, as it is counted.
#[derive(Default)]
pub(super) struct WorkerCount {
    /// Jobs in its queue, on their way there, and running.
    active: AtomicUsize,
    /// Jobs that it was handed so far.
    total: AtomicUsize,
}

impl WorkerCount {
    pub(super) fn add(&self) {
        self.active.fetch_add(1, Ordering::Relaxed);
        self.total.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn done(&self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn seen(&self, index: usize) -> WorkerLoad {
        let [active, total] = [&self.active, &self.total].map(|count| count.load(Ordering::Relaxed));
        WorkerLoad { index, active, total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(
        choice: &Choice<u64>,
        loads: &[WorkerCount],
        times: u64,
        open: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let turn = AtomicUsize::new(0);
        let choose = |input| choice.choose(&input, loads, &turn, &open).inspect(|index| loads[*index].add());
        (0..times).filter_map(choose).collect()
    }

    fn loads() -> Vec<WorkerCount> {
        (0..3).map(|_| WorkerCount::default()).collect()
    }

    #[test]
    fn round_robin_and_balancers_of_the_user_choose_among_open_workers() {
        let turns = Choice::Policy(Balance::RoundRobin);
        assert_eq!(chosen(&turns, &loads(), 5, |_| true), [0, 1, 2, 0, 1]);
        assert_eq!(chosen(&turns, &loads(), 4, |index| index != 1), [0, 2, 0, 2]);
        assert!(chosen(&turns, &loads(), 3, |_| false).is_empty());
        let least = |_: &u64, workers: &[WorkerLoad]| {
            let places = workers.iter().enumerate();
            places.min_by_key(|(_, worker)| worker.active).map_or(0, |(place, _)| place)
        };
        let busy = loads();
        (0..5).for_each(|_| busy[0].add());
        assert_eq!(chosen(&Choice::Own(Arc::new(least)), &busy, 4, |_| true), [1, 2, 1, 2]);
        let beyond = Choice::Own(Arc::new(|input: &u64, _: &[WorkerLoad]| *input as usize + 3));
        assert_eq!(chosen(&beyond, &loads(), 4, |_| true), [0, 1, 2, 0], "they count from the start again");
        assert!(chosen(&beyond, &loads(), 3, |_| false).is_empty());
    }

    #[test]
    fn of_idle_workers_each_policy_chooses_as_it_says() {
        let loads = loads();
        (0..5).for_each(|_| loads[0].add());
        loads[2].add();
        assert_eq!(Balance::LeastActive.choose_idle(&[2, 0], &loads), 1);
        assert_eq!(Balance::LeastTotal.choose_idle(&[0, 2, 1], &loads), 2);
        let seen: std::collections::BTreeSet<usize> =
            (0..1_000).map(|_| Balance::Random.choose_idle(&[0, 1, 2], &loads)).collect();
        assert_eq!(seen.len(), 3);
    }
}
