//! `grouplock release` ends the holding of `grouplock acquire`. `grouplock held` says whether it
//! has ended.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use grouplock_room::{Place, RoomError};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::descriptor;
use crate::exit;
use crate::inspect::snapshot;
use crate::script::token::{NoToken, Token, world};
use crate::system::process::ProcessHandle;

/// The token of a holding.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The output of `grouplock acquire`.
    token: String,
}

/// The holding to check.
#[derive(Debug, Args)]
pub(crate) struct HeldArguments {
    /// The output of `grouplock acquire`.
    #[arg(required_unless_present = "fd", conflicts_with = "fd")]
    token: Option<String>,
    /// The descriptor of `grouplock enter`.
    #[arg(long, value_name = "NUMBER")]
    fd: Option<i32>,
}

/// The longest time that a keeper may take to leave.
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
    #[error(
        "the keeper is process {pid} on another machine, in another namespace of processes, or \
         from before the last start of this machine; release it there"
    )]
    Elsewhere { pid: i32 },
    #[error("cannot reach the keeper, process {pid}: {source}")]
    Keeper { pid: i32, source: std::io::Error },
    #[error("the keeper, process {pid}, has not left within {} s; is it stopped?", PATIENCE.as_secs())]
    Stuck { pid: i32 },
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    code_of(release(&arguments.token))
}

fn code_of(result: Result<(), ReleaseError>) -> ExitCode {
    exit::code_of(result, |error| matches!(error, ReleaseError::Gone(_)))
}

/// Whether a holding is still held.
pub(crate) fn held(arguments: &HeldArguments) -> ExitCode {
    match arguments.fd {
        Some(number) => descriptor::held(number),
        None => code_of(find(arguments.token.as_deref().unwrap_or_default()).map(drop)),
    }
}

fn release(text: &str) -> Result<(), ReleaseError> {
    let (pid, keeper) = find(text)?;
    match keeper.send(Signal::SIGTERM as i32) {
        Ok(()) => {}
        Err(Errno::ESRCH) => return Err(ReleaseError::Gone(text.to_owned())),
        Err(errno) => return Err(ReleaseError::Keeper { pid, source: errno.into() }),
    }
    if keeper.ends_within(Some(PATIENCE)) { Ok(()) } else { Err(ReleaseError::Stuck { pid }) }
}

/// The keeper of a holding that is still held.
fn find(text: &str) -> Result<(i32, ProcessHandle), ReleaseError> {
    let token: Token = text.parse()?;
    let place: Place = token.place.parse()?;
    let pid = token.pid;
    if token.world != world() {
        return Err(ReleaseError::Elsewhere { pid });
    }
    let gone = || ReleaseError::Gone(text.to_owned());
    // Open the handle first. If the room then shows this process inside, the handle is that of the
    // keeper, and not of a later process with the same number.
    let keeper = match ProcessHandle::open(Pid::from_raw(pid)) {
        Ok(keeper) => keeper,
        Err(Errno::ESRCH) => return Err(gone()),
        Err(errno) => return Err(ReleaseError::Keeper { pid, source: errno.into() }),
    };
    if is_inside(&place, &token)? { Ok((pid, keeper)) } else { Err(gone()) }
}

fn is_inside(place: &Place, token: &Token) -> Result<bool, RoomError> {
    let room = match snapshot(place, &token.room) {
        Err(RoomError::NoSuchRoom { .. } | RoomError::Removed { .. }) => return Ok(false),
        room => room?,
    };
    let pid = u32::try_from(token.pid).unwrap_or_default();
    let keeps = |member: &grouplock_room::Participant| {
        member.id.as_str() == token.holder && member.pid == pid
    };
    Ok(room.inside.is_some_and(|phase| phase.members.iter().any(keeps)))
}
