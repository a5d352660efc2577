//! Durations as text: `90s`, `5m`, `2h`, `7d`.
//!
//! No library: humantime also reads months and years, of 30.44 and 365.25 days, which a limit's period must not have.

use std::time::Duration;

/// The valid form, for error messages.
pub(crate) const VALID: &str = "a whole number and a unit (us, ms, s, m, h, d), such as 90s, 5m, 2h or 7d";

/// The units, longest first, in microseconds.
const UNITS: [(&str, u64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// Parses a duration.
///
/// # Errors
///
/// What is wrong with the text, and what would be valid.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is not a duration; valid is {VALID}");
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
    let (number, unit) = text.split_at(unit_at);
    let (_, micros) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(bad)?;
    let number: u64 = number.parse().map_err(|_| bad())?;
    let micros =
        number.checked_mul(*micros).ok_or_else(|| format!("{text:?} is too long; valid is {VALID}"))?;
    Ok(Duration::from_micros(micros))
}

/// Formats a duration exactly, to the microsecond, in the shortest form.
pub(crate) fn print(length: Duration) -> String {
    let micros = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
    let whole = UNITS.iter().find(|(_, unit)| micros > 0 && micros.is_multiple_of(*unit));
    let (name, unit) = whole.unwrap_or(&("s", 1_000_000));
    format!("{}{name}", micros / unit)
}

/// Formats a duration roughly, in two units at most: `1h 30m`, `12.3s`, `450ms`. It is not parsed back.
pub(crate) fn roughly(length: Duration) -> String {
    let seconds = length.as_secs();
    match seconds {
        0 if length.is_zero() => "0s".into(),
        0 if length.as_millis() == 0 => format!("{}us", length.as_micros().max(1)),
        0 => format!("{}ms", length.as_millis()),
        1..60 => format!("{:.1}s", length.as_secs_f64()),
        60..3_600 => two(seconds / 60, "m", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "m"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

fn two(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 {
        return format!("{large}{large_unit}");
    }
    format!("{large}{large_unit} {small}{small_unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_read() {
        for micros in [1, 999, 1_000, 250_000, 1_000_000, 90_000_000, 3_600_000_000, 86_400_000_000 * 7] {
            let length = Duration::from_micros(micros);
            assert_eq!(parse(&print(length)), Ok(length), "{micros}");
        }
        assert_eq!(print(Duration::from_secs(90)), "90s");
        assert_eq!(print(Duration::from_secs(120)), "2m");
    }

    #[test]
    fn a_text_that_is_not_a_duration_is_refused() {
        for text in
            ["", "5", "m", "5 m", "-5m", "1.5h", "5w", "99999999999999999999d", "18446744073709551615d"]
        {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn roughly_has_two_units_at_most() {
        let said = |millis| roughly(Duration::from_millis(millis));
        assert_eq!(said(0), "0s");
        assert_eq!(said(450), "450ms");
        assert_eq!(said(12_340), "12.3s");
        assert_eq!(said(90_000), "1m 30s");
        assert_eq!(said(5_400_000), "1h 30m");
        assert_eq!(said(172_800_000), "2d");
    }
}
