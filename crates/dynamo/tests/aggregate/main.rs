//! What is made of the stream of a table.

#[path = "../common/mod.rs"]
mod common;

mod archive;
mod expiry;
mod failures;
mod heat;
mod purge;
mod reader;
mod usage;
mod world;
