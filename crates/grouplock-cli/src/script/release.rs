//! `grouplock release` ends what `grouplock acquire` began; `grouplock held` tells whether it has ended already.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use grouplock_room::{Place, RoomError};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::enter;
use crate::exit::{self, complain};
use crate::handle::Handle;
use crate::status::look;
use crate::token::{NoToken, Token, world};

/// The token of a holding.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What `grouplock acquire` has printed.
    token: String,
}

/// What is asked about.
#[derive(Debug, Args)]
pub(crate) struct HeldArguments {
    /// What `grouplock acquire` has printed.
    #[arg(required_unless_present = "fd", conflicts_with = "fd")]
    token: Option<String>,
    /// The descriptor that `grouplock enter` was given.
    #[arg(long, value_name = "NUMBER")]
    fd: Option<i32>,
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
    #[error(
        "the keeper is process {pid} of another machine, another namespace of processes, or a time before this machine was \
         started; release it there"
    )]
    Elsewhere { pid: i32 },
    #[error("cannot reach the keeper, process {pid}: {source}")]
    Keeper { pid: i32, source: std::io::Error },
    #[error("the keeper, process {pid}, has not left within {} s; is it stopped?", PATIENCE.as_secs())]
    Stuck { pid: i32 },
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    told(release(&arguments.token))
}

fn told(result: Result<(), ReleaseError>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    complain(&error);
    let gone = matches!(error, ReleaseError::Gone(_));
    ExitCode::from(if gone { exit::LOST } else { exit::FAILED })
}

/// Whether a holding is still there.
pub(crate) fn held(arguments: &HeldArguments) -> ExitCode {
    match arguments.fd {
        Some(number) => enter::held(number),
        None => told(find(arguments.token.as_deref().unwrap_or_default()).map(drop)),
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

/// The keeper of a holding that is still there.
fn find(text: &str) -> Result<(i32, Handle), ReleaseError> {
    let token: Token = text.parse()?;
    let place: Place = token.place.parse()?;
    let pid = token.pid;
    if token.world != world() {
        return Err(ReleaseError::Elsewhere { pid });
    }
    let gone = || ReleaseError::Gone(text.to_owned());
    // First the handle, then the look: if the room then says that this process is inside, the handle means it and
    // not somebody who got its number later.
    let keeper = match Handle::open(Pid::from_raw(pid)) {
        Ok(keeper) => keeper,
        Err(Errno::ESRCH) => return Err(gone()),
        Err(errno) => return Err(ReleaseError::Keeper { pid, source: errno.into() }),
    };
    if is_inside(&place, &token)? { Ok((pid, keeper)) } else { Err(gone()) }
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
