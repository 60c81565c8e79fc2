//! Rooms in a directory, as users see them: threads, and processes that are stopped and killed.
//!
//! All tests are in one program, which is linked once. A test that needs a process of its own
//! starts this program again as an [`Actor`](process::Actor).

mod conformance;
mod deaths;
mod errors;
mod fork;
mod kept;
mod kill_points;
mod order;
mod process;
mod scribble;
mod storm;
mod waking;
mod whose;
