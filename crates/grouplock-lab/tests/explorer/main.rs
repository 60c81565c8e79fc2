//! The parts of the explorer.

mod parts;
mod reductions;
