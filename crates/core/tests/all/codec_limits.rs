//! Limits as text: decoded limits equal the encoded ones, and the error for other text names the
//! reason.

use std::time::Duration;

use crate::oracle::seed::{TestRng, for_seeds};
use crate::oracle::spec::any;
use tollgate_core::{
    AMOUNT_MAX, Algorithm, Calendar, CodecError, Edges, Limit, LimitBuilder, Limits, PERIOD_MAX, Resets,
    Span, Tick, UNBOUNDED, Unit,
};

struct NoEdges;

impl Edges for NoEdges {
    fn next_edge(&self, _: Tick) -> Option<Tick> {
        None
    }
}

fn calendar(text: &str) -> Option<Calendar> {
    (text != "unknown").then(|| Calendar::new(text, NoEdges))
}

fn read(text: &str) -> Result<Limits, CodecError> {
    Limits::from_text(text, &calendar)
}

/// Returns the limits themselves with their version: comparing `Limits` ignores the version.
fn contents(limits: &Limits) -> (&[Limit], u64) {
    (limits, limits.version())
}

fn any_limit(rng: &mut TestRng, name: &str) -> LimitBuilder {
    let amount = if rng.one_in(8) { UNBOUNDED } else { rng.from(10, AMOUNT_MAX) };
    let period = Span::from_micros(rng.from(1, PERIOD_MAX.as_micros())).to_duration();
    let algorithms = [Algorithm::TokenBucket, Algorithm::LeakyBucket, Algorithm::Gcra];
    let (bucket, bursts) = (*rng.pick(&algorithms), amount != UNBOUNDED && rng.one_in(3));
    let text = *rng.pick(&["@daily", "0 0 * * * Europe/Berlin", "", "50%=5"]);
    let mut limit = match rng.from(0, 7) {
        0 if bursts => Limit::rate(name, amount, period).algorithm(bucket).burst(rng.from(10, 99)),
        1 if bursts => Limit::calls(amount, period).named(name).algorithm(bucket).burst(UNBOUNDED),
        0 | 1 => Limit::calls(amount, period).named(name).algorithm(bucket),
        2 => Limit::fixed_window(name, amount, period),
        3 => Limit::sliding_window(name, amount, period),
        4 => Limit::sliding_window(name, amount, period).resolution(period),
        5 => Limit::quota(name, amount, Resets::AfterFirstUse(Span::covering(period))),
        6 => Limit::quota(name, amount, calendar(text).expect("it is known")),
        _ => Limit::resource(name, amount),
    };
    if rng.one_in(3) {
        let symbol =
            rng.pick(&["USD", "", "a b", "50%", "x=y:z\n\r\t", "€ cent", "shadow", "\u{a0}\u{2028}"]);
        limit = limit.unit(Unit::new(symbol, rng.from(0, 12) as u8).expect("12 decimals fit"));
    }
    let is_unbounded = limit.clone().build().expect("it is valid").is_unbounded();
    if !is_unbounded && rng.one_in(3) {
        limit = limit.soft(rng.from(1, 9));
    }
    if rng.one_in(3) { limit.shadow() } else { limit }
}

#[test]
fn limits_round_trip() {
    for_seeds(5_000, |rng| {
        let count = rng.from(0, 6);
        let limits = Limits::new((0..count).map(|index| any_limit(rng, &format!("x{index}"))));
        let version = if rng.one_in(2) { 0 } else { rng.from(1, u64::MAX) };
        let limits = limits.map_err(|why| why.to_string())?.at_version(version);
        let text = limits.to_text();
        let read = read(&text).map_err(|why| format!("{why} in {text}"))?;
        if contents(&read) == contents(&limits) && read.to_text() == text { Ok(()) } else { Err(text) }
    });
}

#[test]
fn the_limits_of_every_machine_round_trip() {
    for_seeds(1_000, |rng| {
        let limits = Limits::new([any::kind(rng).builder("x")]).map_err(|why| why.to_string())?;
        let read = read(&limits.to_text()).map_err(|why| why.to_string())?;
        if contents(&read) == contents(&limits) { Ok(()) } else { Err(limits.to_text()) }
    });
}

#[test]
fn the_text_format_is_stable() {
    let berlin = calendar("0 0 * * * Europe/Berlin").unwrap();
    let limits = [
        Limit::per_minute("rpm", 100).burst(20).soft(15).algorithm(Algorithm::Gcra),
        Limit::calls(UNBOUNDED, Duration::from_secs(1)),
        Limit::sliding_window("tpm", 5, Duration::from_secs(2)).resolution(Duration::from_millis(1)),
        Limit::resource("slots", 3).shadow(),
        Limit::quota("spend", 5_000_000, berlin).unit(Unit::new("USD", 6).unwrap()),
        Limit::quota("session", 9, Duration::from_secs(3_600)),
    ];
    let text = "limits/1 version=7\n\
        rate:gcra rpm 100 period=60000000 burst=20 soft=15\n\
        calls:token-bucket call_count unbounded period=1000000\n\
        rate:sliding-window tpm 5 period=2000000 resolution=1000\n\
        resource slots 3 shadow\n\
        quota spend 5000000 calendar=0%200%20*%20*%20*%20Europe/Berlin unit=6:USD\n\
        quota session 9 session=3600000000\n";
    assert_eq!(Limits::new(limits).unwrap().at_version(7).to_text(), text);
}

#[test]
fn invalid_text_is_refused_with_the_reason() {
    let unknown = |head| format!("unknown format {head:?}; a later version wrote it");
    let (unknown_two, unknown_sign) = (unknown("limits/2 version=0"), unknown("limits/1 version=+1"));
    let cases = [
        ("", "the data is truncated"),
        ("limits/1 version=0", "the data is truncated"),
        ("limits/1 version=0\nresource x 1", "the data is truncated"),
        ("limits/2 version=0\n", &unknown_two),
        ("limits/1 version=+1\n", &unknown_sign),
        ("limits/1 version=0\n\n", "line 2: the kind is missing"),
        ("limits/1 version=0\nresource\n", "line 2: the name is missing"),
        ("limits/1 version=0\nresource x\n", "line 2: the amount is missing"),
        ("limits/1 version=0\nresource x 1\nrate x 1\n", "line 3: unknown kind of limit \"rate\""),
        ("limits/1 version=0\nrate:fast x 1\n", "line 2: unknown kind of limit \"rate:fast\""),
        ("limits/1 version=0\nresource x -1\n", "line 2: \"-1\" is not an amount"),
        ("limits/1 version=0\nresource x 1 colour=red\n", "line 2: unknown field \"colour\""),
        ("limits/1 version=0\nresource x 1 shadow shadow\n", "line 2: \"shadow\" is given twice"),
        ("limits/1 version=0\nresource x 1 shadow=yes\n", "line 2: shadow cannot be \"yes\""),
        ("limits/1 version=0\nresource x 2 soft=\n", "line 2: soft cannot be \"\""),
        ("limits/1 version=0\nresource x 2 unit=99:USD\n", "line 2: unit cannot be \"99:USD\""),
        ("limits/1 version=0\nresource x 2 unit=2:%2\n", "line 2: unit cannot be \"2:%2\""),
        ("limits/1 version=0\nresource x 2 period=5\n", "line 2: the kind of limit requires another period"),
        ("limits/1 version=0\nquota x 2\n", "line 2: the kind of limit requires another period"),
        (
            "limits/1 version=0\nquota x 2 session=1 calendar=a\n",
            "line 2: the kind of limit requires another period",
        ),
        ("limits/1 version=0\nquota x 2 calendar=unknown\n", "unknown calendar \"unknown\""),
        (
            "limits/1 version=0\nresource x 0\n",
            "limit \"x\": amount is 0, but must be 1 to 1000000000000000, or UNBOUNDED",
        ),
        (
            "limits/1 version=0\nresource x 2 soft=2\n",
            "limit \"x\": soft is 2, but must be below the capacity, which is 2",
        ),
        (
            "limits/1 version=0\nresource x 1\nresource x 1\n",
            "two limits are named \"x\"; names must be unique within a set",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(read(text).expect_err(text).to_string(), message, "{text:?}");
    }
}

#[test]
fn mangled_text_decodes_to_limits_or_an_error() {
    for_seeds(3_000, |rng| {
        let limits =
            Limits::new([any_limit(rng, "x0"), any_limit(rng, "x1")]).map_err(|why| why.to_string())?;
        let mut bytes = limits.to_text().into_bytes();
        for _ in 0..rng.from(1, 3) {
            let index = rng.from(0, bytes.len() as u64 - 1) as usize;
            match rng.from(0, 2) {
                0 => bytes.truncate(index.max(1)),
                1 => bytes[index] ^= 1 << rng.from(0, 6),
                _ => bytes.insert(index, *rng.pick(b" %=:\n0x")),
            }
        }
        if let Ok(decoded) = read(&String::from_utf8_lossy(&bytes)) {
            let again = read(&decoded.to_text()).map_err(|why| why.to_string())?;
            assert_eq!(contents(&again), contents(&decoded));
        }
        Ok(())
    });
}
