//! Demands: what one call asks, by the names of limits.

use std::fmt;

use crate::{BadAmount, IntoAmount, Name};

const INLINE: usize = 8;

/// What one call asks: `demand! { rpm: 1, tpm: 1_500 }`.
///
/// A demand is only a list of names and amounts. Whether the names exist and the amounts fit is decided where it
/// is used; an amount that is none (negative, say) is remembered here and refused there.
#[derive(Clone, Debug)]
pub struct Demand<'a> {
    parts: Parts<'a>,
    bad: Option<(&'a str, BadAmount)>,
}

#[derive(Clone, Debug)]
enum Parts<'a> {
    Inline([(&'a str, u64); INLINE], usize),
    Heap(Vec<(&'a str, u64)>),
}

/// Why a demand does not fit the limits it was made to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DemandError {
    /// It names what is no limit here.
    UnknownLimit {
        /// The name in the demand.
        name: String,
        /// The limits there are.
        known: Vec<Name>,
    },
    /// It names nothing, but a rate or quota wants an amount.
    MissingAmount {
        /// The limit that wants one.
        limit: Name,
    },
    /// It asks more than the limit can ever give.
    Impossible {
        /// The limit.
        limit: Name,
        /// What was asked.
        asked: u64,
        /// The most that can be had at once.
        capacity: u64,
    },
    /// An amount is none.
    BadAmount {
        /// The name it was given for.
        name: String,
        /// What is wrong with it.
        why: BadAmount,
    },
    /// It names a limit twice.
    Repeated {
        /// The name.
        name: String,
    },
}

/// Makes a [`Demand`]: `demand! { rpm: 1, tpm: 1_500 }`, or `demand! {}` for none.
///
/// Names that are no identifiers are written as strings: `demand! { "tokens.in": 5 }`.
#[macro_export]
macro_rules! demand {
    (@name $name:ident) => { ::core::stringify!($name) };
    (@name $name:literal) => { $name };
    ($($name:tt : $amount:expr),* $(,)?) => {
        $crate::Demand::new()$(.with($crate::demand!(@name $name), $amount))*
    };
}

impl<'a> Demand<'a> {
    /// A demand that asks nothing yet.
    #[inline]
    pub fn new() -> Demand<'a> {
        Demand { parts: Parts::Inline([("", 0); INLINE], 0), bad: None }
    }

    /// Asks `amount` of the limit `name`, too.
    #[inline]
    #[must_use]
    pub fn with(mut self, name: &'a str, amount: impl IntoAmount) -> Demand<'a> {
        match amount.into_amount() {
            Ok(crate::UNBOUNDED) => self.refuse(name, BadAmount::TooLarge(u64::MAX.into())),
            Ok(amount) => self.push(name, amount),
            Err(why) => self.refuse(name, why),
        }
        self
    }

    #[inline]
    fn push(&mut self, name: &'a str, amount: u64) {
        match &mut self.parts {
            Parts::Inline(parts, len) if *len < INLINE => {
                parts[*len] = (name, amount);
                *len += 1;
            }
            Parts::Inline(parts, _) => {
                let mut more = parts.to_vec();
                more.push((name, amount));
                self.parts = Parts::Heap(more);
            }
            Parts::Heap(parts) => parts.push((name, amount)),
        }
    }

    #[cold]
    fn refuse(&mut self, name: &'a str, why: BadAmount) {
        self.bad.get_or_insert((name, why));
    }

    /// The names and amounts, in the order they were given.
    #[inline]
    pub fn parts(&self) -> &[(&'a str, u64)] {
        match &self.parts {
            Parts::Inline(parts, len) => &parts[..(*len).min(INLINE)],
            Parts::Heap(parts) => parts,
        }
    }

    /// Whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        self.parts().is_empty() && self.bad.is_none()
    }

    /// The first amount that is none, if there is one.
    ///
    /// # Errors
    ///
    /// [`DemandError::BadAmount`] with its name and value.
    #[inline]
    pub fn check(&self) -> Result<(), DemandError> {
        match self.bad {
            None => Ok(()),
            Some((name, why)) => Err(DemandError::BadAmount { name: name.into(), why }),
        }
    }
}

impl Default for Demand<'_> {
    fn default() -> Self {
        Demand::new()
    }
}

impl<'a, A: IntoAmount> FromIterator<(&'a str, A)> for Demand<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, A)>>(parts: I) -> Demand<'a> {
        parts.into_iter().fold(Demand::new(), |demand, (name, amount)| demand.with(name, amount))
    }
}

impl fmt::Display for DemandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DemandError::UnknownLimit { name, known } => {
                write!(f, "the demand names {name:?}, which is no limit here; known limits: ")?;
                let known: Vec<&str> = known.iter().map(Name::as_str).collect();
                f.write_str(&if known.is_empty() { "none".into() } else { known.join(", ") })
            }
            DemandError::MissingAmount { limit } => {
                write!(
                    f,
                    "the demand names no amount, but {limit} wants one, such as demand! {{ {limit}: 1 }}"
                )
            }
            DemandError::Impossible { limit, asked, capacity } => {
                write!(f, "a demand of {asked} can never fit {limit}, whose capacity is {capacity}")
            }
            DemandError::BadAmount { name, why } => write!(f, "the demand for {name}: {why}"),
            DemandError::Repeated { name } => {
                write!(f, "the demand names {name:?} twice; add the amounts up and name it once")
            }
        }
    }
}

impl std::error::Error for DemandError {}
