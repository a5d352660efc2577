//! Demands: the amounts that one call asks for, by the names of limits.

use std::fmt;

use crate::name::Tag;
use crate::{BadAmount, HashedName, IntoAmount, Name};

/// The amounts that one call asks for, with owned names: for names that are only known at run time.
/// [`demand!`](crate::demand) makes a [`DemandArray`], which allocates nothing.
///
/// A demand is only a list of names and amounts. [`Limits::costs`](crate::Limits::costs) checks
/// whether the names exist and the amounts fit. An invalid amount, such as a negative one, is
/// stored here and reported there.
///
/// ```
/// use tollgate_core::{AsDemand, Demand};
///
/// let tokens: Vec<(String, u64)> = vec![("tpm".into(), 1_500)];
/// let demand = tokens.into_iter().collect::<Demand>().with("rpm", 1);
/// assert_eq!(demand.len(), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Demand {
    parts: Vec<DemandPart>,
    bad: Option<(Box<str>, BadAmount)>,
}

#[derive(Clone, Debug)]
struct DemandPart {
    name: Box<str>,
    tag: Tag,
    amount: u64,
}

/// The demand that [`demand!`](crate::demand) makes: literal names, with an amount for each.
///
/// ```
/// use tollgate_core::{AsDemand, DemandArray, demand};
///
/// let demand: DemandArray<2> = demand! { rpm: 1, tpm: 1_500 };
/// assert_eq!(demand.part(1).1, 1_500);
/// ```
#[derive(Clone, Debug)]
pub struct DemandArray<const N: usize> {
    names: [HashedName<'static>; N],
    amounts: [u64; N],
    bad: Option<(&'static str, BadAmount)>,
}

/// A demand by name: [`Demand`], [`DemandArray`], and references and boxes of them. Functions that
/// take a demand accept any implementation.
///
/// ```
/// use tollgate_core::{AsDemand, Demand, demand};
///
/// fn total(demand: &impl AsDemand) -> u64 {
///     (0..demand.len()).map(|index| demand.part(index).1).sum()
/// }
///
/// assert_eq!(total(&demand! { rpm: 1, tpm: 1_500 }), 1_501);
/// assert_eq!(total(&Demand::new().with("rpm", 2)), 2);
/// ```
pub trait AsDemand {
    /// Returns the number of names.
    fn len(&self) -> usize;

    /// Returns true if the demand names no limit.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the name and the amount at `index`, in the order they were given.
    fn part(&self, index: usize) -> (HashedName<'_>, u64);

    /// Returns the first invalid amount with its name, if there is one.
    fn bad_amount(&self) -> Option<(&str, BadAmount)>;
}

/// A demand that cannot be resolved against the limits.
///
/// ```
/// use tollgate_core::{DemandError, Limit, Limits, demand};
///
/// let limits = Limits::new([Limit::per_minute("rpm", 10)])?;
/// let error = limits.costs(&demand! { rpm: 11 }).unwrap_err();
/// assert!(matches!(error, DemandError::Impossible { asked: 11, capacity: 10, .. }));
/// assert_eq!(error.to_string(), "a demand of 11 can never fit rpm, whose capacity is 10");
/// # Ok::<(), tollgate_core::LimitsError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DemandError {
    /// The demand names an unknown limit.
    UnknownLimit {
        /// The name in the demand.
        name: Box<str>,
        /// The names of the limits.
        known: Box<[Name]>,
    },
    /// The demand is empty, but a rate or quota requires an amount.
    MissingAmount {
        /// The limit that requires an amount.
        limit: Name,
    },
    /// The demand asks for more than the limit can ever give.
    Impossible {
        /// The limit.
        limit: Name,
        /// The amount that was asked.
        asked: u64,
        /// The capacity of the limit.
        capacity: u64,
    },
    /// An amount is invalid.
    BadAmount {
        /// The name that the amount was given for.
        name: Box<str>,
        /// The reason.
        why: Box<BadAmount>,
    },
    /// The demand names a limit twice.
    Repeated {
        /// The name.
        name: Box<str>,
    },
}

/// Makes a [`DemandArray`]: `demand! { rpm: 1, tpm: 1_500 }`, or `demand! {}` for an empty one.
///
/// Names that are not identifiers are written as strings.
///
/// ```
/// use tollgate_core::{AsDemand, demand};
///
/// let demand = demand! { rpm: 1, "tokens.in": 5 };
/// assert_eq!(demand.len(), 2);
/// assert!(demand! {}.is_empty());
/// ```
#[macro_export]
macro_rules! demand {
    (@name $name:ident) => { ::core::stringify!($name) };
    (@name $name:literal) => { $name };
    ($($name:tt : $amount:expr),* $(,)?) => {
        $crate::DemandArray::new(
            [$(const { $crate::HashedName::new($crate::demand!(@name $name)) }),*],
            [$($crate::IntoAmount::into_amount($amount)),*],
        )
    };
}

impl Demand {
    /// Returns an empty demand.
    pub fn new() -> Demand {
        Demand::default()
    }

    /// Copies `demand`, with owned names.
    pub fn copy_of(demand: &impl AsDemand) -> Demand {
        let part = |index| {
            let (name, amount) = demand.part(index);
            DemandPart { name: name.as_str().into(), tag: name.tag, amount }
        };
        let bad = demand.bad_amount().map(|(name, why)| (name.into(), why));
        Demand { parts: (0..demand.len()).map(part).collect(), bad }
    }

    /// Adds `amount` of the limit `name` to the demand.
    #[must_use]
    pub fn with(mut self, name: &str, amount: impl IntoAmount) -> Demand {
        let amount = bounded(amount.into_amount()).unwrap_or_else(|why| {
            self.bad.get_or_insert_with(|| (name.into(), why));
            0
        });
        self.parts.push(DemandPart { name: name.into(), tag: Tag::of(name), amount });
        self
    }
}

impl<const N: usize> DemandArray<N> {
    /// Creates a demand; [`demand!`](crate::demand) expands to a call of this function.
    #[inline(always)]
    pub fn new(names: [HashedName<'static>; N], amounts: [Result<u64, BadAmount>; N]) -> Self {
        let mut demand = DemandArray { names, amounts: [0; N], bad: None };
        for index in 0..N {
            match bounded(amounts[index]) {
                Ok(amount) => demand.amounts[index] = amount,
                Err(why) => demand.bad = demand.bad.or(Some((names[index].as_str(), why))),
            }
        }
        demand
    }
}

/// Rejects [`UNBOUNDED`](crate::UNBOUNDED): only a capacity may be unbounded, a demand may not.
#[inline(always)]
fn bounded(amount: Result<u64, BadAmount>) -> Result<u64, BadAmount> {
    match amount {
        Ok(crate::UNBOUNDED) => Err(BadAmount::TooLarge(crate::UNBOUNDED.into())),
        amount => amount,
    }
}

impl AsDemand for Demand {
    fn len(&self) -> usize {
        self.parts.len()
    }

    fn part(&self, index: usize) -> (HashedName<'_>, u64) {
        let DemandPart { name, tag, amount } = &self.parts[index];
        (HashedName::tagged(name, *tag), *amount)
    }

    fn bad_amount(&self) -> Option<(&str, BadAmount)> {
        self.bad.as_ref().map(|(name, why)| (&**name, *why))
    }
}

impl<const N: usize> AsDemand for DemandArray<N> {
    #[inline(always)]
    fn len(&self) -> usize {
        N
    }

    #[inline(always)]
    fn part(&self, index: usize) -> (HashedName<'_>, u64) {
        (self.names[index], self.amounts[index])
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

impl<N: AsRef<str>, A: IntoAmount> FromIterator<(N, A)> for Demand {
    fn from_iter<I: IntoIterator<Item = (N, A)>>(parts: I) -> Demand {
        parts.into_iter().fold(Demand::new(), |demand, (name, amount)| demand.with(name.as_ref(), amount))
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
                write!(f, "the demand names no amount, but {limit} requires one, such as {limit}=1")
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
