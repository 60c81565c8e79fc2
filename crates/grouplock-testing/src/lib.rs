//! What the tests of several crates need: a [`browser`], and one way to [`skip`] a test. Not published.

pub mod browser;
mod skip;

pub use skip::{current_test, skip};
