//! Holdings that an open file keeps.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::mpsc::{self, TryRecvError};

use grouplock_room::{Room, RoomError, RoomOptions, Standing};

use crate::process::{LONG, Scratch};

fn open(scratch: &Scratch) -> (Room, File) {
    let room = Room::open(scratch.path(), "room").expect("it can be opened");
    let path = room.file().expect("it is in a directory");
    let file = File::options().append(true).open(path).expect("it can be opened");
    (room, file)
}

#[test]
fn a_holding_lasts_until_the_last_descriptor_is_closed() {
    let scratch = Scratch::new();
    let (room, file) = open(&scratch);
    let other = file.try_clone().expect("it is open");
    room.enter("s").expect("it is empty").keep_by(file.as_fd(), 42).expect("it fits");
    drop(file);
    assert!(room.try_enter("t").is_err_and(|error| error.is_conflict()));
    let seen = room.snapshot().expect("it can be looked at");
    assert_eq!(seen.inside.map(|phase| phase.members[0].pid), Some(42));
    drop(other);
    let guard = room.request("t").timeout(LONG).enter().expect("it is free");
    assert_eq!(guard.recovered().map(|died| died.session).as_deref(), Some("s"));
}

/// While a holding moves, it has no owner for a moment. No participant may act on that.
#[test]
fn a_holding_that_moves_is_never_taken_for_that_of_a_dead_process() {
    let scratch = Scratch::new();
    let (room, file) = open(&scratch);
    std::thread::scope(|scope| {
        // Dropped at the end, also by a panic: then the looker ends.
        let (go_on, told) = mpsc::channel::<()>();
        let scratch = &scratch;
        // A request that cannot wait checks whether the holders live.
        let looker = scope.spawn(move || {
            let (room, _) = open(scratch);
            while told.try_recv() == Err(TryRecvError::Empty) {
                match room.try_enter("t") {
                    Ok(guard) => drop(guard),
                    Err(error) => assert!(error.is_conflict(), "{error}"),
                }
            }
        });
        for round in 0..1000 {
            let guard = room.request("s").timeout(LONG).enter().expect("it is admitted");
            guard.keep_by(file.as_fd(), 1).expect("it fits");
            let left = room.leave_kept(file.as_fd(), false).expect("it can be left");
            assert!(left, "round {round}: it was taken away");
        }
        drop(go_on);
        looker.join().expect("it found nothing wrong");
    });
    assert_eq!(room.snapshot().expect("it can be looked at").deaths, 0);
}

#[test]
fn a_descriptor_keeps_one_holding_and_two_keep_two() {
    let scratch = Scratch::new();
    let (room, one) = open(&scratch);
    let (_, two) = open(&scratch);
    for file in [&one, &two] {
        room.enter("s").expect("it can be shared").keep_by(file.as_fd(), 1).expect("it fits");
    }
    let again = room.enter("s").expect("it can be shared").keep_by(one.as_fd(), 1);
    assert!(matches!(again, Err(RoomError::BadOption { .. })), "{again:?}");
    assert_eq!(room.snapshot().expect("it can be looked at").holders(), 2, "it was left");
    assert!(room.leave_kept(one.as_fd(), false).expect("it can be left"));
    assert!(!room.leave_kept(one.as_fd(), false).expect("it was left"));
    assert!(room.kept_by(one.as_fd()).expect("it can be asked").is_none());
    assert!(room.kept_by(two.as_fd()).expect("it can be asked").is_some());
    assert!(room.try_enter("t").is_err(), "the other is inside");
    assert!(room.leave_kept(two.as_fd(), false).expect("it can be left"));
    drop(room.try_enter("t").expect("all have left"));
}

/// Children may inherit the descriptor of a holder, as the command of `grouplock run` does. The
/// holding stays the holder's.
#[test]
fn the_holding_of_a_process_is_not_left_by_its_descriptor() {
    let scratch = Scratch::new();
    let (holders, _) = open(&scratch);
    let (room, _) = open(&scratch);
    let guard = holders.enter("s").expect("it is empty");
    let inherited = guard.descriptor().expect("there is one");
    assert!(room.kept_by(inherited).expect("it can be asked").is_none());
    assert!(!room.leave_kept(inherited, false).expect("it can be asked"));
    let second = room.enter("s").expect("it can be shared").keep_by(inherited, 1);
    assert!(matches!(second, Err(RoomError::BadOption { .. })), "{second:?}");
    assert!(room.try_enter("t").is_err_and(|error| error.is_conflict()), "it is still inside");
    guard.leave().expect("nobody has left for it");
    drop(room.try_enter("t").expect("it has left"));
}

#[test]
fn an_empty_file_is_replaced_unless_somebody_is_inside() {
    let scratch = Scratch::new();
    let (room, file) = open(&scratch);
    room.enter("s").expect("it is empty").keep_by(file.as_fd(), 1).expect("it fits");
    drop(room);
    file.set_len(0).expect("it can be emptied");
    let closed = Room::open(scratch.path(), "room");
    assert!(matches!(closed, Err(RoomError::Foreign { .. })), "{closed:?}");
    drop(file);
    let (room, _) = open(&scratch);
    drop(room.try_enter("t").expect("it is a new one"));
}

/// The slot of a holding that a file kept gets another owner.
#[test]
fn a_slot_that_a_file_kept_is_that_of_a_process_again() {
    let scratch = Scratch::new();
    let (room, file) = open(&scratch);
    room.enter("s").expect("it is empty").keep_by(file.as_fd(), 1).expect("it fits");
    drop(file);
    drop(room.try_enter("t").expect("the file is closed"));
    // Each takes a slot; one of them that of the file.
    let (others, _) = open(&scratch);
    let guards: Vec<_> = (0..3).map(|_| others.enter("s").expect("it can be shared")).collect();
    let inherited = guards[0].descriptor().expect("there is one");
    assert!(!others.leave_kept(inherited, false).expect("it can be asked"));
    assert_eq!(room.snapshot().expect("it can be looked at").holders(), 3);
}

#[test]
fn a_descriptor_that_keeps_one_holding_after_another_uses_up_no_slots() {
    let scratch = Scratch::new();
    let options = RoomOptions::new().capacity(3.try_into().expect("not zero"));
    Room::open_with(scratch.path(), "room", &options).expect("it can be made");
    let (room, file) = open(&scratch);
    for _ in 0..4 {
        room.enter("s").expect("there is a place").keep_by(file.as_fd(), 1).expect("it fits");
        assert!(room.leave_kept(file.as_fd(), false).expect("it can be left"));
    }
}

#[test]
fn a_holding_that_has_moved_is_left_for_its_watch() {
    let scratch = Scratch::new();
    let (room, file) = open(&scratch);
    let guard = room.enter("s").expect("it is empty");
    let watch = guard.watch();
    guard.keep_by(file.as_fd(), 1).expect("it fits");
    assert_eq!(watch.standing(), Standing::Left);
    assert!(room.leave_kept(file.as_fd(), false).expect("it can be left"));
    assert_eq!(watch.standing(), Standing::Left, "it is not lost");
}
