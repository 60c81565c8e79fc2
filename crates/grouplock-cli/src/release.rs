//! `grouplock release`: ends what `grouplock acquire` began.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use grouplock_room::{Place, RoomError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::exit;
use crate::status::look;
use crate::token::{NoToken, Token};

/// Gives a room back that `grouplock acquire` has entered.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What `grouplock acquire` has printed.
    token: String,
}

/// How long a keeper may take to leave.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
enum ReleaseError {
    #[error(transparent)]
    Token(#[from] NoToken),
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error(
        "`{0}` is not held any more: it was released before, or the process it was held for has \
         ended, or its time was over, or it was lost"
    )]
    Gone(String),
    #[error("cannot end the keeper, process {pid}: {source}")]
    Keeper { pid: i32, source: std::io::Error },
    #[error("the keeper, process {pid}, has not left within {} s; is it stopped?", PATIENCE.as_secs())]
    Stuck { pid: i32 },
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match release(&arguments.token) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("grouplock: {error}");
            let gone = matches!(error, ReleaseError::Gone(_));
            ExitCode::from(if gone { exit::LOST } else { exit::FAILED })
        }
    }
}

fn release(text: &str) -> Result<(), ReleaseError> {
    let token: Token = text.parse()?;
    let place: Place = token.place.parse()?;
    let pid = token.pid;
    let gone = || ReleaseError::Gone(text.to_owned());
    let failed = |errno: rustix::io::Errno| ReleaseError::Keeper { pid, source: errno.into() };
    // First the handle, then the look: if the room then says that this process is inside, the handle means it and
    // not somebody who got its number later.
    let number = Pid::from_raw(pid).ok_or_else(gone)?;
    let keeper = match pidfd_open(number, PidfdFlags::empty()) {
        Ok(keeper) => keeper,
        Err(rustix::io::Errno::SRCH) => return Err(gone()),
        Err(errno) => return Err(failed(errno)),
    };
    if !is_inside(&place, &token)? {
        return Err(gone());
    }
    match pidfd_send_signal(&keeper, Signal::TERM) {
        Ok(()) => {}
        Err(rustix::io::Errno::SRCH) => return Err(gone()),
        Err(errno) => return Err(failed(errno)),
    }
    let patience = Timespec::try_from(PATIENCE).ok();
    let ended = loop {
        match poll(&mut [PollFd::new(&keeper, PollFlags::IN)], patience.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            done => break done.map_err(failed)?,
        }
    };
    if ended == 0 { Err(ReleaseError::Stuck { pid }) } else { Ok(()) }
}

fn is_inside(place: &Place, token: &Token) -> Result<bool, RoomError> {
    let room = match look(place, &token.room) {
        Err(RoomError::NoSuchRoom { .. } | RoomError::Removed { .. }) => return Ok(false),
        room => room?,
    };
    let pid = u32::try_from(token.pid).unwrap_or_default();
    let keeps = |member: &grouplock_room::Participant| {
        member.id.as_str() == token.holder && member.pid == pid
    };
    Ok(room.inside.is_some_and(|phase| phase.members.iter().any(keeps)))
}
