//! Buckets as bytes: a decoded bucket equals the encoded one, and no other bytes decode.

use crate::oracle::history::History;
use crate::oracle::seed::{TestRng, for_seeds};
use crate::oracle::spec::{Spec, any};
use crate::oracle::subject::{Core, costs, tick};
use crate::oracle::trace::{Plan, Trace};
use tollgate_core::{
    AMOUNT_MAX, Bucket, CodecError, Demand, Holder, Limit, LimitBuilder, Limits, PERIOD_MAX, Take, Tick,
    UNBOUNDED, Usage, demand,
};

const PLAN: Plan = Plan { steps: 30, overuse_max: 4, clock_back: true };

/// Returns a bucket of one limit after a random history.
fn used(rng: &mut TestRng, spec: &Spec) -> Core {
    let mut core = Core::new(spec.limit("x"), 100);
    Trace::at(spec, PLAN, rng, 100).run(&mut core, &mut History::new(spec)).expect("the bound is kept");
    core
}

/// Returns a bucket of several limits of any kind, some of them shadow limits, after some takes and
/// settlements.
fn mixed(rng: &mut TestRng) -> (Limits, Bucket) {
    let limit = |index: u64, rng: &mut TestRng| -> LimitBuilder {
        let builder = any::kind(rng).builder(&format!("x{index}"));
        if rng.one_in(2) { builder.shadow() } else { builder }
    };
    let count = rng.from(1, 10);
    let limits = Limits::new((0..count).map(|index| limit(index, rng))).expect("they are valid");
    let mut now = 1_000;
    let mut bucket = Bucket::fresh(&limits, tick(now));
    for id in 0..20 {
        now += rng.from(0, 5_000_000);
        let demand = limits.iter().fold(Demand::new(), |demand, limit| {
            demand.with(limit.name(), rng.from(0, limit.capacity().min(6)))
        });
        let costs = limits.costs(&demand).expect("it is within the capacity");
        let holder = rng.one_in(2).then(|| Holder { id, expires: tick(now + rng.from(1, 9_000_000)) });
        let Ok(at) = bucket.take(&limits, tick(now), &Take { costs: &costs, holder }) else { continue };
        if rng.one_in(2) {
            let used: Vec<u64> = costs.amounts().iter().map(|cost| rng.from(0, cost * 3)).collect();
            let usage = Usage { at, reserved: &costs, used: &used, holder: holder.map(|holder| holder.id) };
            bucket.settle(&limits, tick(now + 1), &usage);
        }
    }
    (limits, bucket)
}

fn round_trips(limits: &Limits, bucket: &Bucket) -> Result<(), String> {
    let read = Bucket::from_bytes(limits, &bucket.to_bytes());
    if read.as_ref() == Ok(bucket) { Ok(()) } else { Err(format!("{bucket:?} was decoded as {read:?}")) }
}

#[test]
fn a_bucket_of_every_machine_round_trips() {
    for_seeds(3_000, |rng| {
        let spec = any::kind(rng);
        let core = used(rng, &spec);
        round_trips(&core.limits, &core.bucket)
    });
}

#[test]
fn a_bucket_of_many_limits_round_trips() {
    for_seeds(2_000, |rng| {
        let (limits, bucket) = mixed(rng);
        round_trips(&limits, &bucket)
    });
}

#[test]
fn the_largest_numbers_round_trip() {
    let period = PERIOD_MAX.to_duration();
    let limits = [
        Limit::rate("wide", AMOUNT_MAX - 1, period).burst(AMOUNT_MAX),
        Limit::fixed_window("fixed", AMOUNT_MAX, period),
        Limit::sliding_window("sliding", AMOUNT_MAX, period),
        Limit::quota("quota", AMOUNT_MAX, period),
        Limit::per_minute("unbounded", UNBOUNDED),
        Limit::resource("slots", UNBOUNDED),
    ];
    let limits = Limits::new(limits).unwrap();
    let most = limits.iter().fold(Demand::new(), |demand, limit| demand.with(limit.name(), AMOUNT_MAX));
    let costs = limits.costs(&most).unwrap();
    let mut bucket = Bucket::fresh(&limits, Tick::ZERO);
    let now = Tick::from_micros(u64::MAX - 1);
    let holder = Some(Holder { id: u128::MAX, expires: Tick::MAX });
    let at = bucket.take(&limits, now, &Take { costs: &costs, holder }).unwrap();
    round_trips(&limits, &bucket).unwrap();
    let used = [AMOUNT_MAX; 6].map(|amount| amount * 1_000);
    for _ in 0..1_000 {
        bucket.settle(&limits, now, &Usage { at, reserved: &costs, used: &used, holder: None });
    }
    round_trips(&limits, &bucket).unwrap();
}

#[test]
fn a_repaid_wide_debt_round_trips() {
    let limits = Limits::new([Limit::per_minute("x", 7)]).unwrap();
    let mut bucket = Bucket::fresh(&limits, Tick::ZERO);
    let none = limits.costs(&demand! { x: 0 }).unwrap();
    for _ in 0..200 {
        bucket.settle(
            &limits,
            Tick::ZERO,
            &Usage { at: Tick::ZERO, reserved: &none, used: &[AMOUNT_MAX], holder: None },
        );
    }
    round_trips(&limits, &bucket).unwrap();
    bucket.take(&limits, Tick::from_micros(u64::MAX / 2), &Take::of(&none)).unwrap();
    let wide = Limits::new([Limit::per_minute("x", UNBOUNDED)]).unwrap();
    for _ in 0..200 {
        bucket.top_up(&limits, Tick::from_micros(u64::MAX / 2), &costs(&wide, AMOUNT_MAX));
    }
    assert!(bucket.is_fresh(&limits, bucket.stamp()));
    round_trips(&limits, &bucket).unwrap();
}

#[test]
fn an_ordinary_bucket_is_small() {
    let limits = Limits::new([Limit::per_minute("rpm", 100), Limit::per_minute("tpm", 1_000_000)]).unwrap();
    let mut bucket = Bucket::fresh(&limits, Tick::from_secs(1_800_000_000));
    let costs = limits.costs(&demand! { rpm: 1, tpm: 400 }).unwrap();
    bucket.take(&limits, Tick::from_secs(1_800_000_001), &Take::of(&costs)).unwrap();
    assert!(bucket.to_bytes().len() < 24, "{} bytes", bucket.to_bytes().len());
}

/// Uses a bucket in every way, which must not panic, and decodes it again.
fn exercise(limits: &Limits, mut bucket: Bucket, rng: &mut TestRng) -> Result<(), String> {
    round_trips(limits, &bucket)?;
    let demand = limits.iter().fold(Demand::new(), |demand, limit| demand.with(limit.name().as_str(), 1));
    let costs = limits.costs(&demand).expect("one always fits");
    for _ in 0..4 {
        let now = Tick::from_micros(bucket.stamp().as_micros().saturating_add(rng.from(0, 100_000_000)));
        bucket.peek(limits, now);
        bucket.ready(limits, now, &costs);
        bucket.is_fresh(limits, now);
        let at = bucket.take(limits, now, &Take::of(&costs)).unwrap_or(now);
        let used = vec![rng.from(0, 5); limits.len()];
        bucket.settle(limits, now, &Usage { at, reserved: &costs, used: &used, holder: None });
        bucket.top_up(limits, now, &costs);
        bucket.retain_holders(limits, now, |id| id % 2 == 0);
        round_trips(limits, &bucket)?;
    }
    Ok(())
}

#[test]
fn truncated_and_extended_bytes_are_refused() {
    for_seeds(500, |rng| {
        let (limits, bucket) = mixed(rng);
        let mut bytes = bucket.to_bytes();
        for len in 0..bytes.len() {
            if let Ok(read) = Bucket::from_bytes(&limits, &bytes[..len]) {
                return Err(format!("{len} of {} bytes were read as {read:?}", bytes.len()));
            }
        }
        bytes.push(0);
        let longer = Bucket::from_bytes(&limits, &bytes);
        if longer == Err(CodecError::TooLong(1)) { Ok(()) } else { Err(format!("one more: {longer:?}")) }
    });
}

#[test]
fn a_flipped_bit_decodes_to_a_usable_bucket_or_an_error() {
    for_seeds(300, |rng| {
        let (limits, bucket) = mixed(rng);
        let bytes = bucket.to_bytes();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(read) = Bucket::from_bytes(&limits, &flipped) {
                exercise(&limits, read, rng)?;
            }
        }
        Ok(())
    });
}

#[test]
fn random_bytes_decode_to_a_usable_bucket_or_an_error() {
    for_seeds(20_000, |rng| {
        let spec = any::kind(rng);
        let limits = Limits::new([spec.builder("x")]).expect("it is valid");
        let kind = rng.from(0, 7) as u8;
        let head = [rng.from(1, 2) as u8, rng.from(0, 255) as u8, kind];
        let tail = (0..rng.from(0, 12)).map(|_| rng.from(0, 255) as u8);
        let bytes: Vec<u8> = head.into_iter().chain(tail).collect();
        match Bucket::from_bytes(&limits, &bytes) {
            Ok(read) => exercise(&limits, read, rng),
            Err(_) => Ok(()),
        }
    });
}

#[test]
fn a_bucket_of_other_limits_is_refused() {
    let limits = |limit: LimitBuilder| Limits::new([limit]).unwrap();
    let second = std::time::Duration::from_secs(1);
    let all = [
        limits(Limit::per_second("x", 5).shadow()),
        limits(Limit::fixed_window("x", 5, second)),
        limits(Limit::sliding_window("x", 5, second)),
        limits(Limit::resource("x", 5).shadow()),
        limits(Limit::quota("x", 5, second)),
        limits(Limit::per_second("x", UNBOUNDED)),
    ];
    for (index, one) in all.iter().enumerate() {
        let bytes = Bucket::fresh(one, Tick::from_secs(5)).to_bytes();
        for (other_index, other) in all.iter().enumerate() {
            let read = Bucket::from_bytes(other, &bytes);
            if index == other_index {
                assert!(read.is_ok());
            } else {
                assert_eq!(read, Err(CodecError::BadState("x".into())));
            }
        }
        let two = Limits::new([Limit::per_second("x", 5), Limit::per_second("y", 5).shadow()]).unwrap();
        assert!(Bucket::from_bytes(&two, &bytes).is_err());
    }
}

#[test]
fn the_format_of_a_later_version_is_reported() {
    let limits = Limits::new([Limit::per_second("x", 5)]).unwrap();
    let mut bytes = Bucket::fresh(&limits, Tick::ZERO).to_bytes();
    bytes[0] = 9;
    let error = Bucket::from_bytes(&limits, &bytes).unwrap_err();
    assert_eq!(error, CodecError::UnknownForm("9".into()));
    assert!(error.to_string().contains("a later version wrote it"));
}
