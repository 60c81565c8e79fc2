//! For tests of several crates: a [`browser`], other processes as [`actors`](actor), [`Running`]
//! programs, a checker of [`overlaps`], temporary directories, free ports, programs with default
//! signals, and one way to [`skip`] a test. For the pictures of the pages: [`svg`], [`plot`]. Not
//! published.

#[cfg(feature = "tests")]
pub mod actor;
#[cfg(feature = "tests")]
pub mod browser;
#[cfg(feature = "tests")]
pub mod overlaps;
mod patience;
pub mod plot;
mod ports;
mod random;
#[cfg(feature = "tests")]
mod running;
mod scratch;
#[cfg(feature = "tests")]
mod signals;
mod skip;
pub mod svg;

pub use patience::{LONG, explored, until, until_else};
pub use ports::free_port;
pub use random::Random;
#[cfg(feature = "tests")]
pub use running::{Heard, Running};
pub use scratch::Scratch;
#[cfg(feature = "tests")]
pub use signals::with_default_signals;
pub use skip::{current_test, skip};
