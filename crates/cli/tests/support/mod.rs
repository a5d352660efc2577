//! What the tests of the command share.

#![allow(dead_code, unreachable_pub, reason = "every test file uses another part of this module")]

#[cfg(unix)]
pub mod batch;
pub mod furnish;
pub mod grid;
#[cfg(unix)]
pub mod http_server;
pub mod json_page;
pub mod pages;
#[cfg(unix)]
pub mod provider;
pub mod recorder;
pub mod sandbox;
pub mod session;
#[cfg(unix)]
pub mod tables;
#[cfg(unix)]
pub mod terminal;
