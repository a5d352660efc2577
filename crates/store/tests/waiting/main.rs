//! Waiting for a cell: who passes, when, and what is left of those who do not.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cancel;
mod cooldown;
mod deadline;
mod fixture;
mod notice;
mod order;
mod runtimes;
mod term;
mod unpolled;
