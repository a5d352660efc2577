//! Demands: what one call asks, by the names of limits.

use std::fmt;

use crate::{BadAmount, HashedName, IntoAmount, Name};

/// What one call asks: `demand! { rpm: 1, tpm: 1_500 }`.
///
/// A demand is only a list of names and amounts. Whether the names exist and the amounts fit is decided where it
/// is used; an invalid amount (negative, say) is remembered here and refused there.
///
/// The macro makes a demand over an array, which costs nothing to build; [`Demand::new`] and `collect` make one
/// over a `Vec`, for names that are not known when the program is written.
#[derive(Clone, Debug)]
pub struct Demand<'a, N = Vec<HashedName<'a>>, A = Vec<u64>> {
    names: N,
    amounts: A,
    bad: Option<(&'a str, BadAmount)>,
}

/// Anything that asks amounts by name. What takes a demand takes any of these.
pub trait AsDemand {
    /// How many names there are.
    fn len(&self) -> usize;

    /// Whether it asks for nothing.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name and the amount at `index`, in the order they were given.
    fn part(&self, index: usize) -> (HashedName<'_>, u64);

    /// Returns the first invalid amount, if there is one.
    fn bad_amount(&self) -> Option<(&str, BadAmount)>;
}

/// Why a demand does not fit the limits it was made to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DemandError {
    /// It names what is no limit here.
    UnknownLimit {
        /// The name in the demand.
        name: Box<str>,
        /// The limits there are.
        known: Box<[Name]>,
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
    /// An amount is invalid.
    BadAmount {
        /// The name it was given for.
        name: Box<str>,
        /// What is wrong with it.
        why: Box<BadAmount>,
    },
    /// It names a limit twice.
    Repeated {
        /// The name.
        name: Box<str>,
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
        $crate::Demand::of(
            [$(const { $crate::HashedName::new($crate::demand!(@name $name)) }),*],
            [$($crate::IntoAmount::into_amount($amount)),*],
        )
    };
}

impl<'a> Demand<'a> {
    /// A demand that asks nothing yet.
    pub fn new() -> Demand<'a> {
        Demand { names: Vec::new(), amounts: Vec::new(), bad: None }
    }

    /// Asks `amount` of the limit `name`, too.
    #[must_use]
    pub fn with(mut self, name: &'a str, amount: impl IntoAmount) -> Demand<'a> {
        let amount = bounded(amount.into_amount()).unwrap_or_else(|why| {
            self.bad = self.bad.or(Some((name, why)));
            0
        });
        self.names.push(HashedName::new(name));
        self.amounts.push(amount);
        self
    }
}

impl<'a, const N: usize> Demand<'a, [HashedName<'a>; N], [u64; N]> {
    /// A demand for these amounts; what [`demand!`](crate::demand) expands to.
    #[inline(always)]
    pub fn of(names: [HashedName<'a>; N], amounts: [Result<u64, BadAmount>; N]) -> Self {
        let mut demand = Demand { names, amounts: [0; N], bad: None };
        for index in 0..N {
            match bounded(amounts[index]) {
                Ok(amount) => demand.amounts[index] = amount,
                Err(why) => demand.bad = demand.bad.or(Some((names[index].as_str(), why))),
            }
        }
        demand
    }
}

/// Only a capacity may be unbounded; a demand may not.
#[inline(always)]
fn bounded(amount: Result<u64, BadAmount>) -> Result<u64, BadAmount> {
    match amount {
        Ok(crate::UNBOUNDED) => Err(BadAmount::TooLarge(crate::UNBOUNDED.into())),
        amount => amount,
    }
}

impl<'a, N: AsRef<[HashedName<'a>]>, A: AsRef<[u64]>> AsDemand for Demand<'a, N, A> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.amounts.as_ref().len()
    }

    #[inline(always)]
    fn part(&self, index: usize) -> (HashedName<'_>, u64) {
        (self.names.as_ref()[index], self.amounts.as_ref()[index])
    }

    #[inline(always)]
    fn bad_amount(&self) -> Option<(&str, BadAmount)> {
        self.bad
    }
}

macro_rules! by_reference {
    ($($pointer:ty),*) => {$(
        impl<D: AsDemand + ?Sized> AsDemand for $pointer {
            #[inline(always)]
            fn len(&self) -> usize {
                (**self).len()
            }

            #[inline(always)]
            fn part(&self, index: usize) -> (HashedName<'_>, u64) {
                (**self).part(index)
            }

            #[inline(always)]
            fn bad_amount(&self) -> Option<(&str, BadAmount)> {
                (**self).bad_amount()
            }
        }
    )*};
}

by_reference!(&D, Box<D>);

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
