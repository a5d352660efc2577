use clap::Args;
use tollgate::catalog::{CatalogError, Cursor, PageRequest};
use tollgate::store::StoreError;

use crate::exit::UsageError;

/// Which part of a list.
#[derive(Args, Clone, Debug)]
pub(crate) struct PageArgs {
    /// How many at most
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) max: u16,

    /// Go on where the last page ended, as it said
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
}

impl PageArgs {
    /// The same for the catalog.
    pub(crate) fn request(&self) -> PageRequest {
        let request = PageRequest::of(self.max.into());
        match &self.after {
            Some(after) => request.after(Cursor(after.clone())),
            None => request,
        }
    }

    /// What an error means to the caller that gave the cursor: only a cursor can make asking for a page a bad call.
    pub(crate) fn explain(&self, error: CatalogError) -> anyhow::Error {
        match (&self.after, error) {
            (Some(after), CatalogError::Store(StoreError::BadCall(_))) => {
                let valid = "give what the last page of this list said after \"there is more\"";
                UsageError(format!("--after {after:?} is none of this list; {valid}")).into()
            }
            (_, error) => error.into(),
        }
    }
}
