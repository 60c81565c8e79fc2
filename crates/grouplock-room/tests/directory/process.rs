//! Starts other processes, and waits for events in a room.

use grouplock_room::Room;
pub(crate) use grouplock_testing::actor::{Actor, listen, role, say};
pub(crate) use grouplock_testing::{LONG, Scratch, until};

/// Waits until the room has so many waiters.
pub(crate) fn until_waiting(room: &Room, waiters: usize) {
    until(&format!("{waiters} wait"), || {
        room.snapshot().expect("it can be looked at").waiters() == waiters
    });
}

/// Not a test: a process that enters and stays until a kill.
#[test]
fn guest() {
    let Some(role) = role() else { return };
    let [directory, room, session] = &role[..] else { panic!("not a guest: {role:?}") };
    let room = Room::open(directory.as_str(), room).expect("the room can be opened");
    let guard = room.enter(session).expect("it is admitted at some time");
    say("inside");
    while listen().is_some() {}
    drop(guard);
}

/// A process that enters `session` of `room`, or waits for it, and stays until a kill.
pub(crate) fn start_guest(scratch: &Scratch, room: &str, session: &str) -> Actor {
    Actor::start("process::guest", &[scratch.text(), room, session])
}

/// As [`start_guest`]. Returns when the process is inside.
pub(crate) fn guest_inside(scratch: &Scratch, room: &str, session: &str) -> Actor {
    let guest = start_guest(scratch, room, session);
    assert_eq!(guest.hear().as_deref(), Some("inside"));
    guest
}
