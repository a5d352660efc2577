//! The joint history of all processes, and whether it kept to the bound.

/// When a call was begun and when it was known to be admitted, in microseconds.
pub(crate) type Taken = (u64, u64);

/// What a child said, read again.
pub(crate) fn taken(line: &str) -> Option<Taken> {
    let mut words = line.strip_prefix("taken ")?.split(' ');
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// Two stretches in which more was admitted than a burst and a rate allow, if there are any: from when to when, and how
/// many.
///
/// All calls that lie within a stretch were admitted in it. Clocks of two processes may differ a little, which is what
/// `slack` is for.
pub(crate) fn broken(
    history: &[Taken],
    burst: u64,
    per_second: u64,
    slack_us: u64,
) -> Option<(u64, u64, usize)> {
    let mut by_end: Vec<Taken> = history.to_vec();
    by_end.sort_by_key(|(_, after)| *after);
    for (first, (start, _)) in by_end.iter().enumerate() {
        let mut count = 0;
        for (before, after) in &by_end[first..] {
            if before < start {
                continue;
            }
            count += 1;
            let allowed =
                u128::from(burst) + u128::from(after - start + slack_us) * u128::from(per_second) / 1_000_000;
            if count as u128 > allowed {
                return Some((*start, *after, count));
            }
        }
    }
    None
}

/// The checker must notice one call too many.
pub(crate) fn a_planted_fault_is_noticed() {
    let second = 1_000_000;
    let good: Vec<Taken> =
        (0..10).map(|_| (0, 10)).chain((1..=20).map(|n| (n * second / 10, n * second / 10 + 5))).collect();
    assert_eq!(broken(&good, 10, 10, 0), None);
    let bad: Vec<Taken> = good.iter().copied().chain([(second, second + 1)]).collect();
    assert!(broken(&bad, 10, 10, 0).is_some());
}
