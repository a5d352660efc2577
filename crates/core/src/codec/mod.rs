//! Limits as text and buckets as bytes, for stores that write them down.
//!
//! Both say which form they are in, so that a later version can tell an older one's from its own. A reader gets a valid
//! value or an error: nothing that was cut off, mixed up or made up is taken for a state.

mod bucket;
mod bytes;
mod error;
mod parts;
mod text;
mod views;

pub use error::CodecError;
pub use parts::{MILLIS, Part, Rate};
pub use views::{MachineView, StateView};
