//! The tests of calendars in one program.

mod bad_input;
mod brute_force;
mod daylight_saving;
mod quota;
mod random;
mod text;
