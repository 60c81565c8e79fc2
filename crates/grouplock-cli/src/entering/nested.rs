//! The rooms that this process is inside already.
//!
//! Each `grouplock run` adds its holding to an environment variable of its command. The variable
//! may outlive the holding, so a snapshot of the room must confirm it. A script that has used
//! `grouplock enter` may have no such variable. But this process has inherited the descriptor that
//! keeps the holding.

use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::fs::MetadataExt;

use grouplock_room::{Patience, Place, RoomError, RoomOptions};

use super::RoomRequest;
use crate::inspect::snapshot;
use crate::place::{file_of, places};
use crate::script::token::{decode, encode};
use crate::system::descriptors::open_numbers;

/// The holdings, the innermost last, separated by spaces: `SESSION:EPOCH:HOLDER:ROOM:PLACE`,
/// encoded as in a token.
pub(crate) const VARIABLE: &str = "GROUPLOCK_HELD";

/// The holding of an outer `grouplock run`, or of a descriptor that this process has inherited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OuterHolding {
    pub(crate) session: String,
    pub(crate) epoch: u64,
    pub(crate) holder: String,
    pub(crate) room: String,
    place: String,
}

/// The outer holding has the same room and another session. So the request would wait until this
/// process itself ends.
#[derive(Debug, thiserror::Error)]
#[error(
    "this runs inside `{room}` in the session `{outer}`, so it cannot enter {inner}: it would wait for its own end. \
     To start a job in the background that waits until then: `env -u {VARIABLE} grouplock …{closing}`"
)]
pub(crate) struct WaitsForItself {
    room: String,
    outer: String,
    inner: String,
    /// The redirection that closes the descriptor of the outer holding.
    closing: String,
}

/// A descriptor that keeps a holding in the requested room, and the holding.
pub(crate) type Kept = (RawFd, OuterHolding);

impl OuterHolding {
    /// The holding in the requested room that is around this process.
    pub(crate) fn around(request: &RoomRequest) -> Result<Option<Self>, WaitsForItself> {
        Self::around_with(request, Self::kept(request))
    }

    /// As [`around`](OuterHolding::around), if the holding of the descriptor is known.
    pub(crate) fn around_with(
        request: &RoomRequest,
        kept: Option<Kept>,
    ) -> Result<Option<Self>, WaitsForItself> {
        let held = std::env::var(VARIABLE).unwrap_or_default();
        let place = request.place.to_string();
        let here = |outer: &OuterHolding| {
            outer.room == request.room && is_same(&outer.place, &place) && outer.holds()
        };
        let named = held.split(' ').rev().filter_map(Self::read).find(here);
        let closing = kept.as_ref().map_or(String::new(), |(number, _)| format!(" {number}>&-"));
        let Some(outer) = named.or(kept.map(|(_, outer)| outer)) else { return Ok(None) };
        if outer.session == request.session && !request.alone {
            return Ok(Some(outer));
        }
        if request.patience == Patience::None {
            // It does not wait. The error will be that the room is occupied.
            return Ok(None);
        }
        let inner =
            if request.alone { "it alone".to_owned() } else { format!("`{}`", request.session) };
        Err(WaitsForItself { room: request.room.clone(), outer: outer.session, inner, closing })
    }

    /// The holding in the requested room that an inherited descriptor keeps.
    pub(crate) fn kept(request: &RoomRequest) -> Option<Kept> {
        let Place::Directory(directory) = &request.place else { return None };
        let open = open_numbers();
        let file = file_of(directory, &request.room)?.metadata().ok()?;
        let on_it = |number: &RawFd| {
            let facts = std::fs::metadata(format!("/proc/self/fd/{number}"));
            facts.is_ok_and(|facts| (facts.dev(), facts.ino()) == (file.dev(), file.ino()))
        };
        let open: Vec<RawFd> = open.into_iter().filter(on_it).collect();
        if open.is_empty() {
            return None;
        }
        let existing = RoomOptions::new().existing(true);
        let room = places().open(&request.place, &request.room, &existing).ok()?;
        open.into_iter().find_map(|number| {
            // SAFETY: it was open a moment ago, and there is no other thread that could close it.
            let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
            let kept = room.kept_by(descriptor).ok()??;
            let outer = OuterHolding {
                session: kept.session,
                epoch: kept.epoch,
                holder: kept.holder.to_string(),
                room: request.room.clone(),
                place: request.place.to_string(),
            };
            Some((number, outer))
        })
    }

    /// The variable for a command that is inside by `request` and by `others`.
    pub(crate) fn variable(
        others: Option<&str>,
        request: &RoomRequest,
        epoch: u64,
        holder: &str,
    ) -> String {
        let parts = [
            &request.session,
            &epoch.to_string(),
            holder,
            &request.room,
            &request.place.to_string(),
        ];
        let ours = parts.map(encode).join(":");
        match others {
            Some(others) if !others.is_empty() => format!("{others} {ours}"),
            _ => ours,
        }
    }

    fn read(text: &str) -> Option<Self> {
        let parts: Option<Vec<String>> = text.split(':').map(decode).collect();
        let [session, epoch, holder, room, place] = parts?.try_into().ok()?;
        Some(OuterHolding { session, epoch: epoch.parse().ok()?, holder, room, place })
    }

    /// Whether the holding is still held. If no snapshot can be taken, it is assumed to be.
    pub(crate) fn holds(&self) -> bool {
        let Ok(place) = self.place.parse() else { return false };
        let room = match snapshot(&place, &self.room) {
            Ok(room) => room,
            Err(RoomError::NoSuchRoom { .. } | RoomError::Removed { .. }) => return false,
            Err(_) => return true,
        };
        room.epoch == self.epoch
            && room.inside.is_some_and(|phase| {
                phase.session == self.session
                    && phase.members.iter().any(|member| member.id.as_str() == self.holder)
            })
    }
}

/// Whether two places are the same. Two paths may name one directory.
fn is_same(one: &str, other: &str) -> bool {
    let inode = |path: &str| std::fs::metadata(path).map(|facts| (facts.dev(), facts.ino())).ok();
    one == other
        || (one.starts_with('/') && inode(one).is_some_and(|one| inode(other) == Some(one)))
}

#[cfg(test)]
mod tests {
    use super::OuterHolding;

    #[test]
    fn what_is_no_place_is_overlooked() {
        for text in ["", "a", "a:b:c:d:e", "a:1:c:d", "a:1:c:d:e:f", "a:1:%:d:e"] {
            assert_eq!(OuterHolding::read(text), None, "{text}");
        }
        let outer = OuterHolding::read("a%20b:7:1.2:r:/tmp").expect("it is one");
        assert_eq!((outer.session.as_str(), outer.epoch), ("a b", 7));
    }
}
