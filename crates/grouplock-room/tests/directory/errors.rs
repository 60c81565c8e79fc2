//! Provokes every known failure, and checks the message that a person sees.

use std::fs::{self, File, OpenOptions, Permissions};
use std::num::NonZeroU16;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use grouplock_room::{Access, Guard, Places, Policy, Room, RoomError, RoomOptions};
use grouplock_testing::{current_test, skip};

use crate::process::{self, Actor, LONG, Scratch, until, until_waiting};
use crate::waking::sleeping;

/// Where the slots begin.
const SLOTS: u64 = 23_808;

fn file(scratch: &Scratch) -> PathBuf {
    scratch.path().join("room.room")
}

fn open(scratch: &Scratch) -> Result<Room, RoomError> {
    Room::open(scratch.path(), "room")
}

/// The message of an error that must occur.
fn message<T>(result: Result<T, RoomError>) -> String {
    match result {
        Ok(_) => panic!("an error was expected"),
        Err(error) => error.to_string(),
    }
}

fn assert_says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is missing in: {message}");
    }
}

/// Whether this is root. Permissions do not stop root.
fn root() -> bool {
    nix::unistd::geteuid().is_root()
}

#[test]
fn a_foreign_file_is_left_untouched() {
    let scratch = Scratch::new();
    for content in ["x", "short", &"a text that is long enough to be a header of a room".repeat(9)]
    {
        fs::write(file(&scratch), content).expect("it can be written");
        let said = message(open(&scratch));
        assert_says(&said, &["room.room", "is not a room", "left untouched"]);
        let said = message(Room::remove(scratch.path(), "room"));
        assert_says(&said, &["is not a room"]);
        assert_eq!(fs::read_to_string(file(&scratch)).expect("it is there"), content);
    }
}

#[test]
fn another_version_is_an_error_of_its_own() {
    let scratch = Scratch::new();
    drop(open(&scratch).expect("it can be made"));
    let writable = OpenOptions::new().write(true).open(file(&scratch)).expect("it is ours");
    writable.write_all_at(&7_u32.to_ne_bytes(), 8).expect("it can be written");
    let said = message(open(&scratch));
    assert_says(&said, &["has format 7, this program reads format 3", "left untouched"]);
}

#[test]
fn a_corrupt_header_is_reported() {
    let scratch = Scratch::new();
    drop(open(&scratch).expect("it can be made"));
    let writable = OpenOptions::new().write(true).open(file(&scratch)).expect("it is ours");
    writable.write_all_at(&[0xff], 20).expect("it can be written");
    assert_says(&message(open(&scratch)), &["is corrupt", "checksum", "remove the file"]);
    // After a removal, there is a new room.
    Room::remove(scratch.path(), "room").expect("nobody uses it");
    open(&scratch).expect("it can be made again");
}

#[test]
fn a_file_of_the_wrong_size_is_corrupt() {
    let scratch = Scratch::new();
    drop(open(&scratch).expect("it can be made"));
    let size = fs::metadata(file(&scratch)).expect("it is there").len();
    let writable = OpenOptions::new().write(true).open(file(&scratch)).expect("it is ours");
    writable.set_len(size - 4096).expect("it can be cut");
    let said = message(open(&scratch));
    assert_says(&said, &["is corrupt", &format!("{} bytes instead of {size}", size - 4096)]);
}

/// The default number of participants of a room, and one too many.
#[test]
fn ten_thousand_take_part() {
    let scratch = Scratch::new();
    let room = open(&scratch).expect("made");
    let guards: Vec<_> = (0..10_000).map(|_| room.enter("s").expect("there is a place")).collect();
    assert_eq!(room.snapshot().expect("it can be seen").holders(), 10_000);
    assert!(matches!(room.enter("s"), Err(RoomError::Full { capacity: 10_000, .. })));
    drop(guards);
    room.try_enter("t").expect("it is empty").leave().expect("left");
}

#[test]
fn a_room_grows_with_its_participants() {
    let scratch = Scratch::new();
    let room = open(&scratch).expect("made");
    let size = || fs::metadata(file(&scratch)).expect("it is there").len();
    assert!(size() <= 32_768, "{}", size());
    let guards: Vec<_> = (0..100).map(|_| room.enter("s").expect("there is a place")).collect();
    let other = open(&scratch).expect("it can be opened");
    drop(other.try_enter("s").expect("it is shared"));
    assert_eq!(other.snapshot().expect("it can be seen").holders(), 100);
    assert!(size() < 200_000, "{}", size());
    let more: Vec<_> = (0..1000).map(|_| room.enter("s").expect("there is a place")).collect();
    assert_eq!(other.snapshot().expect("it can be seen").holders(), 1100);
    drop((guards, more));
    room.try_enter("t").expect("it is empty").leave().expect("left");
}

#[test]
fn a_handle_that_is_closed_leaves_no_slot_in_use() {
    let scratch = Scratch::new();
    let room = open(&scratch).expect("made");
    let guards: Vec<_> = (0..5).map(|_| room.enter("s").expect("there is a place")).collect();
    drop(guards);
    drop(room);
    let bytes = fs::read(file(&scratch)).expect("it is there");
    let states = bytes[SLOTS as usize..].chunks(1024).map(|slot| &slot[..4]);
    assert!(states.into_iter().all(|state| state == [0; 4]), "none is in use");
}

#[test]
fn a_room_that_was_cut_off_is_left_without_a_signal() {
    let scratch = Scratch::new();
    let room = open(&scratch).expect("made");
    let inside = room.enter("s").expect("it is empty");
    let writable = OpenOptions::new().write(true).open(file(&scratch)).expect("it is ours");
    writable.set_len(4096).expect("it can be cut");
    assert_says(&message(room.snapshot()), &["is corrupt", "truncated"]);
    assert_says(&message(room.enter("s")), &["is corrupt", "truncated"]);
    assert_says(&message(inside.leave()), &["the holding was lost", "corrupt"]);
}

#[test]
fn epochs_do_not_go_back_when_a_room_is_made_anew() {
    let scratch = Scratch::new();
    let mut last = 0;
    for _ in 0..3 {
        let room = open(&scratch).expect("made");
        for _ in 0..50 {
            let epoch = room.enter("s").expect("it is empty").epoch();
            assert!(epoch > last, "{epoch} after {last}");
            last = epoch;
        }
        drop(room);
        Room::remove(scratch.path(), "room").expect("nobody uses it");
    }
}

#[test]
fn a_state_that_makes_no_sense_closes_the_room_for_all() {
    let scratch = Scratch::new();
    let (room, other) = (open(&scratch).expect("made"), open(&scratch).expect("opened"));
    let idle = open(&scratch).expect("opened");
    idle.enter("s").expect("it is empty").leave().expect("it can be left");
    let inside = room.enter("s").expect("it is empty");
    // The state of the second slot gets a value that is no state.
    let writable = OpenOptions::new().write(true).open(file(&scratch)).expect("it is ours");
    writable.write_all_at(&0x1230_u32.to_ne_bytes(), SLOTS + 1024).expect("it can be written");
    // The links are invalid, so that the code checks all slots.
    writable.write_all_at(&9_u64.to_ne_bytes(), 144).expect("it can be written");
    assert_says(&message(other.enter("s")), &["is corrupt", "is not valid"]);
    assert_says(&message(room.enter("s")), &["is corrupt"]);
    assert_says(&message(open(&scratch)), &["is corrupt"]);
    assert_says(&message(room.snapshot()), &["is corrupt"]);
    assert_says(&message(inside.leave()), &["the holding was lost", "corrupt"]);
    let said = message(Room::remove(scratch.path(), "room"));
    assert_says(&said, &["is in use by", "have not noticed"]);
    drop(idle);
    Room::remove(scratch.path(), "room").expect("nobody uses it any more");
    open(&scratch).expect("made anew").enter("s").expect("it is empty").leave().expect("left");
}

#[test]
fn a_waiter_learns_that_the_room_is_gone() {
    let scratch = Scratch::new();
    let room = open(&scratch).expect("made");
    let inside = room.enter("s").expect("it is empty");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| room.request("t").timeout(LONG).enter().map(Guard::leave));
        until_waiting(&room, 1);
        fs::remove_file(file(&scratch)).expect("it is ours");
        assert_says(&message(waiter.join().expect("no panic")), &["was removed; open it again"]);
    });
    assert_says(&message(inside.leave()), &["the holding was lost: the room was removed"]);
    // Later participants get the error too, after the first one has noticed it.
    assert_says(&message(room.enter("s")), &["was removed"]);
    open(&scratch).expect("made anew").enter("t").expect("it is empty").leave().expect("left");
}

#[test]
fn a_room_in_use_is_not_removed() {
    let scratch = Scratch::new();
    let room = open(&scratch).expect("made");
    let inside = room.enter("s").expect("it is empty");
    let said = message(Room::remove(scratch.path(), "room"));
    let process = format!("process {} (session `s`)", std::process::id());
    assert_says(&said, &["is in use by", &process]);
    assert_eq!(inside.standing(), grouplock_room::Standing::Held);
    inside.leave().expect("it can be left");
    Room::remove(scratch.path(), "room").expect("nobody is inside");
    assert_says(&message(room.enter("s")), &["was removed"]);
    let said = message(Room::remove(scratch.path(), "room"));
    assert_says(&said, &["there is no room `room` in"]);
}

#[test]
fn only_an_existing_room_is_opened_if_asked_so() {
    let scratch = Scratch::new();
    let options = RoomOptions::new().existing(true);
    let said = message(Room::open_with(scratch.path(), "room", &options));
    assert_says(&said, &["there is no room `room` in"]);
    let nowhere = scratch.path().join("nowhere");
    let said = message(Room::open_with(nowhere.as_path(), "room", &options));
    assert_says(&said, &["there is no room `room` in", "nowhere"]);
    assert!(!nowhere.exists(), "nothing is made");
    open(&scratch).expect("made");
    Room::open_with(scratch.path(), "room", &options).expect("it is there");
}

#[test]
fn a_full_room_says_how_many_fit() {
    let scratch = Scratch::new();
    let options = RoomOptions::new().capacity(NonZeroU16::new(3).expect("not zero"));
    let room = Room::open_with(scratch.path(), "room", &options).expect("made");
    let guards: Vec<_> = (0..3).map(|_| room.enter("s").expect("there is a place")).collect();
    let said = message(room.enter("s"));
    assert_says(&said, &["is full: it has slots for at most 3 participants"]);
    drop(guards);
    room.enter("s").expect("there is a place again").leave().expect("left");
    let options = RoomOptions::new().capacity(NonZeroU16::new(65_535).expect("not zero"));
    let said = message(Room::open_with(scratch.path(), "other", &options));
    assert_says(&said, &["the capacity of a room cannot be 65535", "expected 1 to 65534"]);
}

#[test]
fn another_policy_is_refused_by_name() {
    let scratch = Scratch::new();
    let batch = RoomOptions::new().policy(Policy::Batch { passes: 3 });
    Room::open_with(scratch.path(), "room", &batch).expect("made");
    open(&scratch).expect("any policy will do");
    let fifo = RoomOptions::new().policy(Policy::Fifo);
    let said = message(Room::open_with(scratch.path(), "room", &fifo));
    assert_says(&said, &["has the policy batch:3, not fifo"]);
}

#[test]
fn names_that_cannot_be() {
    let scratch = Scratch::new();
    assert_says(&message(Room::open(scratch.path(), "")), &["`` cannot be the name", "empty"]);
    let long = "x".repeat(300);
    let said = message(Room::open(scratch.path(), &long));
    assert_says(&said, &["cannot be the name of a room", "300 bytes, at most 240"]);
    for name in ["../escape", "/etc/passwd", ".", "..", "a\0b", "%", "ü"] {
        let room = Room::open(scratch.path(), name).expect("any other name is possible");
        room.enter("s").expect("it is empty").leave().expect("left");
        assert_eq!(room.snapshot().expect("it can be looked at").room, name);
    }
    let listed = Places::new().list(scratch.path()).expect("it can be listed");
    assert_eq!(listed.len(), 7, "all of them are files in the directory: {listed:?}");
    assert!(!scratch.path().parent().expect("there is one").join("escape.room").exists());
}

#[test]
fn places_that_nobody_opens() {
    let said = message(Room::open("etcd://localhost:2379", "room"));
    let parts = ["`etcd://`", "it cannot use `etcd://localhost:2379`", "it can use: directories"];
    assert_says(&said, &parts);
    assert_says(
        &message(Room::open("etcd://", "room")),
        &["`etcd://` is not a place", "host:port"],
    );
    assert_says(&message(Room::open("", "room")), &["is not a place for rooms", "it is empty"]);
}

#[test]
fn links_are_not_followed() {
    let scratch = Scratch::new();
    let precious = scratch.path().join("precious");
    fs::write(&precious, "do not touch").expect("it can be written");
    symlink(&precious, file(&scratch)).expect("it can be linked");
    assert_says(&message(open(&scratch)), &["is not used as a room", "symbolic link"]);
    fs::remove_file(file(&scratch)).expect("it is ours");
    symlink(scratch.path().join("nothing"), file(&scratch)).expect("it can be linked");
    assert_says(&message(open(&scratch)), &["symbolic link"]);
    assert!(!scratch.path().join("nothing").exists(), "nothing is made through a link");
    fs::remove_file(file(&scratch)).expect("it is ours");
    fs::hard_link(&precious, file(&scratch)).expect("it can be linked");
    assert_says(&message(open(&scratch)), &["is not used as a room", "hard link"]);
    assert_eq!(fs::read_to_string(&precious).expect("it is there"), "do not touch");
    let linked = scratch.path().join("linked");
    symlink(scratch.path(), &linked).expect("it can be linked");
    let said = message(Room::open(linked.as_path(), "other"));
    assert_says(&said, &["rooms cannot live in", "linked", "symbolic link"]);
}

#[test]
fn what_is_no_file_or_directory() {
    let scratch = Scratch::new();
    fs::create_dir(file(&scratch)).expect("it can be made");
    assert_says(&message(open(&scratch)), &["is not used as a room", "it is a directory"]);
    fs::remove_dir(file(&scratch)).expect("it is ours");
    let mode = nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR;
    nix::unistd::mkfifo(&file(&scratch), mode).expect("it can be made");
    assert_says(&message(open(&scratch)), &["is not used as a room", "not an ordinary file"]);
    let plain = scratch.path().join("plain");
    File::create(&plain).expect("it can be made");
    let said = message(Room::open(plain.as_path(), "room"));
    assert_says(&said, &["rooms cannot live in", "not a directory"]);
    let deep = scratch.path().join("a/b");
    let said = message(Room::open(deep.as_path(), "room"));
    assert_says(&said, &["rooms cannot live in", "a/b", "its parent does not exist"]);
}

#[test]
fn directories_and_files_open_to_everybody() {
    let scratch = Scratch::new();
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o777)).expect("it is ours");
    let said = message(open(&scratch));
    assert_says(&said, &["rooms cannot live in", "mode 0777", "set the sticky bit"]);
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o1777)).expect("it is ours");
    drop(open(&scratch).expect("with the sticky bit it is possible"));
    fs::set_permissions(file(&scratch), Permissions::from_mode(0o606)).expect("it is ours");
    let said = message(open(&scratch));
    assert_says(&said, &["is not used as a room", "every user may write to it (mode 0606)"]);
}

#[test]
fn a_room_is_its_owners_or_the_groups() {
    let scratch = Scratch::new();
    let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o7777;
    let own = scratch.path().join("own");
    Room::open(own.as_path(), "room").expect("both are made");
    assert_eq!((mode(&own), mode(&own.join("room.room"))), (0o700, 0o600));
    let group = scratch.path().join("group");
    let options = RoomOptions::new().access(Access::Group);
    Room::open_with(group.as_path(), "room", &options).expect("both are made");
    assert_eq!((mode(&group), mode(&group.join("room.room"))), (0o770, 0o660));
    let left: Vec<_> = fs::read_dir(&own).expect("it can be listed").collect();
    assert_eq!(left.len(), 1, "nothing but the room is left: {left:?}");
}

/// The error for a process without privileges.
fn unprivileged(scratch: &Scratch, act: &str) -> Option<String> {
    if !root() {
        skip(&current_test(), "only root can try what nobody may do");
        return None;
    }
    let mut actor = Actor::start("errors::unprivileged_actor", &[act, scratch.text()]);
    let said = actor.hear().expect("it says something");
    assert!(actor.end().success());
    Some(said)
}

/// Not a test: a process that drops its privileges.
#[test]
fn unprivileged_actor() {
    let Some(role) = process::role() else { return };
    match role[0].as_str() {
        "open as nobody" => {
            let nobody = nix::unistd::Uid::from_raw(65534);
            nix::unistd::setgroups(&[]).expect("this was root");
            nix::unistd::setgid(nix::unistd::Gid::from_raw(65534)).expect("this was root");
            nix::unistd::setuid(nobody).expect("this was root");
            match Room::open(role[1].as_str(), "room") {
                Ok(_) => process::say("opened"),
                Err(error) => process::say(&error.to_string()),
            }
        }
        unknown => panic!("no act is called {unknown}"),
    }
}

#[test]
fn no_permission_is_reported() {
    let scratch = Scratch::new();
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o755)).expect("it is ours");
    if let Some(said) = unprivileged(&scratch, "open as nobody") {
        assert_says(&said, &["no permission to create", "room.room"]);
    }
    drop(open(&scratch).expect("made"));
    if let Some(said) = unprivileged(&scratch, "open as nobody") {
        assert_says(&said, &["no permission to open", "room.room"]);
    }
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o700)).expect("it is ours");
    if let Some(said) = unprivileged(&scratch, "open as nobody") {
        assert_says(&said, &["no permission to open"]);
    }
}

#[test]
fn somebody_elses_file_in_a_shared_directory() {
    let scratch = Scratch::new();
    if !root() {
        skip(&current_test(), "only root can give a file away");
        return;
    }
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o1777)).expect("it is ours");
    drop(open(&scratch).expect("made"));
    std::os::unix::fs::chown(file(&scratch), Some(12345), None).expect("this is root");
    let said = message(open(&scratch));
    assert_says(&said, &["is not used as a room", "belongs to the user with number 12345"]);
}

/// A separate file system, if this machine permits a mount.
struct Mounted(PathBuf);

impl Mounted {
    fn new(scratch: &Scratch, options: &str) -> Option<Self> {
        let path = scratch.path().join("mounted");
        fs::create_dir(&path).expect("it can be made");
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "none"])
            .arg(&path)
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            skip(&current_test(), "nothing can be mounted here");
            return None;
        }
        Some(Mounted(path))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn no_space_is_reported_and_nothing_left_behind() {
    let scratch = Scratch::new();
    let Some(mounted) = Mounted::new(&scratch, "size=16k") else { return };
    let said = message(Room::open(mounted.0.as_path(), "room"));
    assert_says(&said, &["no space left for", "room.room", "bytes", "nothing was left behind"]);
    assert_eq!(fs::read_dir(&mounted.0).expect("it can be listed").count(), 0);
}

#[test]
fn a_room_that_cannot_grow_says_so_and_works() {
    let scratch = Scratch::new();
    let Some(mounted) = Mounted::new(&scratch, "size=36k") else { return };
    let room = Room::open(mounted.0.as_path(), "room").expect("it fits");
    let guards: Vec<_> = (0..8).map(|_| room.enter("s").expect("there is a place")).collect();
    assert_says(&message(room.enter("s")), &["no space left for", "room.room", "bytes"]);
    drop(guards);
    room.enter("t").expect("it is empty").leave().expect("left");
}

#[test]
fn a_read_only_file_system_is_reported() {
    let scratch = Scratch::new();
    let Some(mounted) = Mounted::new(&scratch, "size=4m,ro") else { return };
    let said = message(Room::open(mounted.0.as_path(), "room"));
    assert_says(&said, &["cannot create", "room.room", "read-only"]);
}

#[test]
fn a_stopped_holder_is_waited_for_and_then_its_death_noticed() {
    let scratch = Scratch::new();
    let room = open(&scratch).expect("made");
    let mut actor = process::guest_inside(&scratch, "room", "s");
    actor.stop();
    let started = Instant::now();
    let waited = room.request("t").timeout(Duration::from_millis(400)).enter();
    assert!(waited.is_err_and(|error| error.is_conflict()), "a stopped process is not dead");
    assert!(started.elapsed() >= Duration::from_millis(400));
    actor.kill();
    let entered = room.request("t").timeout(LONG).enter().expect("it is dead");
    assert!(entered.recovered().is_some());
}

#[test]
fn a_latch_that_nobody_moves_is_reported() {
    let scratch = Scratch::new();
    let room = open(&scratch).expect("made");
    let actor = process::guest_inside(&scratch, "room", "s");
    // The process seems to have stopped in the middle of an update.
    let slot: u32 = 1;
    let writable = OpenOptions::new().write(true).open(file(&scratch)).expect("it is ours");
    writable.write_all_at(&slot.to_ne_bytes(), 64).expect("it can be written");
    let said = message(room.request("s").timeout(LONG).enter());
    let process = format!("process {} has not finished an update", actor.pid());
    assert_says(&said, &["is stalled", &process, "is it stopped?"]);
}

/// Both wait for a latch whose owner is stopped: a thread that leaves, and a thread that enters by
/// the same handle.
#[test]
fn a_late_leave_does_not_end_the_next_holding() {
    let scratch = Scratch::new();
    let idle = open(&scratch).expect("made");
    idle.enter("s").expect("it is empty").leave().expect("it keeps its slot, the first");
    let (room, other) = (open(&scratch).expect("opened"), open(&scratch).expect("opened"));
    let writable = OpenOptions::new().write(true).open(file(&scratch)).expect("it is ours");
    let latch = |owner: u32| writable.write_all_at(&owner.to_ne_bytes(), 64);
    for _ in 0..5 {
        let guard = room.enter("s").expect("it is empty");
        latch(1).expect("it can be written");
        let again = std::thread::scope(|scope| {
            let named = || std::thread::Builder::new().name("at-the-latch".to_owned());
            let leaving = named().spawn_scoped(scope, || guard.leave()).expect("a thread");
            let entering = named().spawn_scoped(scope, || room.enter("s")).expect("a thread");
            until("both wait", || sleeping("at-the-latch") == (2, 2));
            latch(0).expect("it can be written");
            leaving.join().expect("no panic").expect("it can be left");
            entering.join().expect("no panic").expect("it can be entered")
        });
        assert_eq!(other.snapshot().expect("it can be seen").holders(), 1);
        assert!(other.try_enter("t").is_err_and(|error| error.is_conflict()), "it is inside");
        again.leave().expect("it was not thrown out");
        drop(other.try_enter("t").expect("all have left"));
    }
}

/// Each refused request leaves its slot to the next.
#[test]
fn a_refused_request_uses_up_no_slot() {
    let scratch = Scratch::new();
    let options = RoomOptions::new().capacity(NonZeroU16::new(2).expect("not zero"));
    let room = Room::open_with(scratch.path(), "room", &options).expect("made");
    let _inside = room.enter("s").expect("it is empty");
    for _ in 0..3 {
        assert!(room.try_enter("t").is_err_and(|error| error.is_conflict()));
    }
}

/// The empty name is a session as any other. A slot has the name that its last owner wrote.
#[test]
fn the_empty_name_is_not_that_of_an_earlier_owner() {
    let scratch = Scratch::new();
    let earlier = open(&scratch).expect("made");
    earlier.enter("s").expect("it is empty").leave().expect("it can be left");
    drop(earlier);
    let (room, other) = (open(&scratch).expect("opened"), open(&scratch).expect("opened"));
    let _inside = room.enter("").expect("it is empty");
    assert_eq!(room.snapshot().expect("it can be seen").session(), Some(""));
    assert!(other.try_enter("s").is_err_and(|error| error.is_conflict()));
}

/// A snapshot is exact if no number of a change is between its beginning and its end.
#[test]
fn every_change_has_a_number() {
    let scratch = Scratch::new();
    let room = open(&scratch).expect("made");
    let changes = || fs::read(file(&scratch)).expect("it is there")[216..224].to_vec();
    let before = changes();
    let inside = room.enter("s").expect("it is empty");
    let between = changes();
    inside.leave().expect("it can be left");
    assert!(before != between && between != changes());
}

/// In a directory where every user may make files, the file of another user is not used, even if
/// its group is ours.
#[test]
fn a_file_of_the_group_in_a_public_directory() {
    let scratch = Scratch::new();
    if !root() {
        skip(&current_test(), "only root can give a file away");
        return;
    }
    let ours = nix::unistd::getegid().as_raw();
    drop(open(&scratch).expect("made"));
    std::os::unix::fs::chown(file(&scratch), Some(12345), Some(ours)).expect("this is root");
    fs::set_permissions(file(&scratch), Permissions::from_mode(0o660)).expect("it is ours");
    open(&scratch).expect("a group may share a directory of its own");
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o1777)).expect("it is ours");
    let said = message(open(&scratch));
    assert_says(&said, &["is not used as a room", "belongs to the user with number 12345"]);
}
