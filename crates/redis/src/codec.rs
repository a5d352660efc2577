//! Encoding of buckets.
//!
//! The narrow form is for scripts. It has a head that rarely changes: `M`, a digest of the limits' text, the hour that usage is
//! counted in (-1 for none) and the version of the limits. Then what changes: when it is as of, when the key expires (0 for never),
//! the events of the hour, and for each limit what was used of it in that hour and its state. Then the limits as text. Numbers are
//! doubles, all of them whole and below 2^53. So a script that is passed the head reads and writes what is between it and the
//! text, and never the text, which is the longest part. What does not fit is in the wide form, which scripts leave alone: `W`, and
//! the bytes of the core. A bucket that may have waiters is marked: the time at which the key expires is odd then, and even
//! otherwise; the text of the wide form ends with a carriage return and a line feed. Versions without waiters read both.
//! `N` is how the narrow form was before it had a head; it is read, and not written.

use tollgate_core::{Bucket, Holder, Limit, Limits, MachineView, Span, StateView, Tick};
use tollgate_store::StoredBucket;
use tollgate_store::usage::Sums;

use crate::ServerError;

/// The largest number of the narrow form, so that two of them can be added in a double.
pub(crate) const NARROW_MAX: u64 = 1 << 51;

/// How long a key is kept after its bucket equals a new one: clocks of servers differ.
const SLACK: Span = Span::from_secs(3_600);

/// The start of a text of limits.
const TEXT_START: &[u8] = b"limits/1 version=0\n";

const NARROW: u8 = b'M';
const NARROW_BEFORE: u8 = b'N';
const WIDE: u8 = b'W';
const NO_HOUR: f64 = -1.0;

/// A bucket under its limits, and what was used of it in the current hour.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RedisRow {
    pub(crate) kept: StoredBucket,
    /// Counted in the limits that are in force.
    pub(crate) usage: Option<Sums>,
    /// Whether callers may wait for a limit of it. Scripts set that.
    pub(crate) has_waiters: bool,
}

/// Returns the text of limits. Their version is stored apart, so that a new version of the same limits has the same text.
pub(crate) fn text_of(limits: &Limits) -> String {
    if limits.version() == 0 { limits.to_text() } else { limits.clone().at_version(0).to_text() }
}

/// Returns the head of the narrow form of a bucket under limits of this text and version, with usage of this hour.
pub(crate) fn head_of(text: &str, version: f64, hour: Option<u32>) -> Vec<u8> {
    let mut head = vec![NARROW];
    head.extend(digest(text.as_bytes()));
    put(&mut head, hour.map_or(NO_HOUR, f64::from));
    put(&mut head, version);
    head
}

/// Returns a digest of 128 bits: FNV-1a.
fn digest(text: &[u8]) -> [u8; 16] {
    const START: u128 = 0x6C62_272E_07BB_0142_62B8_2175_6295_C58D;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013B;
    let step = |sum: u128, byte: &u8| (sum ^ u128::from(*byte)).wrapping_mul(PRIME);
    text.iter().fold(START, step).to_le_bytes()
}

impl RedisRow {
    /// Returns a bucket of which nothing was used.
    pub(crate) fn fresh(limits: &Limits) -> RedisRow {
        RedisRow { kept: StoredBucket::fresh(limits), usage: None, has_waiters: false }
    }

    /// Returns when it may be forgotten: it equals a new one by then, and no usage of it is left to be written down.
    pub(crate) fn lasts_until(&self) -> Option<Tick> {
        if self.usage.is_some() {
            return None;
        }
        let StoredBucket { limits, bucket, .. } = &self.kept;
        let stamp = bucket.stamp();
        let full = bucket.peek(limits, stamp).iter().try_fold(stamp, |latest, status| match status.full() {
            tollgate_core::Ready::Now => Some(latest),
            tollgate_core::Ready::At(at) => Some(latest.max(at)),
            tollgate_core::Ready::Unknown => None,
        });
        // An open session lasts to its end, used or not; holders have an end of their own.
        let ends = bucket.views(limits).into_iter().filter_map(|view| match view {
            StateView::Quota { end, .. } => Some(end),
            StateView::Gauge { holds, .. } => holds.iter().map(|(holder, _)| holder.expires).max(),
            _ => None,
        });
        let until = ends.fold(full?, Tick::max);
        (until < Tick::MAX && bucket.is_fresh(limits, until)).then_some(until + SLACK)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.narrow().unwrap_or_else(|| self.wide())
    }

    /// Decodes a bucket. Its limits are probably those `expected`, whose text need not be parsed.
    pub(crate) fn from_bytes(bytes: &[u8], expected: Option<&Limits>) -> Result<RedisRow, ServerError> {
        let unreadable = |why: &str| ServerError::Unreadable(format!("a bucket: {why}"));
        let has_waiters = may_have_waiters(bytes);
        let unmarked;
        let bytes = match bytes {
            [WIDE, .., b'\r', b'\n'] => {
                unmarked = [&bytes[..bytes.len() - 2], b"\n"].concat();
                &unmarked
            }
            _ => bytes,
        };
        let start = bytes.windows(TEXT_START.len()).rposition(|window| window == TEXT_START);
        let (body, text) = bytes.split_at(start.ok_or_else(|| unreadable("its limits are missing"))?);
        let limits = match expected.filter(|limits| text_of(limits).as_bytes() == text) {
            Some(limits) => limits.clone(),
            None => {
                let text = str::from_utf8(text).map_err(|_| unreadable("its limits are no text"))?;
                let calendars = |text: &str| tollgate_calendar::parse(text).ok();
                Limits::from_text(text, &calendars).map_err(|why| unreadable(&why.to_string()))?
            }
        };
        let row = match body.split_first() {
            Some((&NARROW, body)) => match body.split_first_chunk() {
                Some((known, body)) if *known == digest(text) => narrow_from(body, limits),
                _ => None,
            },
            Some((&NARROW_BEFORE, body)) => narrow_before(body).and_then(|body| narrow_from(&body, limits)),
            Some((&WIDE, body)) => wide_from(body, limits),
            _ => return Err(unreadable("it has a form that this version does not know")),
        };
        let row = row.ok_or_else(|| unreadable("it is cut off or damaged"))?;
        Ok(RedisRow { has_waiters, ..row })
    }

    fn narrow(&self) -> Option<Vec<u8>> {
        let StoredBucket { limits, version, bucket } = &self.kept;
        let text = text_of(limits);
        let mut out = head_of(&text, number(*version)?, self.usage.as_ref().map(Sums::hour));
        put(&mut out, number(bucket.stamp().as_micros())?);
        let lasts = self.lasts_until().map_or(0, |until| until.as_micros().next_multiple_of(2));
        put(&mut out, number(lasts + u64::from(self.has_waiters))?);
        put(&mut out, self.usage.as_ref().map_or(0.0, |sums| f64::from(sums.events())));
        let used = |index: usize| self.usage.as_ref().and_then(|sums| sums.amounts().get(index)).copied();
        for (index, view) in bucket.views(limits).into_iter().enumerate() {
            put(&mut out, signed(i128::from(used(index).unwrap_or(0)))?);
            put_state(&mut out, view)?;
        }
        out.extend(text.as_bytes());
        Some(out)
    }

    fn wide(&self) -> Vec<u8> {
        let StoredBucket { limits, version, bucket } = &self.kept;
        let mut out = vec![WIDE];
        out.extend(version.to_le_bytes());
        out.push(u8::from(self.usage.is_some()));
        if let Some(sums) = &self.usage {
            out.extend(sums.hour().to_le_bytes());
            out.extend(sums.events().to_le_bytes());
            sums.amounts().iter().for_each(|amount| out.extend(amount.to_le_bytes()));
        }
        out.extend(bucket.to_bytes());
        out.extend(text_of(limits).as_bytes());
        if self.has_waiters {
            out.pop();
            out.extend(b"\r\n");
        }
        out
    }
}

/// Returns whether callers may wait for a limit of a bucket.
pub(crate) fn may_have_waiters(bytes: &[u8]) -> bool {
    const LASTS: std::ops::Range<usize> = 41..49;
    match bytes {
        [NARROW, ..] => bytes
            .get(LASTS)
            .and_then(|lasts| lasts.first_chunk())
            .is_some_and(|lasts| f64::from_le_bytes(*lasts) % 2.0 == 1.0),
        [WIDE, .., b'\r', b'\n'] => true,
        _ => false,
    }
}

fn put(out: &mut Vec<u8>, number: f64) {
    out.extend(number.to_le_bytes());
}

fn number(number: u64) -> Option<f64> {
    (number <= NARROW_MAX).then_some(number as f64)
}

fn signed(number: i128) -> Option<f64> {
    (number.unsigned_abs() <= u128::from(NARROW_MAX)).then_some(number as f64)
}

fn put_state(out: &mut Vec<u8>, view: StateView) -> Option<()> {
    match view {
        StateView::Meter(credit) => put(out, signed(credit)?),
        StateView::FixedWindow(count) => put(out, signed(count.into())?),
        StateView::SlidingWindow { entries, debt } => {
            let count = entries.iter().try_fold(0u64, |sum, (_, amount)| sum.checked_add(*amount))?;
            put(out, number(count)?);
            put(out, number(debt)?);
            put(out, number(16 * entries.len() as u64)?);
            for (at, amount) in entries {
                put(out, number(at.as_micros())?);
                put(out, number(amount)?);
            }
        }
        StateView::Gauge { anonymous, holds } => {
            let held = holds.iter().try_fold(0u64, |sum, (_, amount)| sum.checked_add(*amount))?;
            let next = holds.iter().map(|(holder, _)| holder.expires).min();
            put(out, number(anonymous)?);
            put(out, number(held)?);
            put(out, next.map_or(Some(f64::INFINITY), |next| number(next.as_micros()))?);
            put(out, number(32 * holds.len() as u64)?);
            for (holder, amount) in holds {
                out.extend(holder.id.to_be_bytes());
                put(out, number(amount)?);
                put(out, number(holder.expires.as_micros())?);
            }
        }
        StateView::Quota { used, start, end } => {
            put(out, signed(used.into())?);
            put(out, number(start.as_micros())?);
            put(out, number(end.as_micros())?);
        }
        StateView::Cooldown(left) => put(out, number(left)?),
        StateView::Unbounded => {}
        _ => return None,
    }
    Some(())
}

/// Bytes that are being read, from the front.
struct ValueReader<'a>(&'a [u8]);

impl<'a> ValueReader<'a> {
    fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    fn double(&mut self) -> Option<f64> {
        Some(f64::from_le_bytes(*self.bytes(8)?.first_chunk()?))
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.double()?;
        let is_whole = number.fract() == 0.0 && number.abs() <= (1u64 << 53) as f64;
        is_whole.then_some(number as i64)
    }

    fn number(&mut self) -> Option<u64> {
        u64::try_from(self.signed()?).ok()
    }

    fn tick(&mut self) -> Option<Tick> {
        self.number().map(Tick::from_micros)
    }
}

/// Converts the body of a narrow form without a head, whose order was as of, version, expires, hour.
fn narrow_before(body: &[u8]) -> Option<Vec<u8>> {
    let (numbers, rest) = body.split_at_checked(32)?;
    let (parts, _) = numbers.as_chunks::<8>();
    Some([&parts[3], &parts[1], &parts[0], &parts[2], rest].concat())
}

fn narrow_from(body: &[u8], limits: Limits) -> Option<RedisRow> {
    let mut reader = ValueReader(body);
    let (hour, version) = (reader.signed()?, reader.number()?);
    let (stamp, _lasts, events) = (reader.tick()?, reader.number()?, u32::try_from(reader.number()?).ok()?);
    let (mut amounts, mut views) = (Vec::with_capacity(limits.len()), Vec::with_capacity(limits.len()));
    for limit in limits.iter() {
        amounts.push(reader.signed()?);
        views.push(state_from(&mut reader, limit)?);
    }
    if !reader.0.is_empty() {
        return None;
    }
    let usage = match u32::try_from(hour) {
        Ok(hour) => Some(Sums::restored(limits.clone(), hour, events, &amounts)?),
        Err(_) => None,
    };
    let bucket = Bucket::of_views(&limits, stamp, views).ok()?;
    Some(RedisRow { kept: StoredBucket { limits, version, bucket }, usage, has_waiters: false })
}

fn state_from(reader: &mut ValueReader<'_>, limit: &Limit) -> Option<StateView> {
    Some(match limit.machine_view() {
        MachineView::Meter(_) => StateView::Meter(reader.signed()?.into()),
        MachineView::FixedWindow { .. } => StateView::FixedWindow(reader.signed()?),
        MachineView::SlidingWindow { .. } => {
            let (_count, debt, len) = (reader.number()?, reader.number()?, reader.number()?);
            let mut log = ValueReader(reader.bytes(usize::try_from(len).ok()?)?);
            let mut entries = Vec::new();
            while !log.0.is_empty() {
                entries.push((log.tick()?, log.number()?));
            }
            StateView::SlidingWindow { entries, debt }
        }
        MachineView::Gauge { .. } => {
            let (anonymous, _held, _next) = (reader.number()?, reader.number()?, reader.double()?);
            let len = reader.number()?;
            let mut list = ValueReader(reader.bytes(usize::try_from(len).ok()?)?);
            let mut holds = Vec::new();
            while !list.0.is_empty() {
                let id = u128::from_be_bytes(*list.bytes(16)?.first_chunk()?);
                let amount = list.number()?;
                holds.push((Holder { id, expires: list.tick()? }, amount));
            }
            // Scripts add them at the end.
            holds.sort_by_key(|(holder, _)| holder.id);
            StateView::Gauge { anonymous, holds }
        }
        MachineView::Session { .. } | MachineView::Calendar { .. } => {
            StateView::Quota { used: reader.signed()?, start: reader.tick()?, end: reader.tick()? }
        }
        MachineView::Cooldown => StateView::Cooldown(reader.number()?),
        MachineView::Unbounded => StateView::Unbounded,
        _ => return None,
    })
}

fn wide_from(body: &[u8], limits: Limits) -> Option<RedisRow> {
    let mut reader = ValueReader(body);
    let version = u64::from_le_bytes(*reader.bytes(8)?.first_chunk()?);
    let usage = match reader.bytes(1)?[0] {
        0 => None,
        _ => {
            let hour = u32::from_le_bytes(*reader.bytes(4)?.first_chunk()?);
            let events = u32::from_le_bytes(*reader.bytes(4)?.first_chunk()?);
            let amounts =
                (0..limits.len()).map(|_| Some(i64::from_le_bytes(*reader.bytes(8)?.first_chunk()?)));
            Some(Sums::restored(limits.clone(), hour, events, &amounts.collect::<Option<Vec<_>>>()?)?)
        }
    };
    let bucket = Bucket::from_bytes(&limits, reader.0).ok()?;
    Some(RedisRow { kept: StoredBucket { limits, version, bucket }, usage, has_waiters: false })
}

#[cfg(test)]
mod tests {
    use tollgate_core::{AMOUNT_MAX, PERIOD_MAX, Take, demand};

    use super::*;

    fn row(limits: Limits, holder: Option<Holder>) -> RedisRow {
        let now = Tick::from_secs(1_800_000_000);
        let costs = limits.resolve(&demand! { rpm: 1, log: 2, spend: 3, slots: 1 }, |_| Ok(()));
        let costs = costs.expect("it can be asked for");
        let mut row = RedisRow::fresh(&limits);
        row.kept.bucket.commit(&limits, now, &Take { costs: &costs, holder });
        let mut sums = Sums::new(&limits, now, tollgate_store::usage::Caller::Child);
        sums.add_take(&costs);
        row.usage = Some(sums);
        row
    }

    fn limits() -> Limits {
        let day = std::time::Duration::from_secs(86_400);
        let limits = [
            Limit::per_minute("rpm", 7),
            Limit::sliding_window("log", 9, day),
            Limit::quota("spend", 30, day),
            Limit::resource("slots", 3),
        ];
        Limits::new(limits).expect("they are valid").at_version(7)
    }

    #[test]
    fn a_bucket_is_read_as_it_was_written() {
        let holder = Holder { id: u128::MAX - 5, expires: Tick::from_secs(1_800_000_060) };
        let huge = Limit::rate("rpm", 999_999_999_999_999u64, PERIOD_MAX.to_duration()).burst(AMOUNT_MAX);
        let huge = Limits::new([huge]).expect("it is valid");
        let never = Holder { id: 1, expires: Tick::MAX };
        for (row, form) in [
            (row(limits(), None), NARROW),
            (row(limits(), Some(holder)), NARROW),
            (row(limits(), Some(never)), WIDE),
            (row(huge.clone(), None), WIDE),
            (RedisRow { has_waiters: true, ..row(limits(), Some(holder)) }, NARROW),
            (RedisRow { has_waiters: true, ..row(huge, None) }, WIDE),
        ] {
            let bytes = row.to_bytes();
            assert_eq!(bytes[0], form);
            assert_eq!(RedisRow::from_bytes(&bytes, None), Ok(row.clone()));
            assert_eq!(RedisRow::from_bytes(&bytes, Some(&row.kept.limits)), Ok(row));
            for len in 0..bytes.len() {
                assert!(RedisRow::from_bytes(&bytes[..len], None).is_err(), "{len} of {}", bytes.len());
            }
        }
    }

    #[test]
    fn a_bucket_that_was_written_without_a_head_is_read() {
        let row = row(limits(), None);
        let bytes = row.to_bytes();
        let (head, rest) = (&bytes[17..33], &bytes[33..]);
        let before = [b"N", &rest[..8], &head[8..], &rest[8..16], &head[..8], &rest[16..]].concat();
        assert_eq!(RedisRow::from_bytes(&before, None), Ok(row));
    }

    #[test]
    fn a_version_that_knows_nothing_of_waiters_reads_what_says_that_there_are_some() {
        for row in [row(limits(), None), row(limits(), Some(Holder { id: 1, expires: Tick::MAX }))] {
            let marked = RedisRow { has_waiters: true, ..row.clone() }.to_bytes();
            assert!(may_have_waiters(&marked) && !may_have_waiters(&row.to_bytes()));
            // What such a version reads: whole numbers, and the limits by their lines.
            let start = marked.windows(TEXT_START.len()).rposition(|window| window == TEXT_START);
            let (body, text) = marked.split_at(start.expect("there is a text"));
            let text = str::from_utf8(text).expect("it is text");
            let read = Limits::from_text(text, &|_| None).expect("they are limits");
            assert_eq!(read, row.kept.limits);
            let before = match body {
                [NARROW, body @ ..] => narrow_from(&body[16..], read),
                [_, body @ ..] => wide_from(body, read),
                [] => None,
            };
            assert_eq!(before, Some(row));
        }
    }

    #[test]
    fn a_head_of_other_limits_is_refused() {
        let mut bytes = row(limits(), None).to_bytes();
        bytes[5] ^= 1;
        assert!(matches!(RedisRow::from_bytes(&bytes, None), Err(ServerError::Unreadable(_))));
    }

    #[test]
    fn what_is_none_of_ours_is_refused() {
        for bytes in [&b"hello"[..], b"", b"Nlimits/1 version=0\n", b"Xlimits/1 version=0\n"] {
            assert!(
                matches!(RedisRow::from_bytes(bytes, None), Err(ServerError::Unreadable(_))),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn a_bucket_lasts_until_it_is_as_good_as_new() {
        let mut row = row(limits(), None);
        assert_eq!(row.lasts_until(), None, "there is usage to be written down");
        row.usage = None;
        assert_eq!(row.lasts_until(), None, "somebody holds a slot");
        let holder = Holder { id: 5, expires: Tick::from_secs(1_800_000_060) };
        row = self::row(limits(), Some(holder));
        row.usage = None;
        let until = row.lasts_until().expect("it fills up by itself");
        assert!(row.kept.bucket.is_fresh(&row.kept.limits, until - SLACK));
    }
}
