//! `grouplock enter --fd` and `grouplock leave --fd`: a descriptor of the script keeps the holding.
//!
//! This process enters the room as `run` does. Then it moves its holding to the open file of the
//! descriptor, and ends. The holding lasts until the script and all children with the descriptor
//! have closed it.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use grouplock_room::{Patience, Place, Room, RoomError, RoomName, RoomOptions};
use nix::unistd::getppid;

use super::caller::{Caller, caller};
use crate::entering::nested::{self, OuterHolding};
use crate::entering::variables::{self, variables};
use crate::entering::{Entered, Entering, Entrance, StderrReport, WaitError, WaitReport};
use crate::exit::{self, Ending, complain};
use crate::output::print;
use crate::place::{At, places};
use crate::system::descriptors::inherited;
use crate::system::signals::Signals;

/// Enters a room. An open descriptor of the script keeps the holding.
#[derive(Debug, Args)]
pub(crate) struct EnterArguments {
    #[command(flatten)]
    entrance: Entrance,
    /// The descriptor. Open it before with `exec 9<>"$(grouplock path ROOM)"`. The holding lasts
    /// until every process has closed it.
    #[arg(long, value_name = "NUMBER")]
    fd: i32,
    /// Print the environment variables of `run`, for `eval`.
    #[arg(long)]
    export: bool,
}

/// Leaves the holding that a descriptor keeps.
#[derive(Debug, Args)]
pub(crate) struct LeaveArguments {
    /// The descriptor.
    #[arg(long, value_name = "NUMBER")]
    fd: i32,
    /// Acknowledge the deaths that were reported to this holding. They are not reported again.
    #[arg(long)]
    repaired: bool,
}

/// The options of `path`.
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
        "--fd {number}: it is open on {path}, which is not a room; `exec {number}<>\"$(grouplock path ROOM)\"` opens one"
    )]
    NoRoom { number: i32, path: String },
    #[error(
        "--fd {number}: it is open on {path} and not on the room's file; `exec {number}<>\"$(grouplock path '{room}')\"` opens that"
    )]
    AnotherFile { number: i32, path: String, room: String },
    #[error(
        "--fd {number}: its file, {path}, was emptied (as `{number}>` does) or removed; `exec {number}<>…` opens the \
         room again"
    )]
    Gone { number: i32, path: String },
    #[error(
        "--fd {number}: it already keeps a holding in this room, in the session `{session}`; `grouplock leave --fd {number}` leaves it"
    )]
    Inside { number: i32, session: String },
    #[error("--fd {0}: it keeps no holding of `grouplock enter`: that was left before, or lost")]
    NotInside(i32),
    #[error(transparent)]
    Wait(#[from] WaitError),
    #[error(transparent)]
    Itself(#[from] nested::WaitsForItself),
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
        Ok(ControlFlow::Continue(exports)) => print(&exports),
        Ok(ControlFlow::Break(ending)) => ending.follow(),
        Err(error) => {
            let (code, message) = match &error {
                EnterError::Wait(error) => entrance.failure(error),
                error => (exit::FAILED, error.to_string()),
            };
            if !matches!(&error, EnterError::Wait(error) if entrance.is_silent_about(error)) {
                complain(message);
            }
            if arguments.export {
                // For scripts that use `eval` without checking our exit code.
                print(&format!("(exit {code})\n"));
            }
            ExitCode::from(code)
        }
    }
}

/// The text to print after the entry, or the ending if a signal ended the wait.
fn try_enter(arguments: &EnterArguments) -> Result<ControlFlow<Ending, String>, EnterError> {
    let (entrance, number) = (&arguments.entrance, arguments.fd);
    let descriptor = descriptor(number)?;
    // If the caller is unknown, take our parent.
    let (pid, command) = caller().map_or_else(
        || (getppid(), "grouplock enter".to_owned()),
        |Caller { pid, command, .. }| (pid, command),
    );
    let mut request = entrance.request(&command)?;
    on_this_machine(&request.place)?;
    let room = places().open(&request.place, &request.room, &request.options);
    let room = room.map_err(|error| gone(number, error))?;
    // Check it before the wait.
    let kept = room.kept_by(descriptor).map_err(|error| match error {
        RoomError::BadOption { .. } if file_of(number) != room.file().map(Path::to_owned) => {
            let path = shown(number);
            if facts_of(number).is_some_and(|file| file.nlink() == 0) {
                EnterError::Gone { number, path }
            } else {
                EnterError::AnotherFile { number, path, room: request.room.clone() }
            }
        }
        error => error.into(),
    })?;
    if let Some(kept) = kept {
        return Err(EnterError::Inside { number, session: kept.session });
    }
    drop(room);
    if OuterHolding::around(&request)?.is_some() {
        // The requests in front of us wait until the outer run ends, and the outer run waits for
        // us.
        request.patience = Patience::None;
    }
    let signals = Signals::take().map_err(WaitError::from)?;
    let mut report = StderrReport::new(&request.room, &request.session, entrance.verbosity(false));
    let wait_report = WaitReport::new(&mut report, None, &request);
    let entering =
        Entering { request: &request, signals: &signals, caller: None, report: wait_report };
    let guard = match entering.enter()? {
        Entered::Continue(guard) => guard,
        Entered::Break(signal) => {
            return Ok(ControlFlow::Break(Ending::Signal(signal as i32)));
        }
    };
    let (epoch, recovered) = (guard.epoch(), guard.recovered());
    let holder = guard.keep_by(descriptor, pid.as_raw().unsigned_abs())?;
    report.entered(epoch, holder.as_str(), recovered.clone());
    if !arguments.export {
        return Ok(ControlFlow::Continue(String::new()));
    }
    let others = std::env::var(nested::VARIABLE).ok();
    let held = OuterHolding::variable(others.as_deref(), &request, epoch, holder.as_str());
    let mut variables = variables(&request, epoch, holder.as_str(), recovered);
    variables
        .extend([(nested::VARIABLE, Some(held)), (variables::AT, Some(request.place.to_string()))]);
    let line = |(name, value): (&str, Option<String>)| match value {
        Some(value) => format!("export {name}='{}'\n", value.replace('\'', "'\\''")),
        None => format!("unset {name}\n"),
    };
    Ok(ControlFlow::Continue(variables.into_iter().map(line).collect()))
}

pub(crate) fn leave(arguments: &LeaveArguments) -> ExitCode {
    code_of(room_of(arguments.fd).and_then(|(room, descriptor)| {
        if room.leave_kept(descriptor, arguments.repaired)? {
            Ok(())
        } else {
            Err(EnterError::NotInside(arguments.fd))
        }
    }))
}

/// `grouplock held --fd`.
pub(crate) fn held(number: i32) -> ExitCode {
    code_of(room_of(number).and_then(|(room, descriptor)| {
        room.kept_by(descriptor)?.map(drop).ok_or(EnterError::NotInside(number))
    }))
}

fn code_of(result: Result<(), EnterError>) -> ExitCode {
    exit::code_of(result, |error| match error {
        EnterError::NotInside(_) | EnterError::Gone { .. } => true,
        // The room was removed, and the holding with it.
        EnterError::Wait(WaitError::Room(error)) => {
            matches!(error, RoomError::NoSuchRoom { .. } | RoomError::Removed { .. })
        }
        _ => false,
    })
}

fn descriptor(number: i32) -> Result<BorrowedFd<'static>, EnterError> {
    inherited(number).ok_or(EnterError::NotOpen(number))
}

/// The path of the file that a descriptor is open on.
fn file_of(number: i32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{number}")).ok()
}

fn shown(number: i32) -> String {
    file_of(number).map_or_else(|| "another file".to_owned(), |path| path.display().to_string())
}

/// The room whose file a descriptor is open on.
fn room_of(number: i32) -> Result<(Room, BorrowedFd<'static>), EnterError> {
    let descriptor = descriptor(number)?;
    if facts_of(number).is_some_and(|file| file.nlink() == 0) {
        // A new room may have this name now.
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

/// The error for a room that cannot be opened. It names the descriptor if that is the reason.
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

/// An error for rooms on servers. A descriptor cannot keep them.
fn on_this_machine(place: &Place) -> Result<(), RoomError> {
    match place {
        Place::Servers { .. } => Err(RoomError::BadPlace {
            place: place.to_string(),
            reason: "a descriptor can keep only rooms in a directory; use `grouplock run` or `acquire` for rooms on servers",
        }),
        _ => Ok(()),
    }
}
