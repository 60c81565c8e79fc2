//! What the tests of several crates need: a [`browser`], a checker of [`overlaps`], free ports,
//! programs that do not ignore signals, and one way to [`skip`] a test. Not published.

pub mod browser;
pub mod overlaps;
mod ports;
mod signals;
mod skip;

pub use ports::free_port;
pub use signals::with_default_signals;
pub use skip::{current_test, skip};
