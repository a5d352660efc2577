//! A demand of one's own, for calls that outlive the caller's.

use tollgate_core::{AsDemand, BadAmount, HashedName};

/// An owned copy of what a caller demanded.
#[derive(Clone, Debug)]
pub(crate) struct OwnedDemand {
    parts: Vec<(Box<str>, u64)>,
    bad: Option<(Box<str>, BadAmount)>,
}

impl OwnedDemand {
    pub(crate) fn of(demand: &impl AsDemand) -> OwnedDemand {
        let part = |index| {
            let (name, amount) = demand.part(index);
            (name.as_str().into(), amount)
        };
        let bad = demand.bad_amount().map(|(name, why)| (name.into(), why));
        OwnedDemand { parts: (0..demand.len()).map(part).collect(), bad }
    }
}

impl AsDemand for OwnedDemand {
    fn len(&self) -> usize {
        self.parts.len()
    }

    fn part(&self, index: usize) -> (HashedName<'_>, u64) {
        let (name, amount) = &self.parts[index];
        (HashedName::new(name), *amount)
    }

    fn bad_amount(&self) -> Option<(&str, BadAmount)> {
        self.bad.as_ref().map(|(name, why)| (&**name, *why))
    }
}
