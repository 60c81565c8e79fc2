//! The rooms in which this process runs already.
//!
//! Each `grouplock run` adds its place to a variable of its command's environment. The variable may outlive the place, so
//! the room is asked whether it is still held.

use grouplock_room::RoomError;

use crate::status::look;
use crate::token::{decode, encode};
use crate::waiting::Wish;

/// The places, the innermost last, with spaces between them: `SESSION:EPOCH:HOLDER:ROOM:PLACE`, encoded as in a token.
pub(crate) const VARIABLE: &str = "GROUPLOCK_HELD";

/// A place that an outer `grouplock run` holds.
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
     What may wait until then, in the background, is started with `env -u {VARIABLE} grouplock …`"
)]
pub(crate) struct WaitsForItself {
    room: String,
    outer: String,
    inner: String,
}

impl Outer {
    /// The place in the room of this wish that an outer run holds.
    pub(crate) fn around(wish: &Wish) -> Result<Option<Self>, WaitsForItself> {
        let held = std::env::var(VARIABLE).unwrap_or_default();
        let place = wish.place.to_string();
        let here = |outer: &Outer| outer.room == wish.room && outer.place == place && outer.holds();
        let Some(outer) = held.split(' ').rev().filter_map(Self::read).find(here) else {
            return Ok(None);
        };
        if outer.session == wish.session && !wish.alone {
            return Ok(Some(outer));
        }
        let (room, inner) = (wish.room.clone(), wish.session.clone());
        Err(WaitsForItself { room, outer: outer.session, inner })
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
