//! The messages after a mistake of the user or a fault of the machine.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::place::{Place, install, told};

/// Asserts that the program fails with its own exit code, and that the message has all these texts.
fn refused(place: &Place, arguments: &[&str], expected: &[&str]) {
    let (code, text, trouble) = place.said(arguments);
    assert_eq!(code, 125, "{arguments:?}: {trouble}");
    assert_eq!(text, "", "{arguments:?}");
    for expected in expected {
        assert!(trouble.contains(expected), "{arguments:?}: {expected} is missing in: {trouble}");
    }
}

/// The program, run by a user that is not root. Root may write anywhere and has a default place.
pub(crate) fn unprivileged(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.grouplock(arguments);
    if nix::unistd::geteuid().is_root() {
        // All users can reach it there; 65534 is the user nobody on most systems.
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        let program = place.file("grouplock");
        install(env!("CARGO_BIN_EXE_grouplock").as_ref(), &program);
        command = Command::new(&program);
        command.args(arguments).uid(65534).gid(65534);
    }
    command
}

#[test]
fn wrong_arguments_are_named_with_what_was_expected() {
    let place = Place::new();
    refused(&place, &["run"], &["<ROOM>", "<SESSION>"]);
    refused(&place, &["run", "r"], &["<SESSION>"]);
    refused(&place, &["run", "r", "s"], &["COMMAND"]);
    refused(&place, &["run", "r", "s", "true"], &["'true'", "stands after `--`"]);
    refused(&place, &["run", "r", "s", "-c", "true", "--", "true"], &["--command", "COMMAND"]);
    refused(&place, &["run", "-n", "-w", "1", "r", "s", "--", "true"], &["--no-wait", "--timeout"]);
    refused(
        &place,
        &["run", "-w", "soon", "r", "s", "--", "true"],
        &["'soon'", "500ms, 2m, 1h or 2h30m"],
    );
    for (option, expected) in
        [("-w", "2h30m"), ("-d", "2h30m"), ("-E", "0..=255"), ("--at-most", "1..=4294967295")]
    {
        refused(&place, &["run", option, "-1", "r", "s", "--", "true"], &["-1", expected]);
    }
    refused(&place, &["run", "--at-most", "0", "r", "s", "--", "true"], &["0 is not in 1..="]);
    refused(&place, &["run", "-E", "256", "r", "s", "--", "true"], &["'256'", "0..=255"]);
    refused(&place, &["run", "-p", "high", "r", "s", "--", "true"], &["'high'"]);
    refused(
        &place,
        &["run", "--policy", "lifo", "r", "s", "--", "true"],
        &["`lifo`", "`fifo`, `batch:PASSES` or `priority:AGING`"],
    );
    refused(
        &place,
        &["run", "--on-loss", "cry", "r", "s", "--", "true"],
        &["'cry'", "term, kill, warn"],
    );
    refused(&place, &["run", "--colour", "r", "s", "--", "true"], &["--colour"]);
    refused(&place, &["top", "-i", "1ms"], &["'1ms'", "at least 50ms"]);
    assert!(!place.rooms().exists(), "nothing was made meanwhile");
}

#[test]
fn all_lengths_of_time_have_one_grammar() {
    let place = Place::new();
    for time in ["90", "1.5s", "2h30m", "1d12h", "100us"] {
        let policy = format!("--policy=priority:{time}");
        let room = format!("room {time}");
        for option in [&[&*policy][..], &["-w", time], &["-d", time]] {
            let run = [&["run"], option, &[&room, "s", "--", "true"]].concat();
            assert_eq!(place.said(&run).0, 0, "{option:?}");
        }
    }
    for time in ["2h30", "30m2h", "1e9", "5 s", "5x"] {
        for option in ["--timeout", "--duration"] {
            refused(&place, &["run", option, time, "r", "s", "--", "true"], &[time, "2h30m"]);
        }
        refused(&place, &["acquire", "--duration-limit", time, "r", "s"], &[time, "2h30m"]);
        refused(&place, &["top", "--interval", time], &[time, "2h30m"]);
    }
}

#[test]
fn bad_names_and_places_are_named() {
    let place = Place::new();
    refused(
        &place,
        &["run", "", "s", "--", "true"],
        &["`` cannot be the name of a room: it is empty"],
    );
    let long = "x".repeat(241);
    refused(&place, &["run", &long, "s", "--", "true"], &["241 bytes, at most 240"]);
    let long = "s".repeat(10_000);
    refused(&place, &["run", "r", &long, "--", "true"], &["has 10000 bytes; at most"]);
    refused(&place, &["run", "--at", "", "r", "s", "--", "true"], &["``", "expected a directory"]);
    refused(
        &place,
        &["run", "--at", "ftp://host:1", "r", "s", "--", "true"],
        &["`ftp://`", "it can use: directories"],
    );
    refused(
        &place,
        &["run", "--at", "etcd://host", "r", "s", "--", "true"],
        &["expected host:port after"],
    );
    let bytes = std::ffi::OsStr::from_bytes(b"/tmp/\xff");
    let (code, _, trouble) =
        told(place.grouplock(&["run", "r", "s", "--", "true"]).env("GROUPLOCK_AT", bytes));
    assert_eq!(code, 125, "{trouble}");
    assert!(trouble.contains("`/tmp/\u{fffd}`") && trouble.contains("UTF-8"), "{trouble}");
    let deep = place.file("missing/rooms");
    let deep = deep.to_str().expect("it is text");
    refused(
        &place,
        &["run", "--at", deep, "r", "s", "--", "true"],
        &[deep, "its parent does not exist"],
    );
    refused(&place, &["path", "--at", "etcd://host:1", "r"], &["`etcd://host:1`", "`acquire`"]);
    refused(&place, &["status", "nowhere"], &["there is no room `nowhere` in"]);
    refused(&place, &["remove", "nowhere"], &["there is no room `nowhere` in"]);
}

#[test]
fn quiet_hides_conflicts_only() {
    let place = Place::new();
    let _holder = place.occupy("r", "a");
    // The code of a conflict may be that of a failure.
    let quiet = |command: &[&str], options: &[&str]| {
        place.said(&[command, &["-q", "-E", "125"], options, &["r", "b"]].concat())
    };
    let run = &["run", "-c", "true"][..];
    for command in [run, &["enter", "--fd", "2"], &["acquire"]] {
        let (code, _, trouble) = quiet(command, &["--at", "ftp://host:1"]);
        assert_eq!(code, 125, "{command:?}");
        assert!(trouble.contains("ftp://"), "{command:?}: {trouble}");
    }
    for command in [run, &["acquire"]] {
        assert_eq!(quiet(command, &["-n"]), (125, String::new(), String::new()), "{command:?}");
    }
}

#[test]
fn a_room_keeps_its_policy() {
    let place = Place::new();
    assert_eq!(place.said(&["run", "--policy=batch:2", "r", "s", "--", "true"]).0, 0);
    assert_eq!(place.said(&["run", "r", "s", "--", "true"]).0, 0, "whatever it has");
    refused(
        &place,
        &["run", "--policy=fifo", "r", "s", "--", "true"],
        &["the room has the policy batch:2, not fifo"],
    );
}

#[test]
fn a_place_that_cannot_be_trusted_or_used_is_refused() {
    let place = Place::new();
    let open = place.file("open");
    fs::create_dir(&open).expect("it can be made");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("it is ours");
    let open = open.to_string_lossy().into_owned();
    refused(
        &place,
        &["run", "--at", &open, "r", "s", "--", "true"],
        &["rooms cannot live in", &open],
    );
    let file = place.file("file");
    fs::write(&file, "").expect("it can be written");
    let file = file.to_string_lossy().into_owned();
    refused(&place, &["run", "--at", &file, "r", "s", "--", "true"], &[&file]);
    refused(&place, &["run", "--at", "/proc/rooms", "r", "s", "--", "true"], &["/proc"]);
    let link = place.file("link");
    fs::create_dir(place.file("target")).expect("it can be made");
    symlink(place.file("target"), &link).expect("it can be made");
    let link = link.to_string_lossy().into_owned();
    refused(
        &place,
        &["run", "--at", &link, "r", "s", "--", "true"],
        &["rooms cannot live in", &link],
    );
}

#[test]
fn an_unwritable_place_is_named() {
    let place = Place::new();
    let closed = place.file("closed");
    fs::create_dir(&closed).expect("it can be made");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).expect("it is ours");
    let inside = closed.join("rooms").to_string_lossy().into_owned();
    let arguments = ["run", "--at", &inside, "r", "s", "--", "true"];
    let (code, _, trouble) = told(&mut unprivileged(&place, &arguments));
    assert_eq!(code, 125, "{trouble}");
    assert!(trouble.contains("no permission to"), "{trouble}");
    assert!(trouble.contains(&*closed.to_string_lossy()), "{trouble}");
}

#[test]
fn what_is_no_room_is_left_alone() {
    let place = Place::new();
    assert_eq!(place.said(&["run", "r", "s", "--", "true"]).0, 0);
    let file = fs::read_dir(place.rooms()).expect("it is there").flatten().next();
    let file = file.expect("the room has a file").path();
    let good = fs::read(&file).expect("it can be read");

    let letter = "Dear John, this is a letter.\n".repeat(1000);
    fs::write(&file, &letter).expect("it can be written");
    refused(&place, &["run", "r", "s", "--", "true"], &["is not a room", "it was left untouched"]);
    refused(&place, &["status", "r"], &["is not a room"]);
    refused(&place, &["remove", "r"], &["is not a room"]);
    assert_eq!(fs::read_to_string(&file).expect("it is there"), letter);

    // All overviews continue without it, and say so.
    assert_eq!(place.said(&["run", "other", "s", "--", "true"]).0, 0);
    let (code, text, trouble) = place.said(&["status"]);
    assert_eq!(code, 125);
    assert!(text.contains("other  policy") && trouble.contains("grouplock: r: "), "{trouble}");

    fs::write(&file, &good[..good.len() / 2]).expect("it can be written");
    let (code, _, trouble) = place.said(&["run", "r", "s", "--", "true"]);
    assert_eq!(code, 125, "half a room: {trouble}");

    fs::remove_file(&file).expect("it can be removed");
    symlink("/etc/passwd", &file).expect("it can be made");
    refused(&place, &["run", "r", "s", "--", "true"], &["is not used as a room"]);
}
