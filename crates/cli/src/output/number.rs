//! Formatting of numbers.

use std::fmt::Display;

/// Formats a number with its digits in groups of three: `1,234,567`.
pub(crate) fn grouped(number: impl Display) -> String {
    let text = number.to_string();
    let (sign, rest) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let mut grouped = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && digit.is_ascii_digit() && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

/// Formats a number in few columns: from a million on with three digits and a letter, such as `1.23M`.
pub(crate) fn compact(number: u64) -> String {
    const LETTERS: [char; 5] = ['M', 'G', 'T', 'P', 'E'];
    let power = number.checked_ilog10().unwrap_or(0);
    let Some(&letter) = power.checked_sub(6).and_then(|above| LETTERS.get(above as usize / 3)) else {
        return grouped(number);
    };
    // Three digits, rounded down: what is left is never overstated.
    let digits = number / 10_u64.pow(power - 2);
    let decimals = 2 - power % 3;
    let scale = 10_u64.pow(decimals);
    let fraction = format!("{:0width$}", digits % scale, width = decimals as usize);
    let text = format!("{}.{fraction}", digits / scale);
    format!("{}{letter}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats a count with its noun: `1 level`, `1,000 levels`.
pub(crate) fn counted(number: impl TryInto<u64>, one: &str, many: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (-1_000, "-1,000"), (1_234_567, "1,234,567")]
        {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(grouped("1234.5"), "1,234.5");
        assert_eq!(grouped("unbounded"), "unbounded");
    }

    #[test]
    fn large_numbers_have_three_digits() {
        for (number, text) in [
            (999_999, "999,999"),
            (1_000_000, "1M"),
            (1_239_999, "1.23M"),
            (12_050_000, "12M"),
            (150_000_000, "150M"),
            (2_500_000_000, "2.5G"),
            (u64::MAX, "18.4E"),
        ] {
            assert_eq!(compact(number), text);
        }
    }
}
