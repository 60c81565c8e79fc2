//! Named rooms with sessions, shared between processes.
//!
//! Processes that name the same session are inside a room together. Different sessions exclude each
//! other. For example, backups may overlap each other, but not a migration. Or many jobs use the
//! GPU while model A is loaded, and then the jobs that need model B.
//!
//! ```
//! # fn main() -> Result<(), grouplock_room::RoomError> {
//! # let directory = std::env::temp_dir().join(format!("grouplock-doc-lib-{}", std::process::id()));
//! # let directory = directory.as_path();
//! use grouplock_room::Room;
//!
//! let gpu = Room::open(directory, "gpu0")?;
//! let inside = gpu.enter("model A")?; // waits while another model is inside
//! // … other processes that enter "model A" are inside too …
//! inside.leave()?;
//! # std::fs::remove_dir_all(directory).ok();
//! # Ok(())
//! # }
//! ```
//!
//! * [`Room`] is the type that programs use. It has blocking, timed, non-blocking and async entry,
//!   and [snapshots](Room::snapshot).
//! * [`Guard`] is a holding: the right to be inside. It has the [epoch](Guard::epoch), and reports
//!   its [loss](Guard::watch) and earlier [deaths](Guard::recovered).
//! * Rooms in a directory need Linux, and no server. Processes map a file and wait on a futex, and
//!   the kernel reports which process died. `docs/rooms.md` explains the protocol and its promises.
//! * [`backend`] has the traits for other kinds of rooms. [`remote`] is the part that rooms on
//!   servers share. `conformance`, a feature, is the test suite for all kinds.

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
#[cfg_attr(not(target_os = "linux"), path = "file_unsupported.rs")]
mod file;
mod future;
mod guard;
#[cfg_attr(feature = "kill-points", doc(hidden))]
pub mod kill_points;
#[cfg(unix)]
pub mod myself;
mod name;
mod place;
mod places;
mod policy;
pub mod remote;
mod request;
mod room;
mod snapshot;
mod thread;

pub use backend::{Backend, Capabilities, Opener};
pub use duration::parse_duration;
pub use entry::{Entry, Progress};
pub use error::RoomError;
pub use future::Enter;
pub use guard::{Guard, Kept, Loss, LossWatch, Recovered, Standing};
pub use name::RoomName;
pub use place::Place;
pub use places::Places;
pub use policy::{Policy, Priority};
pub use request::{Patience, Request};
pub use room::{Access, Room, RoomOptions};
pub use snapshot::{HolderId, Participant, PastPhase, Phase, Snapshot};
