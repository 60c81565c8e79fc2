//! What the tests of several crates need: a [`browser`], a checker of [`overlaps`], free ports,
//! programs that do not ignore signals, and one way to [`skip`] a test. And what makes the pictures of the
//! pages: [`svg`], [`plot`]. Not published.

pub mod browser;
pub mod overlaps;
pub mod plot;
mod ports;
mod signals;
mod skip;
pub mod svg;

pub use ports::free_port;
pub use signals::with_default_signals;
pub use skip::{current_test, skip};
