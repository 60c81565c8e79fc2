//! The rooms in which this process runs already.
//!
//! Each `grouplock run` adds its place to a variable of its command's environment. The variable may outlive the place, so
//! the room is asked whether it is still held. A script that has entered by `grouplock enter` may have set no variable, but we
//! have inherited the descriptor that keeps its place.

use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::fs::MetadataExt;

use grouplock_room::{Patience, Place, RoomError, RoomOptions};

use crate::place::{file_of, places};
use crate::status::look;
use crate::token::{decode, encode};
use crate::waiting::Wish;

/// The places, the innermost last, with spaces between them: `SESSION:EPOCH:HOLDER:ROOM:PLACE`, encoded as in a token.
pub(crate) const VARIABLE: &str = "GROUPLOCK_HELD";

/// A place that an outer `grouplock run` holds, or a descriptor that we have inherited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outer {
    pub(crate) session: String,
    pub(crate) epoch: u64,
    pub(crate) holder: String,
    pub(crate) room: String,
    place: String,
}

/// The same room and another session, so that the request could only wait for its own end.
#[derive(Debug, thiserror::Error)]
#[error(
    "this runs inside `{room}` in the session `{outer}`, so it cannot enter `{inner}`: it would wait for its own end. \
     What may wait until then, in the background, is started with `env -u {VARIABLE} grouplock …{closing}`"
)]
pub(crate) struct WaitsForItself {
    room: String,
    outer: String,
    inner: String,
    /// What closes the descriptor that keeps the place.
    closing: String,
}

/// The descriptor that keeps a place in the room of a wish, and the place.
pub(crate) type Kept = (RawFd, Outer);

impl Outer {
    /// The place in the room of this wish in which we are already.
    pub(crate) fn around(wish: &Wish) -> Result<Option<Self>, WaitsForItself> {
        Self::around_with(wish, Self::kept(wish))
    }

    /// The same, where it is known what a descriptor keeps.
    pub(crate) fn around_with(
        wish: &Wish,
        kept: Option<Kept>,
    ) -> Result<Option<Self>, WaitsForItself> {
        let held = std::env::var(VARIABLE).unwrap_or_default();
        let place = wish.place.to_string();
        let here = |outer: &Outer| {
            outer.room == wish.room && is_same(&outer.place, &place) && outer.holds()
        };
        let named = held.split(' ').rev().filter_map(Self::read).find(here);
        let closing = kept.as_ref().map_or(String::new(), |(number, _)| format!(" {number}>&-"));
        let Some(outer) = named.or(kept.map(|(_, outer)| outer)) else { return Ok(None) };
        if outer.session == wish.session && !wish.alone {
            return Ok(Some(outer));
        }
        if wish.patience == Patience::None {
            // It does not wait, and is told that the room is occupied.
            return Ok(None);
        }
        let (room, inner) = (wish.room.clone(), wish.session.clone());
        Err(WaitsForItself { room, outer: outer.session, inner, closing })
    }

    /// The place in the room of this wish that a descriptor of ours keeps.
    pub(crate) fn kept(wish: &Wish) -> Option<Kept> {
        let Place::Directory(directory) = &wish.place else { return None };
        let open: Vec<RawFd> = std::fs::read_dir("/proc/self/fd")
            .ok()?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|number| *number > 2)
            .collect();
        let file = file_of(directory, &wish.room)?.metadata().ok()?;
        let on_it = |number: &RawFd| {
            let facts = std::fs::metadata(format!("/proc/self/fd/{number}"));
            facts.is_ok_and(|facts| (facts.dev(), facts.ino()) == (file.dev(), file.ino()))
        };
        let open: Vec<RawFd> = open.into_iter().filter(on_it).collect();
        if open.is_empty() {
            return None;
        }
        let existing = RoomOptions::new().existing(true);
        let room = places().open(&wish.place, &wish.room, &existing).ok()?;
        open.into_iter().find_map(|number| {
            // SAFETY: it was open a moment ago, and nobody closes anything while we look: there is no other thread.
            let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
            let kept = room.kept_by(descriptor).ok()??;
            let outer = Outer {
                session: kept.session,
                epoch: kept.epoch,
                holder: kept.holder.to_string(),
                room: wish.room.clone(),
                place: wish.place.to_string(),
            };
            Some((number, outer))
        })
    }

    /// The variable for a command that is inside by `wish`, and by `others` before.
    pub(crate) fn variable(others: Option<&str>, wish: &Wish, epoch: u64, holder: &str) -> String {
        let parts =
            [&wish.session, &epoch.to_string(), holder, &wish.room, &wish.place.to_string()];
        let ours = parts.map(encode).join(":");
        match others {
            Some(others) if !others.is_empty() => format!("{others} {ours}"),
            _ => ours,
        }
    }

    fn read(text: &str) -> Option<Self> {
        let parts: Option<Vec<String>> = text.split(':').map(decode).collect();
        let [session, epoch, holder, room, place] = parts?.try_into().ok()?;
        Some(Outer { session, epoch: epoch.parse().ok()?, holder, room, place })
    }

    /// Whether the place is still held. A room that cannot be looked at is believed to be as it was.
    pub(crate) fn holds(&self) -> bool {
        let Ok(place) = self.place.parse() else { return false };
        let room = match look(&place, &self.room) {
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

/// Whether two places are one, also if two paths lead to it.
fn is_same(one: &str, other: &str) -> bool {
    let inode = |path: &str| std::fs::metadata(path).map(|facts| (facts.dev(), facts.ino())).ok();
    one == other
        || (one.starts_with('/') && inode(one).is_some_and(|one| inode(other) == Some(one)))
}

#[cfg(test)]
mod tests {
    use super::Outer;

    #[test]
    fn what_is_no_place_is_overlooked() {
        for text in ["", "a", "a:b:c:d:e", "a:1:c:d", "a:1:c:d:e:f", "a:1:%:d:e"] {
            assert_eq!(Outer::read(text), None, "{text}");
        }
        let outer = Outer::read("a%20b:7:1.2:r:/tmp").expect("it is one");
        assert_eq!((outer.session.as_str(), outer.epoch), ("a b", 7));
    }
}
