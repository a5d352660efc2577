//! Times in records, parsed.

use tollgate_core::Tick;

/// Parses a time such as `2026-11-15T14:00:00Z`, or with `+00:00` as other programs write it.
pub(super) fn parse(iso: &str) -> Option<Tick> {
    let utc = iso.strip_suffix('Z').or_else(|| iso.strip_suffix("+00:00"))?;
    let (date, time) = utc.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let fits =
        (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 60;
    let days = if fits { days_since_epoch(year, month, day)? } else { return None };
    Some(Tick::from_secs(days * 86_400 + hour * 3_600 + minute * 60 + second))
}

fn numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let mut parts = text.split(separator).map(|part| part.parse().ok());
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

/// Returns the days from the epoch to a date. Years are counted from March, so that a leap day is
/// the last day of its year.
fn days_since_epoch(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = if month <= 2 { year.checked_sub(1)? } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_store::usage::iso;

    #[test]
    fn times_that_the_store_writes_are_parsed() {
        for step in 0..400_000 {
            let at = Tick::from_secs(step * 40_009);
            assert_eq!(parse(&iso(at)), Some(at));
        }
    }

    #[test]
    fn texts_that_are_not_times_are_refused() {
        for text in ["", "2026-11-15", "2026-13-15T00:00:00Z", "2026-11-15T24:00:00Z", "1969-12-31T23:59:59Z"]
        {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
