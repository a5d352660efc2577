//! Bar charts with numbers on the left and times below.

use tollgate::Unit;

use super::style::{self, paint};
use super::{TextPage, grouped};

/// The height of the highest bar in lines.
const HEIGHT: usize = 10;

/// The maximum width of a bar and the gap after it.
const SLOT_MAX: usize = 6;

/// Eighths of a line, from empty to full.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws values as a sparkline of at most `columns` columns; values that do not fit are summed. A value above zero is never
/// drawn as zero.
pub(crate) fn line_of(values: &[i64], columns: usize) -> String {
    let merged = values.len().div_ceil(columns.max(1)).max(1);
    let whole = |value: &i64| u64::try_from(*value).unwrap_or(0);
    let sums = values.chunks(merged).map(|values| values.iter().map(whole).fold(0, u64::saturating_add));
    let sums: Vec<u64> = sums.collect();
    let top = u128::from(sums.iter().copied().max().unwrap_or(0).max(1));
    let eighth = |sum: u64| usize::try_from((u128::from(sum) * 8).div_ceil(top)).unwrap_or(8);
    sums.into_iter().map(|sum| if sum == 0 { '·' } else { EIGHTHS[eighth(sum).min(8)] }).collect()
}

/// A chart: values and their labels.
pub(crate) struct Chart<'a> {
    /// The values. Those below zero are drawn as zero.
    pub(crate) values: &'a [i64],
    /// The label below each value, all of one length.
    pub(crate) labels: &'a [String],
    /// The period of a value, such as `hour`.
    pub(crate) unit: &'a str,
    /// The unit of the values, if they are shown as decimal fractions.
    pub(crate) counted_in: Option<&'a Unit>,
}

/// The layout of a chart in a given width.
struct ChartLayout {
    bars: Vec<u64>,
    /// How many values are summed in one bar.
    merged: usize,
    /// The columns of a bar and the gap after it.
    slot: usize,
    /// The value of the top line.
    top: u64,
    /// The numbers on the left: the top, and the middle if it is a whole number.
    numbers: [String; 2],
    /// The width of the numbers on the left.
    axis: usize,
}

impl Chart<'_> {
    /// Adds the chart to a page.
    pub(crate) fn render(&self, page: &mut TextPage) {
        let layout = self.layout(page.width());
        for line in (0..HEIGHT).rev() {
            let number = layout.number(line);
            let mark = if number.is_empty() { '│' } else { '┤' };
            let axis = format!("{number:>width$} {}", paint(style::FAINT, mark), width = layout.axis);
            let bars = paint(style::NAME, layout.line(line));
            page.line(format!("{axis}{bars}").trim_end());
        }
        let ground = "─".repeat(layout.slot * layout.bars.len());
        let ground = paint(style::FAINT, format!("┼{ground}"));
        page.line(format_args!("{:>width$} {ground}", 0, width = layout.axis));
        page.line(self.times(&layout));
        if layout.merged > 1 {
            page.line(format_args!("each bar is {} {}s", layout.merged, self.unit));
        }
    }

    fn layout(&self, width: usize) -> ChartLayout {
        // The width of the numbers depends on the bars, and the bars on the width; 12 columns are enough for the numbers.
        let room = width.saturating_sub(12).max(1);
        let merged = self.values.len().div_ceil(room).max(1);
        let sum = |values: &[i64]| {
            values.iter().map(|value| u64::try_from(*value).unwrap_or(0)).fold(0, u64::saturating_add)
        };
        let bars: Vec<u64> = self.values.chunks(merged).map(sum).collect();
        let top = round_up(bars.iter().copied().max().unwrap_or(0).max(1));
        let middle = if top.is_multiple_of(2) { self.number(top / 2) } else { String::new() };
        let numbers = [self.number(top), middle];
        // Half of a number may be longer than the number: 8,000 and 16k.
        let axis = numbers.iter().map(|number| number.chars().count()).max().unwrap_or(0);
        let slot = (width.saturating_sub(axis + 2) / bars.len().max(1)).clamp(1, SLOT_MAX);
        ChartLayout { bars, merged, slot, top, numbers, axis }
    }

    fn number(&self, value: u64) -> String {
        match self.counted_in {
            None => short(value),
            Some(unit) => {
                let shown = unit.show(value);
                grouped(shown.strip_suffix(unit.symbol()).unwrap_or(&shown).trim_end())
            }
        }
    }

    fn times(&self, layout: &ChartLayout) -> String {
        let mut line = " ".repeat(layout.axis + 2);
        let length = self.labels.first().map_or(0, |label| label.chars().count());
        let every = (length + 2).div_ceil(layout.slot).max(1);
        let wide = layout.axis + 2 + layout.slot * layout.bars.len();
        for (bar, label) in self.labels.iter().step_by(layout.merged).enumerate().step_by(every) {
            let at = layout.axis + 2 + bar * layout.slot;
            let is_room = at + length <= wide.max(layout.axis + 2 + length);
            if is_room {
                line.push_str(&" ".repeat(at.saturating_sub(line.chars().count())));
                line.push_str(label);
            }
        }
        line.trim_end().to_owned()
    }
}

impl ChartLayout {
    /// Returns the number on the left of a line: only the top and the middle have one.
    fn number(&self, line: usize) -> &str {
        let [top, middle] = &self.numbers;
        match line {
            line if line + 1 == HEIGHT => top,
            line if line + 1 == HEIGHT / 2 => middle,
            _ => "",
        }
    }

    /// Draws one line of all bars.
    fn line(&self, line: usize) -> String {
        let bar = if self.slot > 1 { self.slot - 1 } else { 1 };
        let mut text = String::new();
        for value in &self.bars {
            let eighths = (u128::from(*value) * (HEIGHT * 8) as u128).div_ceil(u128::from(self.top));
            let filled = usize::try_from(eighths).unwrap_or(usize::MAX).saturating_sub(line * 8).min(8);
            text.extend(std::iter::repeat_n(EIGHTHS[filled], bar));
            text.extend(std::iter::repeat_n(' ', self.slot - bar));
        }
        text.trim_end().to_owned()
    }
}

/// Rounds up to a round number, half of which is round, too, if possible.
fn round_up(value: u64) -> u64 {
    const STEPS: [u64; 10] = [10, 12, 16, 20, 30, 40, 50, 60, 80, 100];
    let scale = 10_u64.saturating_pow(value.ilog10());
    let step = |step: u64| u64::try_from(u128::from(step) * u128::from(scale) / 10).unwrap_or(u64::MAX);
    let is_whole = |step: &u64| scale >= 10 || step.is_multiple_of(10);
    STEPS.into_iter().filter(is_whole).map(step).find(|round| *round >= value).unwrap_or(value)
}

/// Formats a number with few digits: `1,500`, `20k`, `3M`.
fn short(number: u64) -> String {
    const SCALES: [(u64, u64, &str); 4] = [
        (1_000_000_000_000, 1_000_000_000_000, "T"),
        (1_000_000_000, 1_000_000_000, "G"),
        (1_000_000, 1_000_000, "M"),
        (10_000, 1_000, "k"),
    ];
    let fits = |(from, scale, _): &&(u64, u64, &str)| number >= *from && number.is_multiple_of(scale / 10);
    match SCALES.iter().find(fits) {
        Some((_, scale, letter)) if number.is_multiple_of(*scale) => format!("{}{letter}", number / scale),
        Some((_, scale, letter)) => format!("{}.{}{letter}", number / scale, number % scale * 10 / scale),
        None => grouped(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(values: &[i64], width: usize) -> String {
        let labels: Vec<String> = (0..values.len()).map(|hour| format!("{:02}:00", hour % 24)).collect();
        let mut page = TextPage::new(width);
        Chart { values, labels: &labels, unit: "hour", counted_in: None }.render(&mut page);
        anstream::adapter::strip_str(&page.finish().0).to_string()
    }

    #[test]
    fn a_line_has_a_column_for_each_value_or_for_several() {
        assert_eq!(line_of(&[0, 1, 4, 8, -3], 10), "·▁▄█·");
        assert_eq!(line_of(&[1, 1, 4, 4], 2), "▂█");
        assert_eq!(line_of(&[], 2), "");
        assert_eq!(line_of(&[i64::MAX, i64::MAX, 1], 2), "█▁");
    }

    #[test]
    fn bars_stand_on_their_labels_and_reach_their_numbers() {
        let expected = "\
80 ┤            ▂▂▂▂▂
   │            █████
   │            █████
   │            █████
   │      ▄▄▄▄▄ █████
40 ┤      █████ █████
   │      █████ █████
   │      █████ █████
   │█████ █████ █████
   │█████ █████ █████
 0 ┼────────────────────────
    00:00       02:00
";
        assert_eq!(drawn(&[16, 44, 74, 0], 40), expected);
    }

    #[test]
    fn the_axis_is_straight_if_half_is_longer_than_the_whole() {
        let text = drawn(&[13_401], 40);
        let mut columns =
            text.lines().take(HEIGHT + 1).map(|line| line.chars().position(|c| "┤│┼".contains(c)));
        assert!(columns.all(|column| column == Some(6)), "{text}");
    }

    #[test]
    fn half_of_one_is_not_shown_as_zero() {
        let text = drawn(&[1], 40);
        assert_eq!(text.lines().filter(|line| line.starts_with('0')).count(), 1, "{text}");
    }

    #[test]
    fn sums_saturate() {
        let text = drawn(&[i64::MAX; 1_000], 40);
        assert!(text.lines().count() > HEIGHT, "{text}");
    }

    #[test]
    fn money_is_counted_in_its_unit() {
        let values = [1_500_000, 5_500_000];
        let labels = ["a".into(), "b".into()];
        let usd = Unit::new("USD", 6);
        let mut page = TextPage::new(40);
        let counted_in = usd.as_ref().ok();
        Chart { values: &values, labels: &labels, unit: "hour", counted_in }.render(&mut page);
        let text = anstream::adapter::strip_str(&page.finish().0).to_string();
        assert!(text.starts_with("6 ┤") && text.contains("\n3 ┤"), "{text}");
    }

    #[test]
    fn nothing_is_wider_than_the_page() {
        for count in [1, 2, 24, 30, 68, 69, 100, 168, 1_000, 10_000] {
            let values: Vec<i64> = (0..count).map(|value| value * 1_234_567).collect();
            for width in [40, 80, 200] {
                let text = drawn(&values, width);
                let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
                assert!(widest <= width, "{count} values in {width} columns take {widest}\n{text}");
            }
        }
    }

    #[test]
    fn a_small_value_is_visible() {
        let text = drawn(&[1, 1_000_000, -5], 80);
        assert!(text.lines().nth(HEIGHT - 1).is_some_and(|line| line.contains('▁')), "{text}");
    }

    #[test]
    fn numbers_at_the_left_are_round_and_short() {
        assert_eq!([1, 7, 74, 101, 4_500, 99_999].map(round_up), [1, 8, 80, 120, 5_000, 100_000]);
        assert_eq!([11, 9, u64::MAX].map(round_up), [12, 10, u64::MAX]);
        let shown = [0, 80, 1_500, 20_000, 25_500, 3_000_000, 1_200_000].map(short);
        assert_eq!(shown, ["0", "80", "1,500", "20k", "25.5k", "3M", "1.2M"]);
    }
}
