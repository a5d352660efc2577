//! List prices of common models, for runs that are given no others.
//!
//! They are those of the standard tier for short prompts, without discounts for cached input. Each group has the date of the
//! list that it was taken from: a dated copy of the provider's page if there was one, a public list that quotes it otherwise.
//! Prices change without notice, so the dates of those that were used are reported wherever a cost is.

use super::price::Prices;

/// A model with dollars for a million tokens of input and of output. A name also stands for its dated snapshots, such as
/// `gpt-4o-2024-08-06`, and for nothing else: a model of the same family may cost ten times as much.
type PriceRow = (&'static str, &'static str, &'static str);

/// Prices by the day or month of the list that they were taken from.
const TABLE: &[(&str, &[PriceRow])] = &[
    (
        "2026-09-30",
        &[
            ("claude-opus-5-5", "4", "20"),
            ("claude-opus-5", "5", "25"),
            ("claude-opus-4-8", "5", "25"),
            ("claude-opus-4-7", "5", "25"),
            ("claude-opus-4-6", "5", "25"),
            ("claude-opus-4-5", "5", "25"),
            ("claude-opus-4-1", "15", "75"),
            ("claude-sonnet-5-5", "2", "10"),
            ("claude-sonnet-5", "2", "10"),
            ("claude-sonnet-4-6", "3", "15"),
            ("claude-sonnet-4-5", "3", "15"),
            ("claude-sonnet-4", "3", "15"),
            ("claude-haiku-4-5", "1", "5"),
            ("gpt-5.2", "1.75", "14"),
            ("gpt-5.1", "1.25", "10"),
            ("gpt-5-nano", "0.05", "0.40"),
        ],
    ),
    ("2026-09-22", &[("gpt-6-sol", "2", "10"), ("gpt-6-luna", "0.10", "0.50")]),
    ("2026-09-20", &[("gemini-3.5-flash", "1.50", "9"), ("gemini-3.1-pro-preview", "2", "12")]),
    (
        "2026-07-30",
        &[
            ("gpt-5.6-terra", "2", "12"),
            ("gpt-5.6-luna", "0.20", "1.20"),
            ("gpt-5.5", "5", "30"),
            ("gpt-5.4", "2.50", "15"),
            ("gpt-5.4-mini", "0.75", "4.50"),
            ("gpt-5.4-nano", "0.20", "1.25"),
            ("gpt-5-mini", "0.25", "2"),
        ],
    ),
    (
        "2026-04",
        &[
            ("gpt-4.1", "2", "8"),
            ("gpt-4.1-mini", "0.40", "1.60"),
            ("gpt-4o", "2.50", "10"),
            ("gpt-4o-mini", "0.15", "0.60"),
            ("o3", "2", "8"),
            ("text-embedding-3-small", "0.02", "0"),
            ("text-embedding-3-large", "0.13", "0"),
        ],
    ),
    (
        "2026-03",
        &[("gpt-5", "1.25", "10"), ("gemini-2.5-pro", "1.25", "10"), ("gemini-2.5-flash", "0.30", "2.50")],
    ),
];

/// Returns the prices of the table.
pub(super) fn built_in() -> Prices {
    let group = |(date, rows): &(&str, &'static [PriceRow])| {
        let entries = rows.iter().flat_map(|(model, input, output)| {
            [((*model).to_owned(), *input, *output), (format!("{model}-20*"), *input, *output)]
        });
        Prices::built_in(entries, date)
    };
    TABLE.iter().map(group).fold(Prices::default(), Prices::or)
}

#[cfg(test)]
mod tests {
    use tollgate_provider::Tokens;

    use super::*;

    #[test]
    fn every_price_of_the_table_is_an_amount_and_stands_for_its_snapshots_only() {
        let prices = built_in();
        let million = Tokens::new(1_000_000, 1_000_000);
        for (model, ..) in TABLE.iter().flat_map(|(_, rows)| *rows) {
            assert!(prices.of(model).is_some_and(|price| price.micros(million) > 0), "{model}");
        }
        let cost = |model: &str| prices.of(model).map(|price| price.micros(million));
        assert_eq!(cost("gpt-4o-2024-08-06"), Some(12_500_000));
        assert_eq!(cost("gpt-4o-mini-2024-07-18"), Some(750_000));
        assert_eq!(cost("claude-sonnet-4-5-20250929"), Some(18_000_000));
        assert_eq!((cost("gpt-5-pro"), cost("gpt-4o-audio-preview"), cost("m")), (None, None, None));
    }

    #[test]
    fn only_the_dates_of_prices_that_were_used_are_reported() {
        let prices = built_in();
        prices.of("gpt-4o");
        prices.of("claude-haiku-4-5");
        let dates: Vec<String> = prices.used().into_iter().filter_map(|source| source.date).collect();
        assert_eq!(dates, ["2026-09-30", "2026-04"]);
    }
}
