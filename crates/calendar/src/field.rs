//! Fields of a cron expression: conversion between text and sets of numbers.

use std::ops::RangeInclusive;

use crate::CalendarError;

/// The name and the valid numbers of a field.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    low: u32,
    high: u32,
    /// The names of the numbers from `low` on.
    names: &'static [&'static str],
    valid: &'static str,
}

/// The numbers of a field, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) bits: u64,
    /// True for a `*` without a step. For the two fields for days, `*` and `1-31` differ.
    pub(crate) any: bool,
}

/// The invalid part of a field, and the valid values.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FieldError {
    pub(crate) value: String,
    pub(crate) valid: String,
}

pub(crate) const MINUTE: Field = Field { name: "minute", low: 0, high: 59, names: &[], valid: "0 to 59" };
pub(crate) const HOUR: Field = Field { name: "hour", low: 0, high: 23, names: &[], valid: "0 to 23" };
pub(crate) const DAY: Field = Field { name: "day of month", low: 1, high: 31, names: &[], valid: "1 to 31" };
pub(crate) const MONTH: Field = Field {
    name: "month",
    low: 1,
    high: 12,
    names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
    valid: "1 to 12, or JAN to DEC",
};
pub(crate) const WEEKDAY: Field = Field {
    name: "day of week",
    low: 0,
    high: 6,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
    valid: "0 to 7 (both 0 and 7 are Sunday), or SUN to SAT",
};

/// The second number of Sunday.
const SUNDAY_LAST: u32 = 7;

impl Field {
    /// Parses a list of numbers, ranges and steps.
    pub(crate) fn parse(&self, text: &str) -> Result<Set, FieldError> {
        let mut set = Set { bits: 0, any: false };
        for item in text.split(',') {
            let (range, step) = self.stepped(item)?;
            set.any |= step == 1 && item.starts_with('*');
            for number in range.step_by(step) {
                let number = if self.is_weekday() { number % SUNDAY_LAST } else { number };
                set.bits |= 1 << number;
            }
        }
        Ok(set)
    }

    /// Returns every number of the field.
    pub(crate) fn full(&self) -> u64 {
        (self.low..=self.high).fold(0, |bits, number| bits | 1 << number)
    }

    /// Formats the numbers in their canonical form: `*`, `*/15`, or a sorted list with runs of
    /// three and more as ranges.
    pub(crate) fn show(&self, bits: u64) -> String {
        if bits == self.full() {
            return "*".into();
        }
        if let Some(step) = self.step_of(bits) {
            return format!("*/{step}");
        }
        let mut items = Vec::new();
        let mut number = self.low;
        while number <= self.high {
            let run = (bits >> number).trailing_ones();
            match run {
                0 => {}
                1 | 2 => items.extend((number..number + run).map(|number| number.to_string())),
                _ => items.push(format!("{number}-{}", number + run - 1)),
            }
            number += run + 1;
        }
        items.join(",")
    }

    /// Returns the step that yields these numbers. Two numbers read better as a list.
    fn step_of(&self, bits: u64) -> Option<u32> {
        let stepped = |step: &u32| {
            let set =
                (self.low..=self.high).step_by(*step as usize).fold(0, |bits, number| bits | 1 << number);
            set == bits
        };
        (bits.count_ones() > 2).then(|| (2..self.high).find(stepped)).flatten()
    }

    fn stepped(&self, item: &str) -> Result<(RangeInclusive<u32>, usize), FieldError> {
        let Some((range, step)) = item.split_once('/') else {
            return Ok((self.range(item)?, 1));
        };
        if range != "*" && !range.contains('-') {
            return Err(invalid(
                item,
                format!("stepped from * or a range, such as {}-{}/2", self.low, self.high),
            ));
        }
        let range = self.range(range)?;
        match digits(step) {
            Some(step) if (1..=self.high).contains(&step) => Ok((range, step as usize)),
            _ => Err(invalid(item, format!("stepped by 1 to {}", self.high))),
        }
    }

    fn range(&self, text: &str) -> Result<RangeInclusive<u32>, FieldError> {
        if text == "*" {
            return Ok(self.low..=self.high);
        }
        let Some((first, last)) = text.split_once('-') else {
            let number = self.number(text)?;
            return Ok(number..=number);
        };
        if first.is_empty() || last.is_empty() {
            // The text is most likely a negative number, so the error shows it as a whole.
            return Err(invalid(text, self.valid));
        }
        let (first, mut last) = (self.number(first)?, self.number(last)?);
        if self.is_weekday() && last == 0 && first > 0 {
            // MON-SUN can only mean the Sunday at the end of the week.
            last = SUNDAY_LAST;
        }
        if first > last {
            return Err(invalid(text, "a range from low to high, or two of them in a list"));
        }
        Ok(first..=last)
    }

    fn number(&self, text: &str) -> Result<u32, FieldError> {
        let named = self.names.iter().zip(self.low..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        let high = if self.is_weekday() { SUNDAY_LAST } else { self.high };
        named
            .map(|(_, number)| number)
            .or_else(|| digits(text))
            .filter(|number| (self.low..=high).contains(number))
            .ok_or_else(|| invalid(text, self.valid))
    }

    fn is_weekday(&self) -> bool {
        self.high == WEEKDAY.high
    }
}

impl FieldError {
    /// Adds the expression and the field to the error.
    pub(crate) fn of(self, expression: &str, field: &'static str) -> CalendarError {
        let FieldError { value, valid } = self;
        CalendarError::Field { expression: expression.to_owned(), field, value, valid }
    }
}

/// Parses digits only; `u32::from_str` would accept a sign as well.
fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn invalid(value: &str, valid: impl Into<String>) -> FieldError {
    let plain = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic());
    let value = if plain { value.to_owned() } else { format!("{value:?}") };
    FieldError { value, valid: valid.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(field: &Field, text: &str) -> Vec<u32> {
        let bits = field.parse(text).unwrap().bits;
        (0..64).filter(|number| bits >> number & 1 == 1).collect()
    }

    #[test]
    fn lists_ranges_and_steps_are_parsed() {
        assert_eq!(numbers(&MINUTE, "5,1,3-4"), [1, 3, 4, 5]);
        assert_eq!(numbers(&MINUTE, "*/20"), [0, 20, 40]);
        assert_eq!(numbers(&HOUR, "9-17/4"), [9, 13, 17]);
        assert_eq!(numbers(&DAY, "*/10"), [1, 11, 21, 31]);
        assert_eq!(numbers(&MONTH, "jan,Mar-MAY"), [1, 3, 4, 5]);
    }

    #[test]
    fn sunday_is_0_and_7_and_may_end_a_range() {
        assert_eq!(numbers(&WEEKDAY, "0"), numbers(&WEEKDAY, "7"));
        assert_eq!(numbers(&WEEKDAY, "SUN"), [0]);
        assert_eq!(numbers(&WEEKDAY, "FRI-SUN"), [0, 5, 6]);
        assert_eq!(numbers(&WEEKDAY, "5-7"), [0, 5, 6]);
        assert_eq!(numbers(&WEEKDAY, "0-7"), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn only_a_star_without_a_step_is_any() {
        for (text, any) in [("*", true), ("*/1", true), ("*/2", false), ("1-31", false), ("3,*", true)] {
            assert_eq!(DAY.parse(text).unwrap().any, any, "{text}");
        }
    }

    #[test]
    fn parse_inverts_show() {
        for field in [MINUTE, HOUR, DAY, MONTH, WEEKDAY] {
            for seed in 1..20_000_u64 {
                // The odd multiplier spreads the seeds over all bits.
                let bits = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) & field.full();
                if bits != 0 {
                    assert_eq!(field.parse(&field.show(bits)).unwrap().bits, bits, "{}", field.show(bits));
                }
            }
        }
    }

    #[test]
    fn numbers_are_shown_in_their_canonical_form() {
        for (text, shown) in
            [("0-59", "*"), ("0,15,30,45", "*/15"), ("4,3,2,9,8", "2-4,8,9"), ("30,0", "0,30")]
        {
            assert_eq!(MINUTE.show(MINUTE.parse(text).unwrap().bits), shown);
        }
    }
}
