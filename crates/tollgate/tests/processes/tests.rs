//! What must hold when processes share a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tollgate::file::FileStore;
use tollgate::store::SplitMix64;
use tollgate::{Level, Limit, Limiter, LimiterLease, Limits};

use crate::child::{RESOURCE, What, limiter};
use crate::family::Kin;
use crate::history;
#[cfg(target_os = "linux")]
use crate::order;

/// Every test, by its name.
pub(crate) const ALL: &[(&str, fn())] = &[
    ("a_planted_fault_is_noticed", history::a_planted_fault_is_noticed),
    ("of_200_tries_from_10_processes_on_100_exactly_100_are_admitted", ten_on_100),
    ("a_holder_killed_with_sigkill_gives_back", killed_holder),
    #[cfg(target_os = "linux")]
    ("waiters_of_several_processes_are_served_in_the_order_of_their_arrival", order::of_arrival),
    #[cfg(target_os = "linux")]
    ("a_large_demand_is_not_starved_by_small_ones_of_another_process", order::large_beside_small),
    ("eight_processes_on_one_key_keep_to_the_bound_together", eight_on_one_key),
    ("killed_at_random_instants_the_file_is_whole_and_nothing_admitted_is_forgotten", killed_at_random),
];

const ROUNDS: u32 = 200;
const BURST: u64 = 50;
const PER_SECOND: u64 = 2_000;

/// How much the clocks of two processes may differ.
const SLACK_US: u64 = 20_000;

pub(crate) fn fresh_file(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("processes-{name}.db"));
    for suffix in ["", "-wal", "-shm", "-queue"] {
        let _ = fs::remove_file(format!("{}{suffix}", path.display()));
    }
    path
}

pub(crate) fn with_limits<const N: usize>(path: &Path, limits: [tollgate::LimitBuilder; N]) -> Limiter {
    let limiter = limiter(path, Duration::from_secs(60));
    let limits = Limits::new(limits).expect("the limits are valid");
    limiter.catalog().set_limits(Level::System, &limits).wait().expect("the store answers");
    limiter
}

fn available(limiter: &Limiter, limit: &str) -> i64 {
    let standing = limiter.available("user", RESOURCE).wait().expect("the store answers");
    standing.available(limit).expect("the limit is there")
}

/// A slot, if one is free now.
fn take_now(limiter: &Limiter) -> Option<LimiterLease<'_>> {
    let attempt = limiter.try_acquire("user", RESOURCE, tollgate::demand! { total: 0 }).wait();
    attempt.expect("the store answers").admitted()
}

fn ten_on_100() {
    let path = fresh_file("ten");
    let parent = with_limits(&path, [Limit::per_day("total", 100)]);
    let what = |number| if number % 2 == 0 { What::Try(20) } else { What::TryUncached(20) };
    let kin: Vec<Kin> = (0..10).map(|number| Kin::start(what(number), &path)).collect();
    let admitted: usize = kin.into_iter().map(|kin| kin.finish().len()).sum();
    assert_eq!(admitted, 100);
    assert_eq!(available(&parent, "total"), 0);
}

fn killed_holder() {
    let path = fresh_file("holder");
    let limits = [Limit::per_day("total", 100), Limit::resource("slots", 1)];
    let parent = with_limits(&path, limits);
    for _ in 0..20 {
        let kin = Kin::start(What::Hold, &path);
        assert_eq!(kin.hear(), "held");
        assert_eq!(available(&parent, "slots"), 0);
        let take = || take_now(&parent);
        assert!(take().is_none(), "it is held by another process");
        kin.kill();
        let lease = take().expect("whoever held it is gone");
        assert!(take().is_none(), "it is held once");
        lease.cancel().wait().expect("the store answers");
    }
}

fn eight_on_one_key() {
    let path = fresh_file("eight");
    let _parent = with_limits(
        &path,
        [
            Limit::per_day("total", 1_000_000_000),
            Limit::per_second("rate", PER_SECOND).burst(BURST),
            Limit::resource("slots", 4),
        ],
    );
    let kin: Vec<Kin> = (0..8).map(|_| Kin::start(What::CallForever, &path)).collect();
    let mut history = Vec::new();
    for _ in 0..150 {
        history.extend(kin.iter().filter_map(|kin| history::taken(&kin.hear())));
    }
    history.extend(kin.into_iter().flat_map(Kin::kill).filter_map(|line| history::taken(&line)));
    assert!(history.len() > 100, "only {} calls", history.len());
    assert_eq!(history::broken(&history, BURST, PER_SECOND, SLACK_US), None);
}

fn killed_at_random() {
    const CAPACITY: i64 = 1_000_000_000;
    let path = fresh_file("killed");
    drop(with_limits(
        &path,
        [
            Limit::quota("total", CAPACITY as u64, Duration::from_secs(86_400)),
            Limit::per_second("rate", PER_SECOND).burst(BURST),
            Limit::resource("slots", 2),
        ],
    ));
    let mut random = SplitMix64::new(0x5EED);
    let (mut history, mut taken, mut settled, mut unsure) = (Vec::new(), 0, 0, 0);
    for round in 0..ROUNDS {
        let kin: Vec<Kin> = (0..3).map(|_| Kin::start(What::CallForever, &path)).collect();
        let mut lines = Vec::new();
        // At least one of them is at work, and then it comes when it comes.
        (0..1 + random.below(12)).for_each(|_| lines.push(kin[0].hear()));
        unsure += kin.len() as i64;
        lines.extend(kin.into_iter().flat_map(Kin::kill));
        taken += lines.iter().filter(|line| line.starts_with("taken")).count() as i64;
        settled += lines.iter().filter(|line| *line == "settled").count() as i64;
        history.extend(lines.iter().filter_map(|line| history::taken(line)));
        let broken = FileStore::open(&path).expect("the file can be opened").check().wait();
        assert_eq!(broken, Ok(()), "after round {round}");
    }
    let parent = limiter(&path, Duration::ZERO);
    // Each call takes 10 and gives back 3. Of every child one call may be in between: taken and not said, or settled and
    // not said.
    let used = CAPACITY - available(&parent, "total");
    let (least, most) = (taken * 10 - (settled + unsure) * 3, (taken + unsure) * 10 - settled * 3);
    assert!(used >= least, "{used} are known to be used, but at least {least} were admitted");
    assert!(used <= most, "{used} are known to be used, but at most {most} were");
    let held = [take_now(&parent), take_now(&parent)];
    assert!(held.iter().all(Option::is_some), "the processes that held them are gone");
    assert!(take_now(&parent).is_none(), "what was not held was not given back");
    assert_eq!(history::broken(&history, BURST, PER_SECOND, SLACK_US), None);
    assert!(taken > i64::from(ROUNDS), "{taken} calls in {ROUNDS} rounds show nothing");
}
