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
pub(crate) use holding::{Claimed, Holding, Keeper, Place};
pub(crate) use open::{open, remove};
pub(crate) use pending::{Pending, Submitted, submit};
pub(crate) use room::FileRoom;

use crate::backend::Capabilities;

/// What these rooms can do.
pub(crate) fn capabilities() -> Capabilities {
    Capabilities {
        batch: true,
        priority: true,
        leases: false,
        tells_deaths: true,
        longest_session: layout::SESSION_MAX,
    }
}
