//! The results as an aligned table. Details of a row are on the line below it, so that lines stay short.

use crate::result::BenchResult;

const HEAD: [&str; 6] = ["name", "ours", "peer", "ratio", "bar", "holds"];

/// All findings under one head.
pub(crate) fn render(findings: &[BenchResult]) -> String {
    let mut lines = vec![HEAD.map(String::from)];
    lines.extend(findings.iter().map(cells));
    let widths: [usize; HEAD.len()] = std::array::from_fn(|column| {
        lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0)
    });
    let details = [""].into_iter().chain(findings.iter().map(|finding| finding.detail.as_str()));
    lines.iter().zip(details).map(|(line, detail)| aligned(line, &widths) + &below(detail)).collect()
}

fn aligned(line: &[String; HEAD.len()], widths: &[usize; HEAD.len()]) -> String {
    let padded = line.iter().zip(widths).map(|(cell, &width)| format!("{cell:<width$}"));
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
}

fn below(detail: &str) -> String {
    if detail.is_empty() { String::new() } else { format!("    {detail}\n") }
}

fn cells(finding: &BenchResult) -> [String; HEAD.len()] {
    let unit = finding.unit;
    [
        finding.name.clone(),
        or_dash(finding.ours.map(|ours| format!("{} {unit}", number(ours)))),
        or_dash(finding.peer.map(|(name, value)| format!("{name} {} {unit}", number(value)))),
        or_dash(finding.ratio().map(|ratio| format!("{ratio:.2} x"))),
        or_dash(finding.bar.map(|bar| bar.to_string())),
        or_dash(finding.holds().map(|holds| if holds { "yes" } else { "no" }.to_owned())),
    ]
}

fn or_dash(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| "-".to_owned())
}

/// Formats a number with three significant digits and grouped thousands.
fn number(value: f64) -> String {
    if value < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Threshold;

    #[test]
    fn columns_line_up_and_missing_values_are_dashes() {
        let row = |name: &str, ours, detail: &str| BenchResult {
            name: name.to_owned(),
            detail: detail.to_owned(),
            unit: "ns",
            ours,
            peer: Some(("governor", 20.7)),
            bar: Some(Threshold::CostAtMost(2.0)),
            ..BenchResult::default()
        };
        let expected = "\
name         ours     peer              ratio   bar     holds
core/one     31.0 ns  governor 20.7 ns  1.50 x  <= 2.0  yes
    in passing
core/longer  -        governor 20.7 ns  -       <= 2.0  -
";
        let rows = [row("core/one", Some(31.04), "in passing"), row("core/longer", None, "")];
        assert_eq!(render(&rows), expected);
    }

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!([99.94, 123.4, 18_800.0, 1_234_567.0].map(number), ["99.9", "123", "18,800", "1,234,567"]);
    }
}
