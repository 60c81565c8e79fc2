//! The owners of rooms, and the users that may enter them. Most tests need root, which can become
//! any user.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use grouplock_room::{Place, Room};
use grouplock_testing::{current_test, skip};
use nix::unistd::{Gid, Uid, geteuid, setgid, setgroups, setuid};

use crate::process::{self, Actor, Scratch};

/// A user and a group that no other test uses: the pid of this process, plus a large number.
fn nobody_else() -> u32 {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    // Relaxed: it only matters that each number is used once.
    let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    1_000_000_000 + std::process::id() * 16 + next
}

fn is_root() -> bool {
    let root = geteuid().is_root();
    if !root {
        skip(&current_test(), "only root can become another user");
    }
    root
}

/// Not a test: a process of another user that does something.
#[test]
fn somebody() {
    let Some(role) = process::role() else { return };
    let (uid, gid) = (role[0].parse().expect("a number"), role[1].parse().expect("a number"));
    setgroups(&[]).expect("this was root");
    setgid(Gid::from_raw(gid)).expect("this was root");
    setuid(Uid::from_raw(uid)).expect("this was root");
    let place = match role[2].as_str() {
        "" => Place::local().expect("everybody has one"),
        path => path.parse().expect("it is one"),
    };
    let entered = Room::open(&place, "room").and_then(|room| room.enter("s")?.leave());
    process::say(&match entered {
        Ok(()) => format!("entered in {place}"),
        Err(error) => error.to_string(),
    });
}

/// The output of a user's process that enters a room in that place, or in its default place.
fn enters(uid: u32, gid: u32, place: &str) -> String {
    let (uid, gid) = (uid.to_string(), gid.to_string());
    let actor = Actor::start("whose::somebody", &[&uid, &gid, place]);
    actor.hear().expect("it says something")
}

fn directory(place: &Place) -> PathBuf {
    match place {
        Place::Directory(path) => path.clone(),
        other => panic!("{other} is no directory"),
    }
}

/// Removes a directory when it is dropped.
struct Gone<'a>(&'a Path);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(self.0);
    }
}

#[test]
fn a_user_has_a_place_that_no_variable_changes() {
    if !is_root() {
        return;
    }
    assert_eq!(Place::local().expect("root has one"), Place::system());
    let user = nobody_else();
    let path = directory(&Place::of_user(user));
    let _gone = Gone(&path);
    let expected = format!("entered in {}", path.display());
    assert_eq!(enters(user, user, ""), expected);
    let facts = fs::metadata(&path).expect("it was made");
    assert_eq!((facts.uid(), facts.mode() & 0o7777), (user, 0o700));
    // As from cron: the environment has no variables of a login.
    let actor = Actor::start_by(
        "whose::somebody",
        &[&user.to_string(), &user.to_string(), ""],
        |program| {
            program.env_clear();
        },
    );
    assert_eq!(actor.hear(), Some(expected));
}

#[test]
fn a_directory_that_somebody_else_made_in_a_users_place_is_refused() {
    if !is_root() {
        return;
    }
    let (user, enemy) = (nobody_else(), nobody_else());
    let path = directory(&Place::of_user(user));
    let _gone = Gone(&path);
    fs::create_dir(&path).expect("it can be made");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o1777)).expect("it is ours");
    chown(&path, Some(enemy), Some(enemy)).expect("this is root");
    let said = enters(user, user, "");
    assert!(said.contains(&format!("it belongs to user {enemy}")), "{said}");
}

#[test]
fn what_root_makes_in_a_users_place_is_the_users() {
    if !is_root() {
        return;
    }
    let user = nobody_else();
    let path = directory(&Place::of_user(user));
    let _gone = Gone(&path);
    Room::open(path.as_path(), "room")
        .expect("root can")
        .enter("s")
        .expect("it is empty")
        .leave()
        .expect("it is ours");
    assert_eq!(fs::metadata(&path).expect("it was made").uid(), user);
    assert_eq!(enters(user, user, ""), format!("entered in {}", path.display()));

    // The same holds for any directory of a user, and next to it.
    let scratch = Scratch::new();
    chown(scratch.path(), Some(user), Some(user)).expect("this is root");
    let below = scratch.path().join("rooms");
    drop(Room::open(below.as_path(), "room").expect("root can"));
    let said = enters(user, user, &below.display().to_string());
    assert_eq!(said, format!("entered in {}", below.display()));
}

#[test]
fn the_rooms_of_a_group_are_for_its_members() {
    if !is_root() {
        return;
    }
    let (group, one, other) = (nobody_else(), nobody_else(), nobody_else());
    let path = directory(&Place::of_group(group));
    let _gone = Gone(&path);
    let text = path.display().to_string();
    // The first user of the group makes the place.
    for member in [one, other] {
        assert_eq!(enters(member, group, &text), format!("entered in {text}"));
    }
    let facts = fs::metadata(&path).expect("it was made");
    assert_eq!((facts.gid(), facts.mode() & 0o7777), (group, 0o2770));
    let stranger = nobody_else();
    let said = enters(stranger, stranger, &text);
    assert!(said.contains("no permission to open"), "{said}");
    // Another user can make the directory first, but cannot give it to the group.
    fs::remove_dir_all(&path).expect("it is there");
    fs::create_dir(&path).expect("it can be made");
    chown(&path, Some(stranger), Some(stranger)).expect("this is root");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o2777)).expect("this is root");
    let said = enters(one, group, &text);
    assert!(said.contains("but it belongs to") || said.contains("every user may rename"), "{said}");
}

#[test]
fn rooms_in_a_directory_of_a_group_are_the_groups() {
    if !is_root() {
        return;
    }
    let (group, one, other) = (nobody_else(), nobody_else(), nobody_else());
    let scratch = Scratch::new();
    chown(scratch.path(), None, Some(group)).expect("this is root");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o2770)).expect("this is root");
    for member in [one, other] {
        assert_eq!(enters(member, group, scratch.text()), format!("entered in {}", scratch.text()));
    }
    // As in /run/grouplock, including rooms of root.
    fs::remove_file(scratch.path().join("room.room")).expect("it is there");
    drop(Room::open(scratch.path(), "room").expect("root can"));
    assert_eq!(enters(other, group, scratch.text()), format!("entered in {}", scratch.text()));
}
