//! What the tests of several crates need: a [`browser`], a checker of [`overlaps`], and one way to [`skip`] a test. Not published.

pub mod browser;
pub mod overlaps;
mod skip;

pub use skip::{current_test, skip};
