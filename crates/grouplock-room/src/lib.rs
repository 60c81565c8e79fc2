//! Named rooms with sessions, shared between processes.
//!
//! Processes that name the same session are inside a room together; different sessions exclude each other. Backups may
//! overlap each other but not a migration; any number of jobs may use the GPU while model A is loaded, then those that
//! need model B.
//!
//! ```
//! # fn main() -> Result<(), grouplock_room::RoomError> {
//! # let directory = std::env::temp_dir().join(format!("grouplock-doc-lib-{}", std::process::id()));
//! # let directory = directory.as_path();
//! use grouplock_room::Room;
//!
//! let gpu = Room::open(directory, "gpu0")?;
//! let inside = gpu.enter("model A")?; // waits while another model is inside
//! // … whoever else enters "model A" is here as well …
//! inside.leave()?;
//! # std::fs::remove_dir_all(directory).ok();
//! # Ok(())
//! # }
//! ```
//!
//! * [`Room`] is what programs use: blocking, timed, non-blocking and async entry, [snapshots](Room::snapshot).
//! * [`Guard`] is a place inside, with the [epoch](Guard::epoch) and news of [loss](Guard::watch) and
//!   [deaths](Guard::recovered).
//! * Rooms in a directory need no server, but Linux: a file is mapped, waiting is a futex, and the kernel tells who died. How that
//!   works and what it promises is told in `docs/rooms.md`.
//! * [`backend`] is for rooms of other kinds, [`remote`] what those on servers share, and `conformance`, a feature, what
//!   all have to pass.

#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "what rooms in a directory need and others do not")
)]

pub mod backend;
#[cfg(feature = "conformance")]
pub mod conformance;
mod duration;
mod entry;
mod error;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod file;
mod future;
mod guard;
mod helper;
#[cfg_attr(feature = "kill-points", doc(hidden))]
pub mod kill_points;
#[cfg(unix)]
pub mod myself;
mod name;
mod place;
mod policy;
pub mod remote;
mod request;
mod room;
mod snapshot;

pub use backend::{Backend, Capabilities, Opener, Places};
pub use duration::parse_duration;
pub use entry::{Entry, Progress};
pub use error::RoomError;
pub use future::Enter;
pub use guard::{Guard, Kept, Loss, LossWatch, Recovered, Standing};
pub use name::RoomName;
pub use place::Place;
pub use policy::{Policy, Priority};
pub use request::{Patience, Request};
pub use room::{Access, Room, RoomOptions};
pub use snapshot::{HolderId, Participant, PastPhase, Phase, Snapshot};
