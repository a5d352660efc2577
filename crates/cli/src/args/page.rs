use clap::Args;
use tollgate::catalog::{CatalogError, Cursor, PageRequest};
use tollgate::store::StoreError;

use crate::exit::UsageError;

/// A page of a list.
#[derive(Args, Clone, Debug)]
pub(crate) struct PageArgs {
    /// Maximum number of rows
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) max: u16,

    /// Continue after this cursor, which the last page printed
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
}

impl PageArgs {
    /// Converts the arguments for the catalog.
    pub(crate) fn request(&self) -> PageRequest {
        let request = PageRequest::of(self.max.into());
        match &self.after {
            Some(after) => request.after(Cursor(after.clone())),
            None => request,
        }
    }

    /// Explains an error to the caller that gave the cursor: only a cursor can make the request of a page invalid.
    pub(crate) fn explain(&self, error: CatalogError) -> anyhow::Error {
        match (&self.after, error) {
            (Some(after), CatalogError::Store(StoreError::BadCall(_))) => {
                let valid = "give the cursor that the last page of this list printed after \"there is more\"";
                UsageError(format!("--after {after:?} is not a cursor of this list; {valid}")).into()
            }
            (_, error) => error.into(),
        }
    }
}
