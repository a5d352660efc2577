//! The results as JSON.

use serde_json::{Value, json};

use crate::result::BenchResult;

/// Formats a list of `{name, value, unit, bar, holds}`; null stands for a missing value and for no bar.
pub(crate) fn render(findings: &[BenchResult]) -> String {
    let rows: Value = findings.iter().map(row).collect();
    format!("{rows:#}\n")
}

fn row(finding: &BenchResult) -> Value {
    json!({
        "name": finding.name,
        "value": finding.value(),
        "unit": finding.value_unit(),
        "bar": finding.bar.map(|bar| bar.to_string()),
        "holds": finding.holds(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Threshold;

    #[test]
    fn a_ratio_row_carries_the_ratio() {
        let finding = BenchResult {
            name: "core/one".to_owned(),
            unit: "ns",
            ours: Some(30.0),
            peer: Some(("governor", 20.0)),
            bar: Some(Threshold::CostAtMost(2.0)),
            ..BenchResult::default()
        };
        let read: Value = serde_json::from_str(&render(&[finding])).unwrap();
        let expected =
            json!([{ "name": "core/one", "value": 1.5, "unit": "x", "bar": "<= 2.0", "holds": true }]);
        assert_eq!(read, expected);
    }
}
