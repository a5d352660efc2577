//! Buckets as bytes: the format, the stamp, and the state of each limit.

use super::CodecError;
use super::bytes::{ByteReader, put_number, put_signed, put_tick, put_wide};
use crate::bucket::States;
use crate::fast_bucket::PlainRules;
use crate::inline_vec::INLINE;
use crate::machine::{Credit, Holders, Machine, Period};
use crate::state::StateInner;
use crate::{Bucket, Holder, Limit, Limits, State, Tick};

/// Format of plain buckets: one credit for each limit.
const CREDITS: u8 = 1;
/// Format of other buckets: one state for each limit.
const STATES: u8 = 2;

const METER: u8 = 1;
const FIXED: u8 = 2;
const SLIDING: u8 = 3;
const GAUGE: u8 = 4;
const HELD: u8 = 5;
const QUOTA: u8 = 6;
const UNBOUNDED: u8 = 7;
const COOLDOWN: u8 = 8;
/// Written but never read: no store accepts a custom limit.
const CUSTOM: u8 = 9;

impl Bucket {
    /// Encodes the bucket: about 20 bytes for two ordinary limits. Decoding requires the same
    /// limits.
    ///
    /// ```
    /// use tollgate_core::{Bucket, Limit, Limits, Tick};
    ///
    /// let limits = Limits::new([Limit::per_minute("rpm", 100)])?;
    /// let bucket = Bucket::fresh(&limits, Tick::from_secs(5));
    /// assert_eq!(Bucket::from_bytes(&limits, &bucket.to_bytes())?, bucket);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        match self.states() {
            States::Plain(credits) => {
                out.push(CREDITS);
                put_tick(&mut out, self.stamp());
                let credits = credits.without_tail();
                put_number(&mut out, credits.len() as u64);
                credits.iter().for_each(|credit| put_signed(&mut out, (*credit).into()));
            }
            States::General(states) => {
                out.push(STATES);
                put_tick(&mut out, self.stamp());
                states.iter().for_each(|state| put_state(&mut out, state));
            }
        }
        out
    }

    /// Decodes a bucket that [`to_bytes`](Bucket::to_bytes) encoded under these limits.
    ///
    /// # Errors
    ///
    /// Returns [`CodecError`] for bytes that are not a bucket of these limits.
    pub fn from_bytes(limits: &Limits, bytes: &[u8]) -> Result<Bucket, CodecError> {
        let mut reader = ByteReader::new(bytes);
        let form = reader.byte()?;
        let bucket = match form {
            CREDITS => plain(&mut reader, limits)?,
            STATES => {
                let stamp = reader.tick()?;
                let states = limits.iter().map(|limit| state(&mut reader, limit, stamp));
                Bucket::of_states(limits, stamp, states.collect::<Result<_, _>>()?)
            }
            other => return Err(CodecError::UnknownForm(other.to_string())),
        };
        reader.end()?;
        Ok(bucket)
    }
}

/// Plain buckets as numbers, for stores that store them as such.
impl Bucket {
    /// Returns the credit of each limit if the bucket is plain: together with its
    /// [stamp](Bucket::stamp) that is its whole state. There may be zeros past the last limit.
    // Hidden: the representation of plain buckets, for stores.
    #[doc(hidden)]
    #[inline]
    pub fn credits(&self) -> Option<&[i64]> {
        match self.states() {
            States::Plain(credits) => Some(credits.as_slice()),
            States::General(_) => None,
        }
    }

    /// Creates the bucket that has these [credits](Bucket::credits) under these limits.
    ///
    /// # Errors
    ///
    /// Returns [`CodecError`] for credits that these limits cannot have.
    // Hidden: the representation of plain buckets, for stores.
    #[doc(hidden)]
    #[inline]
    pub fn of_credits(limits: &Limits, stamp: Tick, credits: &[i64]) -> Result<Bucket, CodecError> {
        let mut padded = [0; INLINE];
        let check = |rules: &PlainRules| {
            padded.get_mut(..credits.len())?.copy_from_slice(credits);
            rules.credits(padded)
        };
        let credits = limits.plain().and_then(check);
        credits.map(|credits| Bucket::plain(stamp, credits)).ok_or_else(|| not_plain(limits))
    }

    /// Makes this the bucket that has these [credits](Bucket::credits) under these limits, in the
    /// memory that it has, if that fits.
    ///
    /// # Errors
    ///
    /// Returns [`CodecError`] for credits that these limits cannot have; the bucket is unchanged.
    // Hidden: the representation of plain buckets, for stores.
    #[doc(hidden)]
    #[inline]
    pub fn set_credits(&mut self, limits: &Limits, stamp: Tick, credits: &[i64]) -> Result<(), CodecError> {
        match limits.plain() {
            Some(rules) if self.replace_credits(rules, stamp, credits) => Ok(()),
            _ => {
                *self = Bucket::of_credits(limits, stamp, credits)?;
                Ok(())
            }
        }
    }
}

#[cold]
fn not_plain(limits: &Limits) -> CodecError {
    CodecError::BadState(limits.first().map_or_else(String::new, |limit| limit.name().to_string()))
}

fn plain(reader: &mut ByteReader<'_>, limits: &Limits) -> Result<Bucket, CodecError> {
    let bad = || not_plain(limits);
    let rules = limits.plain().ok_or_else(bad)?;
    let stamp = reader.tick()?;
    let mut credits = [0; INLINE];
    let len = usize::try_from(reader.number()?).ok().filter(|len| *len <= limits.len());
    for credit in &mut credits[..len.ok_or_else(bad)?] {
        *credit = i64::try_from(reader.signed()?).map_err(|_| CodecError::BadNumber)?;
    }
    rules.credits(credits).map(|credits| Bucket::plain(stamp, credits)).ok_or_else(bad)
}

pub(super) fn put_state(out: &mut Vec<u8>, state: &State) {
    match &state.0 {
        StateInner::Meter(credit) => {
            out.push(METER);
            put_signed(out, credit.get());
        }
        StateInner::Fixed(count) => {
            out.push(FIXED);
            put_signed(out, (*count).into());
        }
        StateInner::Sliding(log) => {
            let (entries, debt) = log.parts();
            out.push(SLIDING);
            put_number(out, entries.len() as u64);
            // Instants are encoded as differences, which are short.
            let mut then = Tick::ZERO;
            for (at, amount) in entries {
                put_number(out, at.since(then).as_micros());
                put_number(out, amount);
                then = at;
            }
            put_number(out, debt);
        }
        StateInner::Gauge(in_use) => {
            out.push(GAUGE);
            put_number(out, *in_use);
        }
        StateInner::Held(held) => {
            let (anonymous, holds) = held.parts();
            out.push(HELD);
            put_number(out, anonymous);
            put_number(out, holds.len() as u64);
            for (holder, amount) in holds {
                put_wide(out, holder.id);
                put_number(out, amount);
                put_tick(out, holder.expires);
            }
        }
        StateInner::Quota(period) => {
            let (used, start, end) = period.parts();
            out.push(QUOTA);
            put_signed(out, used.into());
            put_tick(out, start);
            put_number(out, end.since(start).as_micros());
        }
        StateInner::Cooldown(left) => {
            out.push(COOLDOWN);
            put_number(out, *left);
        }
        StateInner::Custom(_) => out.push(CUSTOM),
        StateInner::Unbounded => out.push(UNBOUNDED),
    }
}

/// Decodes the state of `limit` in a bucket that is as of `stamp`.
pub(super) fn state(reader: &mut ByteReader<'_>, limit: &Limit, stamp: Tick) -> Result<State, CodecError> {
    let bad = || CodecError::BadState(limit.name().to_string());
    let kind = reader.byte()?;
    let inner = match (limit.machine(), kind) {
        (Machine::Meter(meter), METER) => {
            let credit = Some(reader.signed()?).filter(|credit| *credit <= meter.full());
            StateInner::Meter(Credit::new(credit.ok_or_else(bad)?))
        }
        (Machine::Fixed(_), FIXED) => StateInner::Fixed(count(reader)?.ok_or_else(bad)?),
        (Machine::Sliding(window), SLIDING) => {
            let (entries, debt) = log(reader)?;
            StateInner::Sliding(Box::new(window.log_of(entries, debt, stamp).ok_or_else(bad)?))
        }
        (Machine::Gauge, GAUGE) => StateInner::Gauge(reader.number()?),
        (Machine::Gauge, HELD) => StateInner::Held(Box::new(holders(reader)?.ok_or_else(bad)?)),
        (Machine::Quota(_), QUOTA) => {
            let (used, start, length) = (count(reader)?, reader.tick()?, reader.number()?);
            let end = start.as_micros().checked_add(length).map(Tick::from_micros);
            let period = used.zip(end).and_then(|(used, end)| Period::of(used, start, end));
            StateInner::Quota(Box::new(period.ok_or_else(bad)?))
        }
        (Machine::Cooldown, COOLDOWN) => StateInner::Cooldown(reader.number()?),
        (Machine::Unbounded, UNBOUNDED) => StateInner::Unbounded,
        _ => return Err(bad()),
    };
    Ok(State(inner))
}

/// Decodes a count; `None` if it is negative.
fn count(reader: &mut ByteReader<'_>) -> Result<Option<i64>, CodecError> {
    Ok(i64::try_from(reader.signed()?).ok().filter(|count| *count >= 0))
}

/// Decodes the entries of a log, in order, and the debt.
fn log(reader: &mut ByteReader<'_>) -> Result<(Vec<(Tick, u64)>, u64), CodecError> {
    // The announced length is not used as a capacity: damaged data may announce any length.
    let mut entries = Vec::new();
    let mut at = 0u64;
    for _ in 0..reader.number()? {
        at = at.checked_add(reader.number()?).ok_or(CodecError::BadNumber)?;
        entries.push((Tick::from_micros(at), reader.number()?));
    }
    Ok((entries, reader.number()?))
}

fn holders(reader: &mut ByteReader<'_>) -> Result<Option<Holders>, CodecError> {
    let anonymous = reader.number()?;
    let mut holds = Vec::new();
    for _ in 0..reader.number()? {
        let (id, amount, expires) = (reader.wide()?, reader.number()?, reader.tick()?);
        holds.push((Holder { id, expires }, amount));
    }
    Ok(Holders::of(anonymous, holds))
}
