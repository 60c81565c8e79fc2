//! What the explorer is made of.

mod parts;
mod reductions;
