//! Programs that open one set in one store with different limits.

use std::sync::{Arc, Barrier};
use std::thread;

use tollgate::{AcquireError, LeaseError, LimitSet, ReplaceError, SETS_NAMESPACE};
use tollgate_catalog::SharedSet;
use tollgate_core::{Limit, LimitBuilder, LimitsError, demand};
use tollgate_store::FaultStore;
use tollgate_store::records::{Test, Write};

use super::fixture::{available, count, denial, spend, take};
use super::{OpenSetStore, SetFixture};
use crate::fixture::{UNEVEN_START, open_at};
use crate::poll::until;

fn rps() -> LimitBuilder {
    Limit::per_second("rps", 1_000)
}

fn budget() -> LimitBuilder {
    Limit::per_day("budget", 3)
}

fn names(set: &LimitSet) -> Vec<String> {
    // A peek asks the store: the cached limits may be out of date.
    set.peek().wait().expect("the store answers");
    let mut names: Vec<String> = set.limits().iter().map(|limit| limit.name().to_string()).collect();
    names.sort();
    names
}

/// While a new limit is rolled out, 3 of 3 calls are admitted, whatever programs do that do not name it.
pub fn a_rate_that_another_opener_does_not_name_stays_in_force(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let (limited, free) = (fixture.set([rps(), budget()]), fixture.set([rps()]));
    let both = |_| {
        let other = take(&free, demand! { rps: 1 });
        assert!(other.is_some(), "only openers that name the budget are bound by it");
        take(&limited, demand! { rps: 1, budget: 1 }).is_some()
    };
    assert_eq!((0..50).map(both).filter(|admitted| *admitted).count(), 3);
    assert_eq!(
        denial(&limited, demand! { budget: 1 }).limited_by().expect("a limit").limit().name(),
        "budget"
    );
    // A set that is opened now does not name it either, and a set that is opened again names it.
    let (late, again) = (fixture.set([rps()]), fixture.set([rps(), budget()]));
    spend(&late, demand! { rps: 1 });
    assert_eq!((count(&again, demand! { budget: 1 }), available(&again, "rps")), (0, 1_000 - 54));
}

/// There are never 2 holders of 1.
pub fn a_resource_that_another_opener_does_not_name_is_never_held_twice(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let limited = fixture.set([rps(), Limit::resource("slots", 1)]);
    let free = fixture.set([rps()]);
    let mut held = Vec::new();
    for _ in 0..5 {
        drop(take(&free, demand! { rps: 1 }).expect("it takes no slot"));
        held.extend(take(&limited, demand! { rps: 1 }));
    }
    assert_eq!((held.len(), available(&limited, "slots")), (1, 0));
    drop(held);
    until(|| available(&limited, "slots") == 1);
}

/// Calls and resources, which demands take 1 of without naming them, are not taken, and no report is charged to them.
pub fn an_opener_takes_nothing_of_limits_that_it_does_not_name(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let calls = Limit::calls(5, std::time::Duration::from_secs(60));
    let limited = fixture.set([Limit::resource("slots", 2), rps(), calls, budget()]);
    spend(&limited, demand! { rps: 1, budget: 1 });
    let free = fixture.set([rps()]);
    let lease = take(&free, demand! { rps: 1 }).expect("it fits");
    assert_eq!((lease.reserved("slots"), lease.reserved("call_count")), (None, None));
    let error = lease.settle(demand! { rps: 3, budget: 2 }).wait().expect_err("it does not name the budget");
    assert!(matches!(error, LeaseError::Usage(_)), "{error}");
    let left = ["slots", "call_count", "budget", "rps"].map(|name| available(&limited, name));
    assert_eq!(left, [2, 4, 2, 996]);
    let other_set = fixture.builder("law", [rps()]).build().expect("it is valid");
    let error = other_set.try_acquire(demand! { rps: 1, budget: 1 }).wait().expect_err("it does not name it");
    assert!(matches!(error, AcquireError::Demand(_)), "{error}");
}

/// An opener whose write conflicts reads the record again.
pub fn limits_named_by_openers_at_the_same_time_are_all_in_force(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let start = Barrier::new(6);
    let opened: Vec<LimitSet> = thread::scope(|scope| {
        let opener = |index: usize| {
            let (fixture, start) = (&fixture, &start);
            scope.spawn(move || {
                let set = fixture.set([rps(), Limit::per_day(format!("budget-{index}"), 1)]);
                start.wait();
                spend(&set, demand! { rps: 1 });
                set
            })
        };
        let openers: Vec<_> = (0..6).map(opener).collect();
        openers.into_iter().map(|opener| opener.join().expect("it does not panic")).collect()
    });
    let all: Vec<String> = (0..6).map(|index| format!("budget-{index}")).chain(["rps".into()]).collect();
    for set in &opened {
        spend(set, demand! { rps: 1 });
        assert_eq!(names(set), all);
    }
}

/// It does not come back with openers that still name it, and a later version may bring it back.
pub fn a_limit_is_removed_only_on_purpose(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let old = fixture.set([rps(), budget()]);
    spend(&old, demand! { budget: 3 });
    let other = fixture.set([rps()]);
    other.remove("budget").wait().expect("the limit is there");
    let unknown = other.remove("budget").wait();
    assert!(matches!(unknown, Err(ReplaceError::Limits(LimitsError::Unknown(_)))), "{unknown:?}");
    assert_eq!(count_up_to(9, &old), 9, "what was removed limits nothing");
    let other_set = fixture.builder("law", [rps(), budget()]).build().expect("it is valid");
    assert_eq!(count_up_to(9, &other_set), 9, "what an opener named is no unknown name");
    assert_eq!((names(&other_set), names(&old)), (vec!["rps".to_owned()], vec!["rps".to_owned()]));
    let next = fixture.builder("law", [rps(), budget()]).version(2).build().expect("it is valid");
    assert_eq!((count_up_to(9, &next), count_up_to(9, &old)), (3, 0));
}

fn count_up_to(tries: usize, set: &LimitSet) -> usize {
    (0..tries).filter(|_| take(set, demand! { budget: 1 }).is_some()).count()
}

/// It is removed for openers of the earlier version, too, whether they open the set before or after.
pub fn a_later_version_removes_a_limit_that_it_leaves_out_by_name(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let (old, silent) = (fixture.set([rps(), budget()]), fixture.builder("law", [rps()]).version(2));
    let silent = silent.build().expect("it is valid");
    spend(&silent, demand! { rps: 1 });
    assert_eq!(count_up_to(9, &old), 3, "a later version that leaves it out silently removes nothing");
    let same = fixture.builder("law", [rps()]).without("budget").build().expect("it is valid");
    spend(&same, demand! { rps: 1 });
    assert_eq!(count_up_to(9, &old), 0, "nor does one of the same version");
    let next = fixture.builder("law", [rps()]).version(3).without("budget").build().expect("it is valid");
    spend(&next, demand! { rps: 1 });
    assert_eq!(count_up_to(9, &old), 9);
    let late = fixture.set([rps(), budget()]);
    assert_eq!(count_up_to(9, &late), 9);
    let both = fixture.builder("law", [rps()]).without("rps").build();
    assert!(matches!(both, Err(LimitsError::NamedAndRemoved(_))), "{both:?}");
}

/// The first opener goes on as before.
pub fn two_kinds_under_one_name_are_an_error_for_the_second_opener(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let first = fixture.set([Limit::per_day("x", 3)]);
    spend(&first, demand! { x: 1 });
    let second = fixture.builder("law", [Limit::resource("x", 3)]).version(2).build().expect("it is valid");
    let refused = second.try_acquire(demand! { x: 1 }).wait().expect_err("it is another kind");
    assert!(matches!(refused, AcquireError::Limits(LimitsError::TwoKinds(_))), "{refused:?}");
    let words = refused.to_string();
    assert!(["\"x\"", "resource", "rate"].iter().all(|word| words.contains(word)), "{words}");
    assert_eq!(second.acquire(demand! { x: 1 }).wait().map(drop), Err(refused));
    assert!(second.ready(demand! { x: 1 }).wait().is_err() && second.peek().wait().is_err());
    assert_eq!(count(&first, demand! { x: 1 }), 2);
}

/// The limits that other openers have named cost no call.
pub fn an_open_set_asks_the_store_once_for_an_acquire(open: OpenSetStore<'_>) {
    let (_, store) = open_at(UNEVEN_START, open);
    let counted = Arc::new(FaultStore::new(store.expect("there is a store"), |_| None));
    let build = |limits: Vec<LimitBuilder>| {
        LimitSet::builder().limits(limits).store(counted.clone()).name("law").build().expect("it is valid")
    };
    let sets = [build(vec![rps(), budget(), Limit::resource("slots", 1)]), build(vec![rps()])];
    // The first set may have to learn limits of the second.
    sets.iter().chain(&sets).for_each(|set| spend(set, demand! { rps: 1 }));
    let before = counted.calls();
    let taken = (0..10).filter(|_| take(&sets[1], demand! { rps: 1 }).is_some()).count();
    assert_eq!((taken, counted.calls() - before), (10, 10));
}

/// A restore from an incomplete copy may lose it.
pub fn a_lost_record_is_made_from_the_limits_of_the_bucket(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let limited = fixture.set([rps(), budget()]);
    spend(&limited, demand! { budget: 2 });
    let backend = fixture.backend.as_ref().expect("there is a store");
    let key = SharedSet::new(SETS_NAMESPACE, "law").key().clone();
    backend.write(&[Write::Delete(key, vec![Test::Exists])]).wait().expect("the record is there");
    let late = fixture.set([rps(), Limit::per_day("other", 1)]);
    spend(&late, demand! { rps: 1, other: 1 });
    assert_eq!(count(&limited, demand! { budget: 1 }), 1);
    assert_eq!(count(&late, demand! { other: 1 }), 0);
    assert_eq!(names(&limited), ["budget", "other", "rps"]);
}
