//! What a scope counts.

/// How many generations are remembered one by one.
pub const GENERATIONS_KEPT: usize = 64;

/// What happened in a scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Calls that were made.
    pub calls: u64,
    /// Calls that were refused with "not now".
    pub rejected: u64,
    /// Calls that brought nothing: refused, failed, timed out, or answered with what is of no use.
    pub wasted: u64,
    /// Times an item was parked.
    pub parked: u64,
    /// Times a parked item was handed out again.
    pub handed_out: u64,
    /// Items that were admitted, and gave back what they had reserved because a cooldown began before they started.
    pub given_back: u64,
    /// Cooldowns that began.
    pub generations: u64,
    /// How many calls met each of the last [`GENERATIONS_KEPT`] cooldowns, the latest at the end.
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

    /// Adds those of another scope.
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
