//! The counters of a scope.

/// How many generations have a counter of their own.
pub const GENERATIONS_KEPT: usize = 64;

/// The counters of a scope.
///
/// ```
/// use tollgate_batch::scope::Counters;
///
/// let counters = Counters::default();
/// assert_eq!((counters.calls, counters.rejected), (0, 0));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Calls that were made.
    pub calls: u64,
    /// Calls that were answered with a 429 or an overload.
    pub rejected: u64,
    /// Calls without a usable output: refused, failed, timed out, or answered with an invalid
    /// output.
    pub wasted: u64,
    /// How often an item was parked.
    pub parked: u64,
    /// How often a parked item was called again.
    pub handed_out: u64,
    /// Items that gave back their reservation because a cooldown began before their call started.
    pub given_back: u64,
    /// Cooldowns that began.
    pub generations: u64,
    /// How many calls met each of the last [`GENERATIONS_KEPT`] cooldowns, the latest last.
    pub participants: Vec<u64>,
}

impl Counters {
    pub(super) fn begin(&mut self) {
        self.generations += 1;
        if self.participants.len() == GENERATIONS_KEPT {
            self.participants.remove(0);
        }
        self.participants.push(0);
    }

    pub(super) fn participate(&mut self) {
        if let Some(last) = self.participants.last_mut() {
            *last += 1;
        }
    }

    /// Adds the counters of another scope.
    pub(crate) fn add(&mut self, other: &Counters) {
        self.calls += other.calls;
        self.rejected += other.rejected;
        self.wasted += other.wasted;
        self.parked += other.parked;
        self.handed_out += other.handed_out;
        self.given_back += other.given_back;
        self.generations += other.generations;
        let room = GENERATIONS_KEPT - self.participants.len();
        self.participants.extend(other.participants.iter().take(room));
    }
}
