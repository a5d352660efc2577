//! A demand of one's own, for calls that outlive the caller's.

use tollgate_core::{AsDemand, BadAmount, Word};

/// What somebody asked, kept.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    parts: Vec<(Box<str>, u64)>,
    bad: Option<(Box<str>, BadAmount)>,
}

impl Wanted {
    pub(crate) fn of(demand: &impl AsDemand) -> Wanted {
        let part = |index| {
            let (name, amount) = demand.part(index);
            (name.as_str().into(), amount)
        };
        let bad = demand.bad_amount().map(|(name, why)| (name.into(), why));
        Wanted { parts: (0..demand.len()).map(part).collect(), bad }
    }
}

impl AsDemand for Wanted {
    fn len(&self) -> usize {
        self.parts.len()
    }

    fn part(&self, index: usize) -> (Word<'_>, u64) {
        let (name, amount) = &self.parts[index];
        (Word::new(name), *amount)
    }

    fn bad_amount(&self) -> Option<(&str, BadAmount)> {
        self.bad.as_ref().map(|(name, why)| (&**name, *why))
    }
}
