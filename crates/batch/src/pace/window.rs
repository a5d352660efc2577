//! How many calls may be under way at once.

/// Never fewer than this many.
const LEAST: u64 = 1;

/// The window of calls under way. It is open until the provider says that it has too much to do; then it is half of what
/// was under way, and grows by one each time a whole window has gone through.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    most: Option<u64>,
    through: u64,
    /// Replies to wait for before it may shrink again: those of calls that were under way when it did.
    deaf: u64,
}

impl Window {
    pub(super) fn most(&self) -> Option<u64> {
        self.most
    }

    pub(super) fn has_room(&self, in_flight: u64) -> bool {
        self.most.is_none_or(|most| in_flight < most)
    }

    pub(super) fn accepted(&mut self) {
        self.deaf = self.deaf.saturating_sub(1);
        let Some(most) = self.most else { return };
        self.through += 1;
        if self.through >= most {
            (self.most, self.through) = (Some(most + 1), 0);
        }
    }

    /// The provider had too much to do while `in_flight` calls were under way.
    pub(super) fn overloaded(&mut self, in_flight: u64) {
        if self.deaf > 0 {
            self.deaf -= 1;
            return;
        }
        let most = self.most.map_or(in_flight, |most| most.min(in_flight));
        (self.most, self.through, self.deaf) = (Some((most / 2).max(LEAST)), 0, in_flight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_were_under_way_together_shrink_it_once() {
        let mut window = Window::default();
        (0..16).for_each(|_| window.overloaded(16));
        assert_eq!(window.most(), Some(8));
        assert!(window.has_room(7) && !window.has_room(8));
        (0..8).for_each(|_| window.accepted());
        assert_eq!(window.most(), Some(9));
    }

    #[test]
    fn it_never_closes() {
        let mut window = Window::default();
        (0..100).for_each(|_| window.overloaded(0));
        assert!(window.has_room(0));
    }
}
