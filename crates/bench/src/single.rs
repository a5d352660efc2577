//! Rows without a peer.

use anyhow::Result;

use crate::options::Effort;
use crate::result::{BenchResult, Threshold};

/// A row with one value.
pub(crate) struct Solo {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) read: fn(&Effort) -> Result<SoloValue>,
    pub(crate) bar: Option<Threshold>,
}

/// The value of a row, and its details.
pub(crate) struct SoloValue {
    pub(crate) value: f64,
    pub(crate) detail: String,
}

impl Solo {
    pub(crate) fn measure(&self, effort: &Effort) -> Result<BenchResult> {
        let SoloValue { value, detail } = (self.read)(effort)?;
        Ok(BenchResult {
            name: self.name.to_owned(),
            unit: self.unit,
            ours: Some(value),
            bar: self.bar,
            detail,
            ..BenchResult::default()
        })
    }
}
