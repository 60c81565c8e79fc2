//! Looking at rooms: `status`, `top` and `doctor`.

pub(crate) mod doctor;
pub(crate) mod status;
#[cfg(feature = "top")]
pub(crate) mod top;

use std::fmt::Write as _;
use std::time::SystemTime;

use grouplock_room::{Participant, Place, RoomError, RoomOptions, Snapshot};

use crate::output::{duration_text, sanitized, since};
use crate::place::places;

/// The snapshots of all rooms in a place.
pub(crate) struct Overview {
    pub(crate) rooms: Vec<Snapshot>,
    /// The rooms without a snapshot, and why.
    pub(crate) failed: Vec<(String, RoomError)>,
}

pub(crate) fn overview(place: &Place) -> Result<Overview, RoomError> {
    let mut overview = Overview { rooms: Vec::new(), failed: Vec::new() };
    for (name, snapshot) in places().snapshots(place)? {
        match snapshot {
            Ok(room) => overview.rooms.push(room),
            Err(error) => overview.failed.push((name.to_string(), error)),
        }
    }
    Ok(overview)
}

pub(crate) fn snapshot(place: &Place, room: &str) -> Result<Snapshot, RoomError> {
    places().open(place, room, &RoomOptions::new().look_only())?.snapshot()
}

/// How long a participant has been inside or has waited, its priority and its command.
pub(crate) fn about(member: &Participant, now: SystemTime) -> String {
    let mut text = since(member.since, now);
    if let Some(expected) = member.expected {
        _ = write!(text, " of {}", duration_text(expected));
    }
    if member.priority.0 != 0 {
        _ = write!(text, ", priority {}", member.priority);
    }
    text + "  " + &sanitized(&member.command)
}
