//! The rooms of one user are the same from everywhere, and a command warns if they differ.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use grouplock_room::Place as Rooms;
use grouplock_testing::{current_test, skip};
use nix::unistd::{Group, geteuid};

use crate::place::{Place, install, told, unique};

/// Another user, which no other test uses, and the program in a directory where that user can run
/// it.
struct Stranger {
    uid: u32,
    program: PathBuf,
    rooms: PathBuf,
    place: Place,
}

impl Stranger {
    fn new() -> Option<Self> {
        if !geteuid().is_root() {
            skip(&current_test(), "only root can become another user");
            return None;
        }
        let place = Place::new();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        let program = place.file("grouplock");
        install(env!("CARGO_BIN_EXE_grouplock").as_ref(), &program);
        let uid = 1_500_000_000 + std::process::id() * 16 + unique() % 16;
        // The runtime directory of a login, which a cron job does not have.
        fs::create_dir(place.file("runtime")).expect("it can be made");
        chown(place.file("runtime"), Some(uid), Some(uid)).expect("we are root");
        let Rooms::Directory(rooms) = Rooms::of_user(uid) else { panic!("it is a directory") };
        Some(Stranger { uid, program, rooms, place })
    }

    /// With only the path in the environment, as in cron(8).
    fn cron(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).env_clear().env("PATH", "/usr/bin:/bin");
        command.uid(self.uid).gid(self.uid).current_dir("/");
        command
    }

    fn login(&self, arguments: &[&str]) -> Command {
        let mut command = self.cron(arguments);
        command.env("XDG_RUNTIME_DIR", self.place.file("runtime")).env("HOME", "/");
        command
    }

    fn as_root(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).env_remove("GROUPLOCK_AT").env("SUDO_UID", self.uid.to_string());
        command
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.rooms);
    }
}

#[test]
fn cron_and_login_of_a_user_exclude_each_other() {
    let Some(user) = Stranger::new() else { return };
    let program = user.program.display().to_string();
    let script = format!("exec env -i {program} run -n r b -- true");
    let (code, _, trouble) = told(&mut user.login(&["run", "r", "a", "-c", &script]));
    assert_eq!(code, 124, "{trouble}");
    assert!(trouble.contains("occupied by the session `a`"), "{trouble}");
    let (code, path, trouble) = told(&mut user.cron(&["path", "r"]));
    assert_eq!(
        (code, path.trim_end()),
        (0, user.rooms.join("r.room").display().to_string().as_str()),
        "{trouble}"
    );
    let (code, text, _) = told(&mut user.cron(&["doctor"]));
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("those of this user"), "{text}");
}

#[test]
fn root_learns_that_a_user_has_a_room_of_that_name() {
    let Some(user) = Stranger::new() else { return };
    let room = format!("room of {}", user.uid);
    assert_eq!(told(&mut user.login(&["run", &room, "a", "--", "true"])).0, 0);
    let (code, _, trouble) = told(&mut user.as_root(&["run", &room, "b", "--", "true"]));
    assert_eq!(code, 0);
    let other = user.rooms.display().to_string();
    assert!(trouble.contains(&format!("this is not the room `{room}` in {other}")), "{trouble}");
    let (_, text, _) = told(&mut user.as_root(&["doctor"]));
    assert!(text.contains(&format!("there are rooms elsewhere: 1 in {other}")), "{text}");
    assert_eq!(told(&mut user.as_root(&["run", "-q", &room, "b", "--", "true"])).2, "");
    let (_, _, trouble) =
        told(&mut user.as_root(&["run", "--at", &other, &room, "b", "--", "true"]));
    assert_eq!(trouble, "", "that is the one");
    assert_eq!(
        told(&mut user.cron(&["run", &room, "a", "--", "true"])).0,
        0,
        "it stays the user's"
    );
    assert_eq!(told(&mut user.as_root(&["remove", "--system", &room])).0, 0);
}

#[test]
fn system_is_roots_default_and_options_win_over_the_variable() {
    let Some(user) = Stranger::new() else { return };
    let room = format!("another room of {}", user.uid);
    let path = |command: &mut Command| told(command).1.trim_end().to_owned();
    let system = path(&mut user.as_root(&["path", &room]));
    assert!(system.starts_with("/run/grouplock/"), "{system}");
    let place = Place::new();
    let at = place.rooms();
    assert_eq!(path(user.as_root(&["path", "--system", &room]).env("GROUPLOCK_AT", &at)), system);
    assert!(
        path(user.as_root(&["path", &room]).env("GROUPLOCK_AT", &at))
            .starts_with(&at.display().to_string())
    );
    assert_eq!(told(&mut user.as_root(&["remove", &room])).0, 0);
    let (code, _, trouble) =
        told(&mut user.as_root(&["run", "--system", "--at", "/tmp/x", "r", "s", "--", "true"]));
    assert_eq!(code, 125);
    assert!(trouble.contains("cannot be used with"), "{trouble}");
}

#[test]
fn the_rooms_of_a_group_are_for_its_members() {
    let Some(user) = Stranger::new() else { return };
    let Some(group) = Group::from_name("nogroup").ok().flatten() else {
        skip(&current_test(), "there is no group `nogroup`");
        return;
    };
    let run = ["run", "-n", "--group", "nogroup", "r of a test", "s", "--", "true"];
    let (code, _, trouble) = told(user.cron(&run).gid(group.gid.as_raw()));
    assert_eq!(code, 0, "{trouble}");
    let (code, _, trouble) = told(&mut user.cron(&run));
    assert_eq!(code, 125);
    assert!(trouble.contains("`nogroup`: this user is not a member of it"), "{trouble}");
    let (code, _, trouble) = told(&mut user.cron(&["status", "--group", "no such group"]));
    assert_eq!(code, 125);
    assert!(trouble.contains("`no such group`: there is no such group"), "{trouble}");
    let Rooms::Directory(rooms) = Rooms::of_group(group.gid.as_raw()) else {
        panic!("a directory")
    };
    assert_eq!(told(&mut user.as_root(&["remove", "--group", "nogroup", "r of a test"])).0, 0);
    _ = fs::remove_dir(rooms);
}
