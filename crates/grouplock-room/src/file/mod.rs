//! Rooms in a directory: a file per room, mapped into every process that uses it.
//!
//! `docs/rooms.md` tells the protocol and argues for it. In short:
//!
//! * Every participant owns a *slot* ([`layout`]) and proves that it lives by a lock that the kernel keeps ([`life`]).
//! * The [`line`] is the protocol: who is inside and who waits. Its text knows nothing of files, and is explored by
//!   `tests/protocol.rs`. [`words`] gives it its memory.
//! * It is changed under the [`latch`], by whoever needs a change. The next owner goes on if one dies.
//! * Whoever waits sleeps until it is admitted ([`queue`]), or until somebody it waits for is gone ([`watchman`]).

mod clock;
mod directory;
mod file_system;
mod fork;
mod futex;
mod gate;
mod holding;
mod kept;
mod latch;
mod layout;
mod life;
mod line;
mod look;
mod mapping;
mod open;
mod pool;
mod queue;
mod room;
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

/// A handle of a room in a directory.
struct Directory(Arc<FileRoom>);

impl Backend for Directory {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            batch: true,
            priority: true,
            leases: false,
            tells_deaths: true,
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
        queue::submit(&self.0, request, None)
    }

    fn snapshot(&self) -> Result<Snapshot, RoomError> {
        self.0.snapshot()
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.0.path)
    }

    fn kept_by(&self, descriptor: BorrowedFd<'_>) -> Result<Option<Kept>, RoomError> {
        self.0.kept_by(descriptor)
    }

    fn leave_kept(&self, descriptor: BorrowedFd<'_>, repaired: bool) -> Result<bool, RoomError> {
        self.0.leave_kept(descriptor, repaired)
    }
}
