//! `grouplock doctor`: checks whether rooms work here, and says what to do if not.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Args;
use grouplock_room::myself::host;
use grouplock_room::{
    Participant, Place, Places, Room, RoomError, RoomName, RoomOptions, Snapshot,
};
use nix::unistd::getpid;

use crate::output::{print, sanitized, since};
use crate::place::{At, of_sudo_user, places};
use crate::system::proc::{Stat, processes};
use crate::system::process::ProcessHandle;

/// Checks the place where rooms live. Exits with 1 if something is wrong.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    at: At,
}

/// Exit code if something is wrong.
const WRONG: u8 = 1;

/// A room without entries for this long may be forgotten.
const FORGOTTEN: Duration = Duration::from_secs(30 * 86_400);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Severity {
    Good,
    Note,
    Wrong,
}

struct Finding {
    severity: Severity,
    what: String,
    /// What to do.
    advice: Option<String>,
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn good(&mut self, what: impl Into<String>) {
        self.0.push(Finding { severity: Severity::Good, what: what.into(), advice: None });
    }

    fn note(&mut self, what: impl Into<String>, advice: impl Into<String>) {
        let advice = Some(advice.into());
        self.0.push(Finding { severity: Severity::Note, what: what.into(), advice });
    }

    fn wrong(&mut self, what: impl Into<String>, advice: impl Into<String>) {
        let advice = Some(advice.into());
        self.0.push(Finding { severity: Severity::Wrong, what: what.into(), advice });
    }
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let mut findings = Findings::default();
    match arguments.at.place() {
        Ok(place) => {
            findings.good(format!("rooms live in {place}{}", whose(&place)));
            other_places(&place, &mut findings);
            examine(&place, &mut findings);
        }
        Err(error) => findings.wrong(error.to_string(), advice(&error)),
    }
    let (mut wrong, mut text) = (0, String::new());
    for Finding { severity, what, advice } in &findings.0 {
        let mark = match severity {
            Severity::Good => "ok   ",
            Severity::Note => "note ",
            Severity::Wrong => "WRONG",
        };
        wrong += usize::from(*severity == Severity::Wrong);
        _ = writeln!(text, "{mark} {}", sanitized(what));
        if let Some(advice) = advice {
            _ = writeln!(text, "      → {}", sanitized(advice));
        }
    }
    if wrong == 0 {
        return print(&text);
    }
    _ = writeln!(text, "{wrong} {} wrong", if wrong == 1 { "thing is" } else { "things are" });
    print(&text);
    ExitCode::from(WRONG)
}

/// Whose rooms they are, if it is one of the default places.
fn whose(place: &Place) -> &'static str {
    match Place::local() {
        _ if *place == Place::system() => ", those of the whole machine",
        Ok(local) if *place == local => ", those of this user",
        _ => "",
    }
}

/// Reports rooms in other places that the user may be looking for.
fn other_places(place: &Place, findings: &mut Findings) {
    let others = [Place::local().ok(), Some(Place::system()), of_sudo_user()];
    let mut seen = vec![place.clone()];
    for other in others.into_iter().flatten() {
        let count = Places::new().list(&other).map_or(0, |rooms| rooms.len());
        if count > 0 && !seen.contains(&other) {
            findings.note(
                format!("there are rooms elsewhere: {count} in {other}"),
                format!("to use them: --at {other}"),
            );
            seen.push(other);
        }
    }
}

fn examine(place: &Place, findings: &mut Findings) {
    system(findings);
    let listed = places().list(place);
    if let Place::Directory(path) = place {
        directory(path, findings);
        try_out(place, path, findings);
    } else if listed.is_ok() {
        findings.good("the servers answer");
    }
    match listed {
        Ok(names) => names.iter().for_each(|name| room(place, name, findings)),
        Err(error) => {
            findings.wrong(format!("the rooms cannot be listed: {error}"), advice(&error));
        }
    }
}

/// Checks what `run` and `acquire` need in addition to rooms.
fn system(findings: &mut Findings) {
    match ProcessHandle::open(getpid()) {
        Ok(_) => findings.good("the kernel has handles to processes"),
        Err(errno) => findings.wrong(
            format!("the kernel gives no handles to processes: {errno}"),
            "Linux 5.3 or later is needed, and pidfd_open(2) must not be filtered",
        ),
    }
    if Path::new("/proc/self/stat").exists() {
        findings.good("/proc is mounted");
    } else {
        findings.wrong(
            "/proc is not mounted",
            "mount it; without it, grouplock cannot find the descendants of a command",
        );
    }
}

fn directory(path: &Path, findings: &mut Findings) {
    match fs::symlink_metadata(path) {
        Ok(about) => findings.good(format!(
            "the directory exists, owner {}, mode {:04o}",
            about.uid(),
            about.mode() & 0o7777
        )),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            findings.good("the directory does not exist yet; it is created when needed");
        }
        Err(error) => findings.wrong(
            format!("the directory cannot be read: {error}"),
            "make it readable for this user, or choose another with --at or GROUPLOCK_AT",
        ),
    }
    let strangers = fs::read_dir(path).into_iter().flatten().flatten().filter(|entry| {
        let name = entry.file_name();
        let room = name.to_str().and_then(|name| name.strip_suffix(".room"));
        room.and_then(RoomName::decode).is_none()
    });
    let names: Vec<String> =
        strangers.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    if !names.is_empty() {
        findings.note(
            format!("files that are not rooms: {}", names.join(", ")),
            "they do no harm; keep other files elsewhere",
        );
    }
}

/// Creates a room, enters it, leaves it and removes it.
fn try_out(place: &Place, path: &Path, findings: &mut Findings) {
    let was_there = path.exists();
    let name = format!("doctor {}", std::process::id());
    let tried = places()
        .open(place, &name, &RoomOptions::new())
        .and_then(|room| room.try_enter("examination").and_then(grouplock_room::Guard::leave));
    // Remove it even if it could not be entered.
    let removed = Room::remove(place, &name);
    match tried.and(removed) {
        Ok(()) => findings.good("a room was created, entered, left and removed"),
        Err(error) => findings.wrong(error.to_string(), advice(&error)),
    }
    if !was_there {
        // Only if it is empty, and did not exist before.
        _ = fs::remove_dir(path);
    }
}

fn room(place: &Place, name: &RoomName, findings: &mut Findings) {
    let options = RoomOptions::new().look_only();
    let looked = places()
        .open(place, name.as_str(), &options)
        .and_then(|room| Ok((room.snapshot()?, room.file().map(Path::to_owned))));
    match looked {
        Ok((room, file)) => occupants(&room, file.as_deref(), findings),
        Err(RoomError::NoSuchRoom { .. } | RoomError::Removed { .. }) => {}
        Err(error) => findings.wrong(format!("room `{name}`: {error}"), advice(&error)),
    }
}

fn occupants(room: &Snapshot, file: Option<&Path>, findings: &mut Findings) {
    let name = &room.room;
    let waiters = room.waiters();
    let mut fine = true;
    for member in room.inside.iter().flat_map(|phase| &phase.members) {
        let stopped = if waiters > 0 { stopped(member) } else { Vec::new() };
        for (pid, what) in stopped {
            fine = false;
            findings.wrong(
                format!("room `{name}`: {what} is stopped inside, and {waiters} wait"),
                format!("continue it with `kill -CONT {pid}` or end it with `kill -KILL {pid}`"),
            );
        }
        if let Some(others) = left_behind(member, file) {
            fine = false;
            findings.note(
                format!(
                    "room `{name}`: process {} has ended, but {others} still has it open",
                    member.pid
                ),
                "the holding lasts until all of them have ended or closed the descriptor",
            );
        }
        let stays = room.taken.duration_since(member.since).unwrap_or_default();
        if waiters > 0 && member.expected.is_some_and(|expected| stays > expected * 3) {
            fine = false;
            let so_far = since(member.since, room.taken);
            findings.note(
                format!("room `{name}`: process {} has been inside for {so_far}, three times as long as it expected", member.pid),
                "check whether it still makes progress",
            );
        }
    }
    let last = room.recent.iter().map(|phase| phase.ended).max();
    let idle = last.and_then(|last| SystemTime::now().duration_since(last).ok());
    if room.holders() + waiters == 0 && idle.is_some_and(|idle| idle > FORGOTTEN) {
        findings.note(
            format!("room `{name}`: nobody has entered it for more than a month"),
            format!("if it is not needed: `grouplock remove '{name}'`"),
        );
    } else if fine {
        let holders = room.holders();
        findings.good(format!("room `{name}`: {holders} inside, {waiters} waiting"));
    }
}

/// The stopped processes of a holder on this machine: itself, or its command.
fn stopped(member: &Participant) -> Vec<(i32, String)> {
    let Ok(holder) = i32::try_from(member.pid) else { return Vec::new() };
    if member.host != host() {
        return Vec::new();
    }
    if is_stopped(holder) {
        return vec![(holder, format!("process {holder}"))];
    }
    let children = processes().into_iter().filter(|(_, parent)| *parent == holder);
    let stopped = children.filter(|(pid, _)| is_stopped(*pid));
    stopped.map(|(pid, _)| (pid, format!("process {pid}, the command of {holder},"))).collect()
}

/// The processes that keep the holding of a process on this machine that has ended.
fn left_behind(member: &Participant, file: Option<&Path>) -> Option<String> {
    let file = file?;
    if member.host != host() || Path::new("/proc").join(member.pid.to_string()).exists() {
        return None;
    }
    let has_open = |pid: &i32| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        descriptors.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|open| open == file)
    };
    let users = processes().into_iter().map(|(pid, _)| pid).filter(has_open);
    let users: Vec<String> = users.map(|pid| format!("process {pid}")).collect();
    (!users.is_empty()).then(|| users.join(", "))
}

fn is_stopped(pid: i32) -> bool {
    Stat::of(pid).is_some_and(|stat| stat.is_stopped())
}

/// What to do about an error.
fn advice(error: &RoomError) -> &'static str {
    match error {
        RoomError::BadPlace { .. } | RoomError::NoBackend { .. } => {
            "correct --at or GROUPLOCK_AT: a directory of this machine works without any server"
        }
        RoomError::UnsafeDirectory { .. } => {
            "use a directory that only you can write to: mkdir -p -m 700 DIR, then --at DIR"
        }
        RoomError::UnsafeFile { .. } | RoomError::Foreign { .. } => {
            "check the file; if nobody needs it, remove it by hand"
        }
        RoomError::NetworkFileSystem { .. } => "use a directory on a local disk or in /run",
        RoomError::Permission { .. } => {
            "use a directory of your own, or that of a group: --group NAME"
        }
        RoomError::ReadOnly { .. } => "use a directory on a file system that can be written",
        RoomError::NoSpace { .. } => "free space on the file system, or use another directory",
        RoomError::Version { .. } => {
            "end the programs that use the room, then remove its file, or use their version"
        }
        RoomError::Corrupt { .. } => {
            "end the programs that use the room, then remove its file; the next entry creates the room again"
        }
        RoomError::Stalled { .. } => "continue the process that is stopped, or end it",
        RoomError::Unreachable { .. } => "check that the servers run and can be reached from here",
        _ => "see docs/cli.md",
    }
}
