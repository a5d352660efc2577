//! The five rules of a demand on a limit set.

mod support;

use std::time::Duration;

use support::{Ears, Warnings, available, builder, hands, set, spend, try_take};
use tollgate::{
    AMOUNT_MAX, AcquireError, BadAmount, Demand, DemandError, Limit, LimitSet, UNBOUNDED, demand,
};

const MINUTE: Duration = Duration::from_secs(60);

fn refused(set: &LimitSet, demand: impl tollgate::AsDemand) -> DemandError {
    let tried = set.try_acquire(&demand).wait().expect_err("it is refused");
    let waited = set.acquire(&demand).wait().expect_err("it is refused");
    let asked = set.ready(&demand).wait().expect_err("it is refused");
    // As text, because a NaN that is reported is not equal to itself.
    assert_eq!(tried.to_string(), waited.to_string(), "trying and waiting refuse alike");
    assert_eq!(tried.to_string(), asked.to_string(), "trying and asking refuse alike");
    match tried {
        AcquireError::Demand(why) => why,
        other => panic!("{other}"),
    }
}

#[test]
fn without_a_demand_calls_and_resources_take_1() {
    let set = set(&hands(), [Limit::calls(10, MINUTE), Limit::resource("connections", 4)]);
    let lease = try_take(&set, demand! {}).unwrap();
    assert_eq!((lease.reserved("call_count"), lease.reserved("connections")), (Some(1), Some(1)));
    assert_eq!((available(&set, "call_count"), available(&set, "connections")), (9, 3));
}

#[test]
fn without_a_demand_a_plain_rate_or_quota_wants_an_amount() {
    let hands = hands();
    for (limit, name) in [(Limit::per_minute("tpm", 10), "tpm"), (Limit::quota("spend", 10, MINUTE), "spend")]
    {
        let set = set(&hands, [Limit::calls(10, MINUTE), limit]);
        let why = refused(&set, demand! {});
        assert!(matches!(&why, DemandError::MissingAmount { limit } if limit == name), "{why}");
        assert!(why.to_string().contains(&format!("such as {name}=1")), "{why}");
        assert_eq!(available(&set, "call_count"), 10, "nothing was taken");
    }
}

#[test]
fn what_is_named_is_taken_as_asked_calls_and_resources_are_added_and_other_rates_are_left_alone() {
    let limits = [
        Limit::per_minute("rpm", 10),
        Limit::per_minute("tpm", 1_000),
        Limit::calls(10, MINUTE),
        Limit::resource("connections", 4),
        Limit::quota("spend", 50, MINUTE),
    ];
    let set = set(&hands(), limits);
    let lease = try_take(&set, demand! { tpm: 300, connections: 2 }).unwrap();
    let reserved = ["rpm", "tpm", "call_count", "connections", "spend"].map(|name| lease.reserved(name));
    assert_eq!(reserved, [None, Some(300), Some(1), Some(2), None]);
    let left = ["rpm", "tpm", "call_count", "connections", "spend"].map(|name| available(&set, name));
    assert_eq!(left, [10, 700, 9, 2, 50]);
}

#[test]
fn zero_is_a_valid_amount_of_every_kind_and_takes_nothing() {
    let limits = [Limit::per_minute("tpm", 5), Limit::calls(1, MINUTE), Limit::resource("connections", 1)];
    let set = set(&hands(), limits);
    let zero = demand! { tpm: 0, call_count: 0, connections: 0 };
    let leases: Vec<_> = (0..100).map(|_| try_take(&set, &zero).unwrap()).collect();
    assert_eq!(leases[0].reserved("tpm"), Some(0));
    spend(&set, demand! { tpm: 5 });
    // All is taken, and nothing more is asked.
    drop(try_take(&set, &zero).unwrap());
    drop(leases);
    assert_eq!((available(&set, "tpm"), available(&set, "connections")), (0, 1));
}

#[test]
fn amounts_that_are_none_are_refused_before_anything_moves() {
    let hands = hands();
    let ears = Ears::default();
    let limits = [Limit::per_minute("rpm", 10), Limit::per_minute("tpm", 10)];
    let set = builder(&hands, limits).observer(ears.observer()).build().unwrap();
    let why = |demand: Demand| match refused(&set, demand) {
        DemandError::BadAmount { name, why } => (name, *why),
        other => panic!("{other}"),
    };
    let bad = |amount: f64| why(Demand::new().with("rpm", 1).with("tpm", amount)).1;
    assert_eq!(why(Demand::new().with("rpm", 1).with("tpm", -1)), ("tpm".into(), BadAmount::Negative(-1)));
    assert_eq!(bad(-3.0), BadAmount::Negative(-3));
    assert_eq!(bad(1.5), BadAmount::NotWhole(1.5));
    assert!(matches!(bad(f64::NAN), BadAmount::NotWhole(_)));
    assert!(matches!(bad(f64::INFINITY), BadAmount::NotWhole(_)));
    assert!(matches!(bad(1e300), BadAmount::TooLarge(_)));
    for large in [AMOUNT_MAX + 1, UNBOUNDED - 1, UNBOUNDED] {
        let (_, why) = why(Demand::new().with("rpm", 1).with("tpm", large));
        assert_eq!(why, BadAmount::TooLarge(large.into()));
    }
    // A bad amount is refused also where its name would be skipped.
    assert_eq!(why(Demand::new().with("elsewhere", -1)).0.to_string(), "elsewhere");
    assert_eq!((available(&set, "rpm"), available(&set, "tpm")), (10, 10));
    assert_eq!(ears.take(), [""; 0], "what is no demand is neither allowed nor denied");
}

#[test]
fn a_limit_named_twice_is_refused() {
    let set = set(&hands(), [Limit::per_minute("rpm", 10)]);
    let why = refused(&set, Demand::new().with("rpm", 1).with("rpm", 2));
    assert_eq!(why, DemandError::Repeated { name: "rpm".into() });
    assert_eq!(available(&set, "rpm"), 10);
}

#[test]
fn an_amount_above_the_capacity_is_refused_at_once_naming_limit_amount_and_capacity() {
    let limits = [
        Limit::per_minute("tpm", 1_000).burst(100),
        Limit::resource("connections", 4),
        Limit::quota("spend", 50, MINUTE),
        Limit::fixed_window("window", 7, MINUTE),
        Limit::sliding_window("sliding", 7, MINUTE),
    ];
    let set = set(&hands(), limits);
    for (name, capacity) in [("tpm", 100), ("connections", 4), ("spend", 50), ("window", 7), ("sliding", 7)] {
        let why = refused(&set, Demand::new().with(name, capacity + 1));
        let DemandError::Impossible { limit, asked, capacity: told } = &why else { panic!("{why}") };
        assert_eq!((limit.as_str(), *asked, *told), (name, capacity + 1, capacity));
        assert!(try_take(&set, Demand::new().with(name, capacity)).is_some(), "the capacity itself fits");
    }
    assert_eq!(set.peek().wait().unwrap().waiting, 0);
}

#[test]
fn a_demand_that_can_never_fit_is_told_so_even_behind_a_queue_and_in_a_cooldown() {
    let set = set(&hands(), [Limit::per_minute("rpm", 1)]);
    spend(&set, demand! { rpm: 1 });
    let mut waiting = set.acquire(demand! { rpm: 1 }).into_future();
    assert!(support::poll(&mut waiting).is_pending());
    assert!(matches!(refused(&set, demand! { rpm: 2 }), DemandError::Impossible { .. }));
    set.cool_down(MINUTE).wait().unwrap();
    assert!(matches!(refused(&set, demand! { rpm: 2 }), DemandError::Impossible { .. }));
}

#[test]
fn a_set_that_skips_unknown_names_warns_once_for_each_name() {
    let hands = hands();
    let ears = Ears::default();
    let skipping = || builder(&hands, [Limit::per_minute("rpm", 100)]).skip_unknown();
    let one = skipping().observer(ears.observer()).build().unwrap();
    let other = skipping().build().unwrap();
    let warnings = Warnings::during(|| {
        for _ in 0..3 {
            spend(&one, demand! { rpm: 1, gpu: 5, tpm: 7 });
            drop(one.clone().acquire(demand! { rpm: 1, gpu: 5 }).wait().unwrap());
        }
    });
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("\"gpu\"") && warnings[1].contains("\"tpm\""), "{warnings:?}");
    assert_eq!(Warnings::during(|| spend(&other, demand! { rpm: 1, gpu: 5 })).len(), 1);
    assert_eq!(available(&one, "rpm"), 94, "the rest of the demand was taken");
    // Events are for counting, so there is one for each time it happens.
    assert_eq!(ears.count("UnknownLimit"), 9);
}

#[test]
fn names_made_up_by_callers_do_not_fill_the_memory_with_warnings() {
    let set = builder(&hands(), [Limit::resource("connections", 1)]).skip_unknown().build().unwrap();
    let warnings = Warnings::during(|| {
        for number in 0..1_100 {
            spend(&set, Demand::new().with(&format!("made-up-{number}"), 1));
        }
    });
    assert_eq!(warnings.len(), 1_000);
}

#[test]
fn a_demand_that_names_only_what_is_no_limit_takes_calls_and_resources() {
    let limits = [Limit::per_minute("rpm", 5), Limit::resource("connections", 2)];
    let set = builder(&hands(), limits).skip_unknown().build().unwrap();
    let lease = try_take(&set, demand! { elsewhere: 9 }).unwrap();
    assert_eq!((lease.reserved("rpm"), lease.reserved("connections")), (None, Some(1)));
}

#[test]
fn a_name_that_is_no_limit_is_an_error_that_lists_the_limits_and_takes_nothing() {
    let limits = [Limit::per_minute("rpm", 5), Limit::per_minute("tpm", 5)];
    let set = builder(&hands(), limits).build().unwrap();
    let warnings = Warnings::during(|| {
        let why = refused(&set, demand! { rpm: 1, gpu: 1 });
        let DemandError::UnknownLimit { name, known } = &why else { panic!("{why}") };
        assert_eq!((&**name, known.len()), ("gpu", 2));
        assert!(why.to_string().ends_with("known limits: rpm, tpm"), "{why}");
    });
    assert_eq!(warnings, [""; 0]);
    assert_eq!(available(&set, "rpm"), 5);
}

#[test]
fn all_of_it_is_taken_or_none_whichever_limit_refuses() {
    let names = ["rpm", "tpm", "slots"];
    for exhausted in names {
        let limits = [Limit::per_minute("rpm", 5), Limit::per_minute("tpm", 5), Limit::resource("slots", 5)];
        let set = set(&hands(), limits);
        let all_of_one = names.map(|name| (name, if name == exhausted { 5 } else { 0 }));
        let _held = try_take(&set, all_of_one.into_iter().collect::<Demand>()).unwrap();
        let before = names.map(|name| available(&set, name));
        let denial = set.try_acquire(demand! { rpm: 1, tpm: 1, slots: 1 }).wait().unwrap().denied().unwrap();
        assert_eq!(denial.limited_by().unwrap().limit().name(), exhausted);
        assert_eq!(names.map(|name| available(&set, name)), before);
    }
}

#[test]
fn an_empty_set_admits_what_names_nothing_and_one_that_skips_unknown_names_everything() {
    let set = LimitSet::builder().skip_unknown().build().unwrap();
    let lease = try_take(&set, demand! {}).unwrap();
    assert_eq!(lease.reserved("rpm"), None);
    lease.commit().wait().unwrap();
    for _ in 0..1_000 {
        set.acquire(demand! { rpm: 1, tpm: AMOUNT_MAX }).wait().unwrap().settle(demand! {}).wait().unwrap();
    }
    assert!(set.peek().wait().unwrap().limits.is_empty());

    let strict = LimitSet::new::<[Limit; 0]>([]).unwrap();
    assert!(try_take(&strict, demand! {}).is_some());
    let why = refused(&strict, demand! { rpm: 1 });
    assert!(why.to_string().ends_with("known limits: none"), "{why}");
}
