//! Rooms in a directory: a file per room, mapped into every process that uses it.
//!
//! `docs/rooms.md` tells the protocol and argues for it. In short:
//!
//! * Every participant owns a *slot* ([`layout`]) and proves that it lives by a lock that the kernel keeps ([`life`]).
//!   Who is inside and who waits is written in the slots and nowhere else.
//! * The [`gate`] lets someone into an empty room and out again by one compare-and-swap each, and no system call.
//! * Everything else happens under the [`latch`], by whoever needs it: look at all slots, bury the dead, admit
//!   who is next ([`settle`], [`order`]). Every single write leaves a state from which the next owner can go on.

mod barrier;
mod clock;
mod directory;
mod file_system;
mod fork;
mod futex;
mod gate;
mod holding;
mod latch;
mod layout;
mod life;
mod look;
mod mapping;
mod open;
mod order;
mod pending;
mod pool;
mod room;
mod settle;
mod standing;

pub(crate) use directory::list;
pub(crate) use open::{open, remove};

use std::sync::Arc;

use crate::backend::{Backend, Capabilities, Submitted};
use crate::error::RoomError;
use crate::request::Request;
use crate::snapshot::Snapshot;
use room::FileRoom;

/// A handle of a room in a directory.
struct Directory(Arc<FileRoom>);

impl Backend for Directory {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::least(layout::SESSION_MAX);
        (capabilities.batch, capabilities.priority) = (true, true);
        capabilities.tells_deaths = true;
        capabilities
    }

    fn kind(&self) -> &'static str {
        "directory"
    }

    fn submit(&self, request: &Request<'_>) -> Result<Submitted, RoomError> {
        pending::submit(Arc::clone(&self.0), request)
    }

    fn snapshot(&self) -> Result<Snapshot, RoomError> {
        self.0.snapshot()
    }
}
