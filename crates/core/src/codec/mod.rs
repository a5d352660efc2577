//! Codecs: limits as text and buckets as bytes, for stores.
//!
//! Both start with their format, so that a later version can distinguish older data from its own.
//! Decoding returns a valid value or an error: truncated, damaged or mismatched data is never
//! accepted as a state.

mod bucket;
mod bytes;
mod error;
mod parts;
mod text;
mod views;

pub use error::CodecError;
pub use parts::{MILLIS, Part, Rate};
pub use views::{MachineView, StateView};
