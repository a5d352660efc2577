//! Buckets as bytes: what was written is read as it was, and nothing else is taken for a bucket.

mod oracle;

use oracle::history::History;
use oracle::seed::{Dice, for_seeds};
use oracle::spec::{Spec, any};
use oracle::subject::{Core, costs, tick};
use oracle::trace::{Plan, Trace};
use tollgate_core::{
    AMOUNT_MAX, Bucket, CodecError, Demand, Holder, Limit, LimitBuilder, Limits, PERIOD_MAX, Take, Tick,
    UNBOUNDED, Usage, demand,
};

const PLAN: Plan = Plan { steps: 30, overuse_max: 4, clock_back: true };

/// A bucket of one limit with a past.
fn used(dice: &mut Dice, spec: &Spec) -> Core {
    let mut core = Core::new(spec.limit("x"), 100);
    Trace::at(spec, PLAN, dice, 100).run(&mut core, &mut History::new(spec)).expect("the bound is kept");
    core
}

/// A bucket of several limits of any kind, some of which only remark, after some takes and settlements.
fn mixed(dice: &mut Dice) -> (Limits, Bucket) {
    let limit = |index: u64, dice: &mut Dice| -> LimitBuilder {
        let builder = any::kind(dice).builder(&format!("x{index}"));
        if dice.one_in(2) { builder.shadow() } else { builder }
    };
    let count = dice.from(1, 10);
    let limits = Limits::new((0..count).map(|index| limit(index, dice))).expect("they are valid");
    let mut now = 1_000;
    let mut bucket = Bucket::fresh(&limits, tick(now));
    for id in 0..20 {
        now += dice.from(0, 5_000_000);
        let demand = limits.iter().fold(Demand::new(), |demand, limit| {
            demand.with(limit.name(), dice.from(0, limit.capacity().min(6)))
        });
        let costs = limits.costs(&demand).expect("it is within the capacity");
        let holder = dice.one_in(2).then(|| Holder { id, expires: tick(now + dice.from(1, 9_000_000)) });
        let Ok(at) = bucket.take(&limits, tick(now), &Take { costs: &costs, holder }) else { continue };
        if dice.one_in(2) {
            let used: Vec<u64> = costs.amounts().iter().map(|cost| dice.from(0, cost * 3)).collect();
            let usage = Usage { at, reserved: &costs, used: &used, holder: holder.map(|holder| holder.id) };
            bucket.settle(&limits, tick(now + 1), &usage);
        }
    }
    (limits, bucket)
}

fn returns(limits: &Limits, bucket: &Bucket) -> Result<(), String> {
    let read = Bucket::from_bytes(limits, &bucket.to_bytes());
    if read.as_ref() == Ok(bucket) { Ok(()) } else { Err(format!("{bucket:?} was read as {read:?}")) }
}

#[test]
fn a_bucket_of_every_machine_is_read_as_it_was_written() {
    for_seeds(3_000, |dice| {
        let spec = any::kind(dice);
        let core = used(dice, &spec);
        returns(&core.limits, &core.bucket)
    });
}

#[test]
fn a_bucket_of_many_limits_is_read_as_it_was_written() {
    for_seeds(2_000, |dice| {
        let (limits, bucket) = mixed(dice);
        returns(&limits, &bucket)
    });
}

#[test]
fn the_largest_numbers_are_read_as_they_were_written() {
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
    returns(&limits, &bucket).unwrap();
    let used = [AMOUNT_MAX; 6].map(|amount| amount * 1_000);
    for _ in 0..1_000 {
        bucket.settle(&limits, now, &Usage { at, reserved: &costs, used: &used, holder: None });
    }
    returns(&limits, &bucket).unwrap();
}

#[test]
fn a_debt_that_was_wide_is_read_as_it_is_when_it_fits_again() {
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
    returns(&limits, &bucket).unwrap();
    bucket.take(&limits, Tick::from_micros(u64::MAX / 2), &Take::of(&none)).unwrap();
    let wide = Limits::new([Limit::per_minute("x", UNBOUNDED)]).unwrap();
    for _ in 0..200 {
        bucket.top_up(&limits, Tick::from_micros(u64::MAX / 2), &costs(&wide, AMOUNT_MAX));
    }
    assert!(bucket.is_fresh(&limits, bucket.stamp()));
    returns(&limits, &bucket).unwrap();
}

#[test]
fn an_ordinary_bucket_is_small() {
    let limits = Limits::new([Limit::per_minute("rpm", 100), Limit::per_minute("tpm", 1_000_000)]).unwrap();
    let mut bucket = Bucket::fresh(&limits, Tick::from_secs(1_800_000_000));
    let costs = limits.costs(&demand! { rpm: 1, tpm: 400 }).unwrap();
    bucket.take(&limits, Tick::from_secs(1_800_000_001), &Take::of(&costs)).unwrap();
    assert!(bucket.to_bytes().len() < 24, "{} bytes", bucket.to_bytes().len());
}

/// Uses a bucket in every way, which must not panic, and reads it again.
fn use_up(limits: &Limits, mut bucket: Bucket, dice: &mut Dice) -> Result<(), String> {
    returns(limits, &bucket)?;
    let demand = limits.iter().fold(Demand::new(), |demand, limit| demand.with(limit.name().as_str(), 1));
    let costs = limits.costs(&demand).expect("one always fits");
    for _ in 0..4 {
        let now = Tick::from_micros(bucket.stamp().as_micros().saturating_add(dice.from(0, 100_000_000)));
        bucket.peek(limits, now);
        bucket.ready(limits, now, &costs);
        bucket.is_fresh(limits, now);
        let at = bucket.take(limits, now, &Take::of(&costs)).unwrap_or(now);
        let used = vec![dice.from(0, 5); limits.len()];
        bucket.settle(limits, now, &Usage { at, reserved: &costs, used: &used, holder: None });
        bucket.top_up(limits, now, &costs);
        bucket.retain_holders(limits, now, |id| id % 2 == 0);
        returns(limits, &bucket)?;
    }
    Ok(())
}

#[test]
fn what_is_cut_off_or_goes_on_is_no_bucket() {
    for_seeds(500, |dice| {
        let (limits, bucket) = mixed(dice);
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
fn a_flipped_bit_makes_another_bucket_or_none_and_never_a_panic() {
    for_seeds(300, |dice| {
        let (limits, bucket) = mixed(dice);
        let bytes = bucket.to_bytes();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(read) = Bucket::from_bytes(&limits, &flipped) {
                use_up(&limits, read, dice)?;
            }
        }
        Ok(())
    });
}

#[test]
fn random_bytes_make_a_bucket_or_none_and_never_a_panic() {
    for_seeds(20_000, |dice| {
        let spec = any::kind(dice);
        let limits = Limits::new([spec.builder("x")]).expect("it is valid");
        let kind = dice.from(0, 7) as u8;
        let head = [dice.from(1, 2) as u8, dice.from(0, 255) as u8, kind];
        let tail = (0..dice.from(0, 12)).map(|_| dice.from(0, 255) as u8);
        let bytes: Vec<u8> = head.into_iter().chain(tail).collect();
        match Bucket::from_bytes(&limits, &bytes) {
            Ok(read) => use_up(&limits, read, dice),
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
    for (place, one) in all.iter().enumerate() {
        let bytes = Bucket::fresh(one, Tick::from_secs(5)).to_bytes();
        for (other_place, other) in all.iter().enumerate() {
            let read = Bucket::from_bytes(other, &bytes);
            if place == other_place {
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
fn a_form_of_a_later_version_is_said_to_be_one() {
    let limits = Limits::new([Limit::per_second("x", 5)]).unwrap();
    let mut bytes = Bucket::fresh(&limits, Tick::ZERO).to_bytes();
    bytes[0] = 9;
    let error = Bucket::from_bytes(&limits, &bytes).unwrap_err();
    assert_eq!(error, CodecError::UnknownForm("9".into()));
    assert!(error.to_string().contains("a later one wrote it"));
}
