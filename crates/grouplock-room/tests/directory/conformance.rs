//! Rooms in a directory pass the suite.

use grouplock_room::conformance::{Subject, Victim};
use grouplock_room::{Guard, Room, RoomError, RoomName, RoomOptions};

use crate::process::{self, Actor, LONG, Scratch};

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
        Some(Box::new(Process(process::start_guest(&self.0, room, session))))
    }

    fn take_away(&self, room: &str, _: &Guard<'_>) -> bool {
        let file = RoomName::new(room).expect("a good name").encoded() + ".room";
        std::fs::remove_file(self.0.path().join(file)).is_ok()
    }

    fn soon(&self) -> std::time::Duration {
        LONG
    }
}

grouplock_room::conformance_tests!(InDirectory(Scratch::new()));
