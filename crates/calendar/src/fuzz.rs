//! Fuzzing of the parser of calendars.

use tollgate_core::Tick;

#[cfg(test)]
#[path = "../../../fuzz/driver.rs"]
mod driver;

/// Parses any text. An accepted calendar is equal to that of its own text, and each edge is later than the one before.
///
/// # Panics
///
/// If that is not so.
pub fn calendar(data: &[u8]) {
    let Ok(calendar) = crate::parse(&String::from_utf8_lossy(data)) else { return };
    assert_eq!(crate::parse(calendar.text()).as_ref().ok(), Some(&calendar));
    let mut at = Tick::from_secs(1_800_000_000);
    for _ in 0..3 {
        let next = calendar.next_edge(at);
        assert!(next > at || next == Tick::MAX, "{} after {at:?}", calendar.text());
        at = next;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_text_is_a_calendar_or_an_error() {
        super::driver::run(
            super::calendar,
            &[
                b"0 9-17/2 * JAN,MAR MON-FRI Europe/Berlin",
                b"*/15 0 1,15 * * America/New_York",
                b"@monthly UTC",
                b"0 0 29 2 * Asia/Kolkata",
            ],
        );
    }
}
