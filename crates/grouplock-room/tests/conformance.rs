//! Rooms in a directory pass the suite.

mod common;

use common::{Actor, Scratch};
use grouplock_room::conformance::{Subject, Victim};
use grouplock_room::{Guard, Room, RoomError, RoomName, RoomOptions};

struct InDirectory(Scratch);

struct Process(Actor);

impl Victim for Process {
    fn pid(&self) -> u32 {
        self.0.pid()
    }

    fn kill(mut self: Box<Self>) {
        self.0.kill();
    }
}

impl Subject for InDirectory {
    fn open(&self, room: &str, options: &RoomOptions) -> Result<Room, RoomError> {
        Room::open_with(self.0.path(), room, options)
    }

    fn victim(&self, room: &str, session: &str) -> Option<Box<dyn Victim>> {
        let directory = self.0.path().to_str().expect("a readable path");
        Some(Box::new(Process(Actor::start(&[directory, room, session]))))
    }

    fn take_away(&self, room: &str, _: &Guard<'_>) -> bool {
        let file = RoomName::new(room).expect("a good name").encoded() + ".room";
        std::fs::remove_file(self.0.path().join(file)).is_ok()
    }
}

grouplock_room::conformance_tests!(InDirectory(Scratch::new()));

/// Not a test: what [`Actor::start`] runs.
#[test]
fn actor() {
    let Some(role) = common::role() else { return };
    let room = Room::open(role[0].as_str(), &role[1]).expect("the room can be opened");
    let guard = room.enter(&role[2]).expect("it is admitted at some time");
    common::say("inside");
    while common::listen().is_some() {}
    drop(guard);
}
