//! What the tests of several crates need: a [`browser`], a checker of [`overlaps`], free ports, and
//! one way to [`skip`] a test. Not published.

pub mod browser;
pub mod overlaps;
mod ports;
mod skip;

pub use ports::free_port;
pub use skip::{current_test, skip};
