//! Rooms in a directory. Each room is a file that every participant maps into its memory.
//!
//! `docs/rooms.md` explains the protocol. In short:
//!
//! * Every participant owns a *slot* ([`layout`]). A kernel lock proves that the owner lives
//!   ([`life`]).
//! * The [`line`] is the protocol: it decides which requests are inside and which wait. Its code
//!   knows no files, and `tests/protocol` explores it. [`words`] is its memory.
//! * A process takes the [`latch`] before it changes the line. If it dies in the middle, the next
//!   owner of the latch finishes the change.
//! * A waiter sleeps until it is admitted ([`queue`]), or until a participant that it waits for is
//!   gone ([`watchman`]).

mod clock;
mod directory;
mod file_system;
mod fork;
mod futex;
mod holding;
mod kept;
mod latch;
mod latch_word;
mod layout;
mod life;
mod line;

mod mapping;
mod open;
mod pool;
mod queue;
mod room;
mod snapshot;
mod watchman;
mod words;

pub(crate) use directory::list;
pub(crate) use open::{open, remove};

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use crate::backend::{Backend, Capabilities, Submitted};
use crate::error::RoomError;
use crate::guard::Kept;
use crate::request::Request;
use crate::snapshot::Snapshot;
use room::FileRoom;

impl Backend for Arc<FileRoom> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            batch: true,
            priority: true,
            leases: false,
            reports_deaths: true,
            acknowledge: true,
            alone: true,
            at_most: true,
            switch: true,
            set_up: true,
            longest_session: layout::SESSION_MAX,
        }
    }

    fn kind(&self) -> &'static str {
        "directory"
    }

    fn submit(&self, request: &Request<'_>) -> Result<Submitted, RoomError> {
        queue::submit(self, request, None)
    }

    fn snapshot(&self) -> Result<Snapshot, RoomError> {
        FileRoom::snapshot(self)
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn kept_by(&self, descriptor: BorrowedFd<'_>) -> Result<Option<Kept>, RoomError> {
        FileRoom::kept_by(self, descriptor)
    }

    fn leave_kept(&self, descriptor: BorrowedFd<'_>, repaired: bool) -> Result<bool, RoomError> {
        FileRoom::leave_kept(self, descriptor, repaired)
    }
}
