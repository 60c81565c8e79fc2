//! `grouplock enter --fd` and `grouplock leave --fd`: a place that a descriptor of the script keeps.
//!
//! This process enters the room as `run` does, and then hands its place to the open file behind the descriptor. It ends, and
//! the place lasts until the script and all children that have inherited the descriptor have closed it.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use grouplock_room::{Patience, Place, Room, RoomError, RoomName, RoomOptions};
use nix::fcntl::{FcntlArg, fcntl};
use nix::unistd::getppid;

use crate::caller::{Caller, caller};
use crate::exit::{self, Ending, complain};
use crate::outer::{self, Outer};
use crate::place::{At, places};
use crate::plain::print;
use crate::run::{Audible, Entrance, Teller, at, variables};
use crate::signals::Signals;
use crate::waiting::{self, Ended, WaitError};

/// Enters a room and lets an open descriptor of the script keep the place.
#[derive(Debug, Args)]
pub(crate) struct EnterArguments {
    #[command(flatten)]
    entrance: Entrance,
    /// The descriptor, opened before with `exec 9<>"$(grouplock path ROOM)"`. The place lasts until it is closed everywhere.
    #[arg(long, value_name = "NUMBER")]
    fd: i32,
    /// Print the variables that the command of `run` finds in its environment, for `eval`.
    #[arg(long)]
    export: bool,
}

/// Leaves the place that a descriptor keeps.
#[derive(Debug, Args)]
pub(crate) struct LeaveArguments {
    /// The descriptor.
    #[arg(long, value_name = "NUMBER")]
    fd: i32,
    /// What those who died inside before left behind is repaired: nobody is told of them any more.
    #[arg(long)]
    repaired: bool,
}

/// Prints the file of a room, and makes the room if there is none.
#[derive(Debug, Args)]
pub(crate) struct PathArguments {
    /// The room.
    room: String,
    #[command(flatten)]
    at: At,
}

#[derive(Debug, thiserror::Error)]
enum EnterError {
    #[error(
        "--fd {0}: no such descriptor is open; `exec {0}<>\"$(grouplock path ROOM)\"` opens it"
    )]
    NotOpen(i32),
    #[error(
        "--fd {number}: it is open on {path}, which is no room; `exec {number}<>\"$(grouplock path ROOM)\"` opens one"
    )]
    NoRoom { number: i32, path: String },
    #[error(
        "--fd {number}: it is open on {path} and not on the room's file; `exec {number}<>\"$(grouplock path '{room}')\"` opens that"
    )]
    AnotherFile { number: i32, path: String, room: String },
    #[error(
        "--fd {number}: the file that it is open on, {path}, was emptied, as `{number}>` does, or removed; `exec {number}<>…` opens the \
         room anew"
    )]
    Gone { number: i32, path: String },
    #[error(
        "--fd {number}: it keeps a place in this room already, in the session `{session}`; `grouplock leave --fd {number}` gives that back"
    )]
    Inside { number: i32, session: String },
    #[error(
        "--fd {0}: it keeps no place that `grouplock enter` has given it: that was left before, or lost"
    )]
    NotInside(i32),
    #[error(transparent)]
    Wait(#[from] WaitError),
    #[error(transparent)]
    Itself(#[from] crate::outer::WaitsForItself),
}

impl From<RoomError> for EnterError {
    fn from(error: RoomError) -> Self {
        EnterError::Wait(error.into())
    }
}

pub(crate) fn path(arguments: &PathArguments) -> ExitCode {
    let opened = arguments.at.place().and_then(|place| {
        on_this_machine(&place)?;
        places().open(&place, &arguments.room, &RoomOptions::new())
    });
    match opened {
        Ok(room) => print(&format!("{}\n", room.file().unwrap_or(Path::new("")).display())),
        Err(error) => exit::failed(error),
    }
}

pub(crate) fn enter(arguments: &EnterArguments) -> ExitCode {
    let entrance = &arguments.entrance;
    match try_enter(arguments) {
        Ok(Ok(exports)) => print(&exports),
        Ok(Err(ending)) => ending.follow(),
        Err(error) => {
            let (code, message) = match &error {
                EnterError::Wait(wait) => {
                    let conflict = matches!(wait, WaitError::Room(error) if error.is_conflict());
                    let code = if conflict { entrance.conflict_exit_code } else { exit::FAILED };
                    (code, entrance.told(wait))
                }
                error => (exit::FAILED, error.to_string()),
            };
            if !(entrance.quiet && code == entrance.conflict_exit_code) {
                complain(message);
            }
            if arguments.export {
                // For those who give it to `eval` without looking at our exit code.
                print(&format!("(exit {code})\n"));
            }
            ExitCode::from(code)
        }
    }
}

/// What is to be printed once inside, or the signal that ended the wait.
fn try_enter(arguments: &EnterArguments) -> Result<Result<String, Ending>, EnterError> {
    let (entrance, number) = (&arguments.entrance, arguments.fd);
    let descriptor = descriptor(number)?;
    // Without one, that is our parent.
    let (pid, command) = caller().map_or_else(
        || (getppid(), "grouplock enter".to_owned()),
        |Caller { pid, command, .. }| (pid, command),
    );
    let mut wish = entrance.wish(&command)?;
    on_this_machine(&wish.place)?;
    let room = places().open(&wish.place, &wish.room, &wish.options);
    let room = room.map_err(|error| gone(number, error))?;
    // Now, and not after the wait.
    let kept = room.kept_by(descriptor).map_err(|error| match error {
        RoomError::BadOption { .. } if file_of(number) != room.file().map(Path::to_owned) => {
            let path = shown(number);
            if facts_of(number).is_some_and(|file| file.nlink() == 0) {
                EnterError::Gone { number, path }
            } else {
                EnterError::AnotherFile { number, path, room: wish.room.clone() }
            }
        }
        error => error.into(),
    })?;
    if let Some(kept) = kept {
        return Err(EnterError::Inside { number, session: kept.session });
    }
    drop(room);
    if Outer::around(&wish)?.is_some() {
        // Whoever waits in front of us waits for the outer run to end, and that waits for us.
        wish.patience = Patience::None;
    }
    let signals = Signals::take().map_err(WaitError::from)?;
    let mut teller = Teller::new(&wish.room, &wish.session, entrance.loudness(false));
    let mut audience = Audible { teller: &mut teller, events: None, wish: &wish, told: None };
    let guard = match waiting::enter(&wish, &signals, None, &mut audience)? {
        Ended::Inside(guard) => guard,
        Ended::Signalled(signal) => return Ok(Err(Ending::Signal(signal as i32))),
        Ended::HungUp => return Ok(Err(Ending::Code(exit::FAILED))),
    };
    let (epoch, recovered) = (guard.epoch(), guard.recovered());
    let holder = guard.keep_by(descriptor, pid.as_raw().unsigned_abs())?;
    teller.entered(epoch, holder.as_str(), recovered.clone());
    if !arguments.export {
        return Ok(Ok(String::new()));
    }
    let others = std::env::var(outer::VARIABLE).ok();
    let held = Outer::variable(others.as_deref(), &wish, epoch, holder.as_str());
    let mut variables = variables(&wish, epoch, holder.as_str(), recovered);
    variables.extend([(outer::VARIABLE, Some(held)), ("GROUPLOCK_AT", Some(at(&wish)))]);
    let line = |(name, value): (&str, Option<String>)| match value {
        Some(value) => format!("export {name}='{}'\n", value.replace('\'', "'\\''")),
        None => format!("unset {name}\n"),
    };
    Ok(Ok(variables.into_iter().map(line).collect()))
}

pub(crate) fn leave(arguments: &LeaveArguments) -> ExitCode {
    told(room_of(arguments.fd).and_then(|(room, descriptor)| {
        if room.leave_kept(descriptor, arguments.repaired)? {
            Ok(())
        } else {
            Err(EnterError::NotInside(arguments.fd))
        }
    }))
}

/// `grouplock held --fd`.
pub(crate) fn held(number: i32) -> ExitCode {
    told(room_of(number).and_then(|(room, descriptor)| {
        room.kept_by(descriptor)?.map(drop).ok_or(EnterError::NotInside(number))
    }))
}

fn told(result: Result<(), EnterError>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    complain(&error);
    let lost = match &error {
        EnterError::NotInside(_) | EnterError::Gone { .. } => true,
        // The room is not there any more, and with it the place.
        EnterError::Wait(WaitError::Room(error)) => {
            matches!(error, RoomError::NoSuchRoom { .. } | RoomError::Removed { .. })
        }
        _ => false,
    };
    ExitCode::from(if lost { exit::LOST } else { exit::FAILED })
}

/// The descriptor of our caller, if it is open.
fn descriptor(number: i32) -> Result<BorrowedFd<'static>, EnterError> {
    if number < 0 {
        return Err(EnterError::NotOpen(number));
    }
    // SAFETY: it is only asked for its flags before it is known to be open. Nothing of ours was opened before, so it is the
    // caller's or closed; what is the caller's stays open for as long as we run.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl(descriptor, FcntlArg::F_GETFD).map_err(|_| EnterError::NotOpen(number))?;
    Ok(descriptor)
}

/// The file behind a descriptor.
fn file_of(number: i32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{number}")).ok()
}

fn shown(number: i32) -> String {
    file_of(number).map_or_else(|| "another file".to_owned(), |path| path.display().to_string())
}

/// The room on whose file a descriptor is open.
fn room_of(number: i32) -> Result<(Room, BorrowedFd<'static>), EnterError> {
    let descriptor = descriptor(number)?;
    if facts_of(number).is_some_and(|file| file.nlink() == 0) {
        // There may be another room of that name by now.
        return Err(EnterError::Gone { number, path: shown(number) });
    }
    let file = file_of(number);
    let parts = file.as_deref().and_then(|file| {
        let name = file.file_name().and_then(OsStr::to_str)?.strip_suffix(".room")?;
        Some((file.parent()?.to_owned(), RoomName::decode(name)?))
    });
    let Some((directory, name)) = parts else {
        return Err(EnterError::NoRoom { number, path: shown(number) });
    };
    let place = Place::from(directory);
    let room = places().open(&place, name.as_str(), &RoomOptions::new().existing(true));
    Ok((room.map_err(|error| gone(number, error))?, descriptor))
}

/// An error of opening a room, with its reason if the descriptor is the reason.
fn gone(number: i32, error: RoomError) -> EnterError {
    let empty = facts_of(number).is_some_and(|file| file.len() == 0);
    match error {
        RoomError::Foreign { path, .. } if empty && file_of(number).as_ref() == Some(&path) => {
            EnterError::Gone { number, path: path.display().to_string() }
        }
        error => error.into(),
    }
}

fn facts_of(number: i32) -> Option<std::fs::Metadata> {
    std::fs::metadata(format!("/proc/self/fd/{number}")).ok()
}

/// An error at once for rooms on servers, which no descriptor can keep.
fn on_this_machine(place: &Place) -> Result<(), RoomError> {
    match place {
        Place::Servers { scheme, .. } => Err(RoomError::BadPlace {
            place: format!("{scheme}://…"),
            reason: "a descriptor keeps rooms in a directory only; use `grouplock run` or `acquire` for rooms on servers",
        }),
        _ => Ok(()),
    }
}
