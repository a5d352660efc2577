use super::*;
use rusqlite::Connection;
use tollgate_core::Span;
use tollgate_store::{ManualClock, SplitMix64};

use crate::schema;

const START: Tick = Tick::from_secs(1_800_000_000);
const AN_HOUR: u64 = 3_600;

/// A file, and a host with manual clocks.
struct ClockFixture {
    file: Connection,
    monotonic: ManualClock,
    walls: Vec<ManualClock>,
}

impl ClockFixture {
    fn new(walls: usize) -> ClockFixture {
        let file = Connection::open_in_memory().unwrap();
        schema::create(&file).unwrap();
        let monotonic = ManualClock::at(Tick::from_secs(5_000));
        ClockFixture { file, monotonic, walls: (0..walls).map(|_| ManualClock::at(START)).collect() }
    }

    fn process(&self, wall: usize, access: ClockAccess) -> FileClock {
        let shared = StoreClock::local(HostClock::manual(&self.monotonic, &self.walls[wall], "boot"));
        let time = FileTime { clock: shared.clock(), shared: Some(shared) };
        FileClock::open(&time, access, &self.file)
    }

    fn advance(&self, span: Span) {
        self.monotonic.advance(span);
        self.walls.iter().for_each(|wall| wall.advance(span));
    }

    fn set_back(&self, secs: u64) {
        self.walls.iter().for_each(|wall| wall.set(wall.now() - Span::from_secs(secs)));
    }

    fn row(&self) -> Option<ClockRow> {
        ClockRow::read(&self.file).unwrap()
    }

    /// A transaction that writes a bucket with this stamp, and the stamp that it has then.
    fn write(&self, clock: &mut FileClock, stamp: Tick) -> Tick {
        clock.sync(&self.file).unwrap();
        let now = clock.now();
        clock.now_for(&self.file, stamp, now).unwrap().max(stamp)
    }
}

#[test]
fn in_ordinary_life_the_row_is_written_once() {
    let scene = ClockFixture::new(1);
    let mut one = scene.process(0, ClockAccess::Write);
    assert_eq!(scene.row(), None);
    scene.write(&mut one, Tick::ZERO);
    let row = scene.row();
    assert!(row.is_some());
    let mut two = scene.process(0, ClockAccess::Write);
    for second in 0..AN_HOUR {
        scene.advance(Span::from_secs(1));
        let clock = if second % 2 == 0 { &mut one } else { &mut two };
        // A process that looked for the row would make the table anew.
        scene.file.execute_batch("ALTER TABLE clock RENAME TO elsewhere").unwrap();
        scene.write(clock, Tick::ZERO);
        scene.file.execute_batch("ALTER TABLE elsewhere RENAME TO clock").unwrap();
        assert_eq!(clock.now(), scene.walls[0].now());
    }
    assert_eq!(scene.row(), row);
}

#[test]
fn while_the_clock_is_slewed_the_row_is_written_once_and_processes_stay_together() {
    let scene = ClockFixture::new(1);
    let mut clocks = [0, 1, 2].map(|_| scene.process(0, ClockAccess::Write));
    scene.write(&mut clocks[0], Tick::ZERO);
    scene.set_back(AN_HOUR);
    scene.advance(Span::from_secs(1));
    scene.write(&mut clocks[0], Tick::ZERO);
    let row = scene.row();
    let mut last = clocks[0].now();
    for minute in 0..8 * 60 - 10 {
        scene.advance(Span::from_secs(60));
        let clock = &mut clocks[minute % 3];
        scene.write(clock, Tick::ZERO);
        let passed = clock.now().since(last);
        assert!((52_000_000..=60_000_000).contains(&passed.as_micros()), "minute {minute}: {passed:?}");
        last = clock.now();
    }
    assert_eq!(scene.row(), row);
    scene.advance(Span::from_secs(AN_HOUR));
    for clock in &mut clocks {
        scene.write(clock, Tick::ZERO);
        assert!(clock.now().since(scene.walls[0].now()) <= Span::from_secs(1));
    }
    assert_eq!(scene.row(), row);
}

#[test]
fn an_idle_process_does_not_undo_what_others_have_slewed() {
    let scene = ClockFixture::new(1);
    let (mut busy, mut idle) = (scene.process(0, ClockAccess::Write), scene.process(0, ClockAccess::Write));
    let mut looking = scene.process(0, ClockAccess::Read);
    scene.write(&mut busy, Tick::ZERO);
    scene.write(&mut idle, Tick::ZERO);
    scene.set_back(AN_HOUR);
    for _ in 0..4 * 60 {
        scene.advance(Span::from_secs(60));
        scene.write(&mut busy, Tick::ZERO);
    }
    scene.write(&mut idle, Tick::ZERO);
    looking.sync(&scene.file).unwrap();
    for clock in [&idle, &looking] {
        let apart = clock.now().since(busy.now()).max(busy.now().since(clock.now()));
        assert!(apart <= Span::from_secs(1), "{apart:?} apart");
    }
}

#[test]
fn a_row_that_was_rolled_back_is_written_again() {
    let scene = ClockFixture::new(1);
    let mut clock = scene.process(0, ClockAccess::Write);
    scene.file.execute_batch("BEGIN").unwrap();
    scene.write(&mut clock, Tick::ZERO);
    scene.file.execute_batch("ROLLBACK").unwrap();
    clock.roll_back();
    assert_eq!(scene.row(), None);
    scene.write(&mut clock, Tick::ZERO);
    assert!(scene.row().is_some());
}

#[test]
fn a_file_without_the_table_gets_it_with_the_first_write() {
    let scene = ClockFixture::new(1);
    scene.file.execute_batch("DROP TABLE clock").unwrap();
    let mut clock = scene.process(0, ClockAccess::Write);
    assert_eq!(clock.now(), START);
    scene.write(&mut clock, Tick::ZERO);
    assert!(scene.row().is_some());
}

#[test]
fn where_no_boot_is_known_each_process_goes_by_the_wall_clock_and_what_the_row_reached() {
    let scene = ClockFixture::new(1);
    // Each process has a monotonic clock of its own.
    let process = |started: u64| {
        let monotonic = ManualClock::at(Tick::from_secs(started));
        let shared = StoreClock::local(HostClock::manual(&monotonic, &scene.walls[0], ""));
        let time = FileTime { clock: shared.clock(), shared: Some(shared) };
        (FileClock::open(&time, ClockAccess::Write, &scene.file), monotonic)
    };
    let (mut one, monotonic) = process(7);
    let stamp = scene.write(&mut one, Tick::ZERO);
    scene.set_back(AN_HOUR);
    let (mut two, _) = process(1_000_000);
    assert!(two.now() >= stamp);
    let later = scene.write(&mut two, stamp);
    let row = scene.row();
    monotonic.advance(Span::from_secs(60));
    scene.walls[0].advance(Span::from_secs(60));
    let passed = scene.write(&mut one, later).since(later);
    assert!((Span::from_secs(52)..=Span::from_secs(60)).contains(&passed), "{passed:?}");
    scene.write(&mut two, later);
    assert_eq!(two.now(), later, "its monotonic clock stands");
    assert!(row.is_some());
}

#[test]
fn a_stamp_that_is_damaged_moves_no_clock() {
    let scene = ClockFixture::new(1);
    let mut clock = scene.process(0, ClockAccess::Write);
    for stamp in [Tick::MAX, START + Span::from_micros(StoreClock::AHEAD_MAX + 1)] {
        scene.write(&mut clock, stamp);
        assert_eq!(clock.now(), START);
    }
}

#[test]
fn a_row_that_is_damaged_moves_no_clock() {
    for damage in [i64::MAX, -1, i64::MIN] {
        for column in ["offset", "written"] {
            let scene = ClockFixture::new(1);
            scene.write(&mut scene.process(0, ClockAccess::Write), Tick::ZERO);
            scene.file.execute(&format!("UPDATE clock SET {column} = {damage}"), []).unwrap();
            let mut clock = scene.process(0, ClockAccess::Write);
            assert_eq!(clock.now(), START);
            scene.write(&mut clock, Tick::ZERO);
            assert_eq!(scene.process(0, ClockAccess::Read).now(), START, "the row is written anew");
        }
    }
}

/// Whatever is set by whom, and whatever a process missed: no stamp is ahead of the greatest offset of any wall clock, and the
/// next one is behind it by no more than what is tolerated and slewed.
#[test]
fn random_walls_mint_nothing_and_leave_no_stamp_in_the_future() {
    for seed in 0..300 {
        let (mut random, scene) = (SplitMix64::new(seed), ClockFixture::new(3));
        let access = |index: usize| if index == 4 { ClockAccess::Read } else { ClockAccess::Write };
        let mut processes: Vec<_> = (0..5).map(|index| scene.process(index % 3, access(index))).collect();
        let (mut offset_max, mut stamps) = (0, [START; 2]);
        for _ in 0..300 {
            let span = [1, 100_000, 1_000_000, 60_000_000, 3_600_000_000][random.below(5) as usize];
            scene.advance(Span::from_micros(random.below(span) + 1));
            let wall = random.below(3) as usize;
            let (hands, step) = (&scene.walls[wall], Span::from_secs(random.below(2 * AN_HOUR)));
            match random.below(8) {
                0 => hands.advance(step),
                1 => hands.set(hands.now() - step),
                2 => {
                    let index = random.below(5) as usize;
                    processes[index] = scene.process(wall, access(index));
                }
                _ => {}
            }
            let monotonic = scene.monotonic.now().as_micros();
            let offsets = scene.walls.iter().map(|wall| wall.now().as_micros() - monotonic);
            offset_max = offset_max.max(offsets.max().unwrap());
            let (index, bucket) = (random.below(5) as usize, random.below(2) as usize);
            let stamp = scene.write(&mut processes[index], stamps[bucket]);
            assert!(stamp.as_micros() <= monotonic + offset_max, "seed {seed}: store time was minted");
            let behind = stamp.since(processes[index].now());
            assert!(behind.as_micros() <= StoreClock::TOLERANCE, "seed {seed}: behind by {behind:?}");
            if access(index) == ClockAccess::Write {
                stamps[bucket] = stamp;
            }
        }
    }
}
