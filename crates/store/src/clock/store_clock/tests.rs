use super::*;
use crate::{ManualClock, SplitMix64};
use tollgate_core::Span;

const BOOTED: Tick = Tick::from_secs(5_000);
const TODAY: Tick = Tick::from_secs(1_800_000_000);
const AN_HOUR: u64 = 3_600;
const A_DAY: u64 = 86_400;

struct SharedWords(Arc<LocalWords>);

impl ClockWords for SharedWords {
    fn offset(&self) -> &AtomicU64 {
        &self.0.offset
    }

    fn compared(&self) -> &AtomicU64 {
        &self.0.compared
    }
}

/// A host, and the memory that its processes share.
struct TestHost {
    monotonic: ManualClock,
    words: Arc<LocalWords>,
    walls: Vec<ManualClock>,
}

/// A process of a host, whose wall clock may be another one than that of other processes.
struct TestProcess {
    wall: ManualClock,
    clock: Clock,
}

impl TestHost {
    fn new() -> TestHost {
        TestHost { monotonic: ManualClock::at(BOOTED), words: Arc::default(), walls: Vec::new() }
    }

    fn wall(&mut self, now: Tick) -> ManualClock {
        let wall = ManualClock::at(now);
        self.walls.push(wall.clone());
        wall
    }

    fn process(&self, wall: &ManualClock) -> TestProcess {
        let host = HostClock::manual(&self.monotonic, wall, "boot");
        let clock = StoreClock::shared(host, SharedWords(Arc::clone(&self.words))).clock();
        TestProcess { wall: wall.clone(), clock }
    }

    fn advance(&self, span: Span) {
        self.monotonic.advance(span);
        self.walls.iter().for_each(|wall| wall.advance(span));
    }
}

impl TestProcess {
    fn set_back(&self, secs: u64) {
        self.wall.set(self.wall.now() - Span::from_secs(secs));
    }

    /// How far store time is ahead of the wall clock, in seconds.
    fn ahead(&self) -> u64 {
        self.clock.now().since(self.wall.now()).as_micros() / 1_000_000
    }
}

fn seconds(count: u64) -> Span {
    Span::from_secs(count)
}

#[test]
fn store_time_is_the_time_of_day_in_ordinary_life() {
    let mut host = TestHost::new();
    let wall = host.wall(TODAY);
    let (one, two) = (host.process(&wall), host.process(&wall));
    for elapsed in [0, 1, 999_999, 1_000_000, 86_400_000_000] {
        host.advance(Span::from_micros(elapsed));
        assert_eq!((one.clock.now(), two.clock.now()), (wall.now(), wall.now()));
    }
}

#[test]
fn a_wall_clock_that_is_set_forward_is_followed_at_once_by_all_processes() {
    let mut host = TestHost::new();
    let wall = host.wall(TODAY);
    let (one, two) = (host.process(&wall), host.process(&wall));
    wall.advance(seconds(AN_HOUR));
    host.advance(seconds(1));
    assert_eq!(one.clock.now(), wall.now());
    assert_eq!(two.clock.now(), wall.now());
}

#[test]
fn a_machine_that_slept_follows_the_wall_clock() {
    let mut host = TestHost::new();
    let wall = host.wall(TODAY);
    let one = host.process(&wall);
    // The monotonic clock does not count while the machine is suspended.
    wall.advance(seconds(8 * AN_HOUR));
    host.advance(seconds(1));
    assert_eq!(one.clock.now(), wall.now());
}

#[test]
fn a_wall_clock_that_is_set_back_an_hour_is_met_again_after_eight_and_store_time_never_stands() {
    let mut host = TestHost::new();
    let wall = host.wall(TODAY);
    let (one, two) = (host.process(&wall), host.process(&wall));
    one.set_back(AN_HOUR);
    let mut last = one.clock.now();
    for second in 0..8 * AN_HOUR {
        host.advance(seconds(1));
        let now = if second % 3 == 0 { two.clock.now() } else { one.clock.now() };
        let passed = now.since(last).as_micros();
        assert!((875_000..=1_000_000).contains(&passed), "{passed} µs passed in second {second}");
        last = now;
    }
    assert!(one.ahead() <= 1, "it is still ahead by {} s", one.ahead());
    host.advance(seconds(A_DAY));
    assert!(two.ahead() <= 1 && two.clock.now() >= wall.now());
}

#[test]
fn after_thirty_days_forward_and_back_time_goes_on() {
    let mut host = TestHost::new();
    let wall = host.wall(TODAY);
    let one = host.process(&wall);
    wall.advance(seconds(30 * A_DAY));
    host.advance(seconds(1));
    let stamp = one.clock.now();
    one.set_back(30 * A_DAY);
    // A process that opens the store now begins where the others are.
    let two = host.process(&wall);
    host.advance(seconds(60));
    for process in [&one, &two] {
        let passed = process.clock.now().since(stamp);
        assert!((seconds(52)..=seconds(60)).contains(&passed), "{passed:?}");
    }
}

#[test]
fn a_store_that_lay_idle_is_slewed_from_when_it_is_used() {
    let mut host = TestHost::new();
    let wall = host.wall(TODAY);
    let one = host.process(&wall);
    let stamp = one.clock.now();
    one.set_back(AN_HOUR);
    host.advance(seconds(9 * AN_HOUR));
    // No process has noted when it was last right: one that only looks at a store writes nothing.
    assert!(one.clock.now() > stamp && one.ahead() > 3_590, "ahead by {} s", one.ahead());
    for _ in 0..9 {
        host.advance(seconds(AN_HOUR));
        one.clock.now();
    }
    assert!(one.ahead() <= 1, "ahead by {} s", one.ahead());
}

#[test]
fn an_offset_that_is_damaged_is_that_of_the_wall_clock_again() {
    let mut host = TestHost::new();
    let wall = host.wall(TODAY);
    let one = host.process(&wall);
    for damage in [u64::MAX, 1 << 63, 0] {
        host.words.offset.store(damage, Ordering::Relaxed);
        host.words.compared.store(damage, Ordering::Relaxed);
        host.advance(seconds(1));
        assert_eq!(one.clock.now(), wall.now());
    }
}

#[test]
fn a_step_of_less_than_a_second_is_not_slewed() {
    let mut host = TestHost::new();
    let wall = host.wall(TODAY);
    let one = host.process(&wall);
    wall.set(wall.now() - Span::from_millis(900));
    for _ in 0..100 {
        host.advance(seconds(1));
        assert_eq!(one.clock.now(), wall.now() + Span::from_millis(900));
    }
}

#[test]
fn two_processes_an_hour_apart_get_no_more_time_than_passes() {
    let mut host = TestHost::new();
    let (behind, ahead) = (host.wall(TODAY), host.wall(TODAY + seconds(AN_HOUR)));
    let (one, two) = (host.process(&behind), host.process(&ahead));
    let start = two.clock.now();
    let mut latest = start;
    for second in 1..=A_DAY {
        host.advance(seconds(1));
        let now = if second % 2 == 0 { one.clock.now() } else { two.clock.now() };
        // What a bucket goes by.
        latest = latest.max(now);
        assert!(latest.since(start) <= seconds(second));
        assert!(now + Span::from_millis(250) >= latest, "nothing is stamped far in the future");
    }
}

#[test]
fn alarms_ring_by_store_time_also_while_it_is_slewed() {
    struct Ring(AtomicU64);
    impl crate::Alarm for Ring {
        fn ring(self: Arc<Self>, _: Tick, clock: &Clock) {
            self.0.store(clock.now().as_micros(), Ordering::Relaxed);
        }
    }
    let mut host = TestHost::new();
    let wall = host.wall(TODAY);
    let one = host.process(&wall);
    one.set_back(AN_HOUR);
    let at = one.clock.now() + seconds(70);
    let ring = Arc::new(Ring(AtomicU64::new(0)));
    let alarm: Arc<dyn crate::Alarm> = ring.clone();
    one.clock.alarm(at, Arc::downgrade(&alarm));
    for _ in 0..81 {
        host.advance(seconds(1));
    }
    let rung = ring.0.load(Ordering::Relaxed);
    assert!(rung >= at.as_micros() && rung <= at.as_micros() + 1_000_000, "{rung} for {at:?}");
}

/// Whatever is set by whom: store time is never ahead of the greatest offset of any wall clock, and no reading is behind an
/// earlier one by more than what it may be slewed in between.
#[test]
fn random_walls_keep_both_bounds() {
    for seed in 0..500 {
        let (mut random, mut host) = (SplitMix64::new(seed), TestHost::new());
        let walls: Vec<_> = (0..3).map(|_| host.wall(TODAY)).collect();
        let mut processes: Vec<_> = (0..4).map(|index| host.process(&walls[index % 3])).collect();
        let mut offset_max = 0;
        let mut readings: Vec<(u64, u64)> = Vec::new();
        for _ in 0..300 {
            let span = [1, 100_000, 1_000_000, 60_000_000, 3_600_000_000][random.below(5) as usize];
            host.advance(Span::from_micros(random.below(span) + 1));
            let wall = &walls[random.below(3) as usize];
            match random.below(8) {
                0 => wall.advance(seconds(random.below(2 * AN_HOUR))),
                1 => wall.set(wall.now() - seconds(random.below(2 * AN_HOUR))),
                2 => processes[random.below(4) as usize] = host.process(wall),
                _ => {}
            }
            let monotonic = host.monotonic.now().as_micros();
            let offsets = walls.iter().map(|wall| wall.now().as_micros() - monotonic);
            offset_max = offset_max.max(offsets.max().unwrap());
            let now = processes[random.below(4) as usize].clock.now().as_micros();
            assert!(now <= monotonic + offset_max, "seed {seed}: store time was minted");
            for (then, read) in readings.iter().rev().take(20) {
                let slewed = (monotonic - then + COMPARE_EVERY) / StoreClock::SLEW + 1;
                assert!(now + slewed >= read + (monotonic - then), "seed {seed}: it stepped back");
            }
            readings.push((monotonic, now));
        }
    }
}
