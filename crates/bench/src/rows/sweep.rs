//! Batches against many providers, in simulated time.
//!
//! The value is the median of the time that a batch takes, compared with the ideal; the details have the worst cases.

use anyhow::Result;
use tollgate_batch::simulator::sweep::{self, Family, SweepSpread};

use super::BenchRow;
use crate::options::Effort;
use crate::result::Threshold;
use crate::single::{Solo, SoloValue};

pub(crate) fn rows() -> Vec<BenchRow> {
    vec![
        row("sweep/clean", |effort| read(&sweep::clean(), effort), 1.05),
        row("sweep/burst-1", |effort| read(&sweep::burst_of_one(), effort), 1.15),
        row("sweep/burst-2-to-9", |effort| read(&sweep::small_bursts(), effort), 1.05),
        row("sweep/noise-1%-429", |effort| read(&sweep::noise(10, false, false), effort), 1.15),
        row("sweep/noise-5%-429", |effort| read(&sweep::noise(50, false, false), effort), 1.3),
        row("sweep/noise-30%-429", |effort| read(&sweep::noise(300, false, false), effort), 2.5),
        row("sweep/noise-1%-529", |effort| read(&sweep::noise(10, true, false), effort), 1.15),
        row("sweep/noise-5%-529", |effort| read(&sweep::noise(50, true, false), effort), 1.3),
        row("sweep/noise-30%-529", |effort| read(&sweep::noise(300, true, false), effort), 2.5),
        row("sweep/noise-1%-beside-a-limit", |effort| read(&sweep::noise(10, false, true), effort), 1.15),
        row("sweep/noise-5%-beside-a-limit", |effort| read(&sweep::noise(50, false, true), effort), 1.3),
        row("sweep/noise-30%-beside-a-limit", |effort| read(&sweep::noise(300, false, true), effort), 2.5),
        row("sweep/headers-that-lie", |effort| read(&sweep::false_headers(), effort), 1.1),
        row("sweep/advice-of-a-minute", |effort| read(&sweep::advice_of_a_minute(), effort), 2.0),
        row("sweep/fixed-window-1s", |effort| read(&sweep::windows(1, false), effort), 1.2),
        row("sweep/fixed-window-60s", |effort| read(&sweep::windows(60, false), effort), 1.2),
        row("sweep/sliding-window-1s", |effort| read(&sweep::windows(1, true), effort), 1.2),
        row("sweep/sliding-window-60s", |effort| read(&sweep::windows(60, true), effort), 1.2),
        row("sweep/limit-halves", |effort| read(&sweep::changes("halves", 500, None), effort), 1.2),
        row("sweep/limit-doubles", |effort| read(&sweep::changes("doubles", 2_000, None), effort), 1.2),
        row("sweep/limit-tenfold", |effort| read(&sweep::changes("tenfold", 10_000, None), effort), 1.2),
        row("sweep/lifted-for-a-minute", |effort| read(&lifted(), effort), 1.2),
        row("sweep/calls-and-tokens", |effort| read(&sweep::calls_and_tokens(), effort), 1.2),
        row("sweep/at-once", |effort| read(&sweep::at_once(), effort), 1.3),
        row("sweep/half-refused", |effort| read(&sweep::stress(), effort), 1.5),
    ]
}

fn lifted() -> Family {
    sweep::changes("lifted", 1_000_000, Some(60))
}

fn row(name: &'static str, read: fn(&Effort) -> Result<SoloValue>, most: f64) -> BenchRow {
    BenchRow::Solo(Solo { name, unit: "x", read, bar: Some(Threshold::ValueAtMost(most)) })
}

fn read(family: &Family, effort: &Effort) -> Result<SoloValue> {
    let summary = family.run(if effort == &Effort::QUICK { 10 } else { 1 });
    let SweepSpread { p50, p90, worst } = summary.took;
    let refused = [summary.refused.p50, summary.refused.p90, summary.refused.worst];
    let [usual, much, most] = refused.map(|of_thousand| of_thousand as f64 / 10.0);
    let detail = format!(
        "p90 {:.2}, worst {:.2}; refused {usual:.1}, {much:.1}, {most:.1} %; {} cases",
        p90 as f64 / 1e3,
        worst as f64 / 1e3,
        summary.cases
    );
    Ok(SoloValue { value: p50 as f64 / 1e3, detail })
}
