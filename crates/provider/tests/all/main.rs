//! The tests of replies and estimates in one program.

mod estimates;
mod garbage;
mod replies;
