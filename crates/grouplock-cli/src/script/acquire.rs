//! `grouplock acquire`: a holding for a script that is more than one command.
//!
//! A child of this process, the keeper, enters the room and stays inside in the background. It is
//! forked before it opens the room, because a handle belongs to the process that opened it. This
//! process waits for the keeper's answer, prints it, confirms that to the keeper, and ends. The
//! keeper leaves the room
//!
//! * when it gets SIGTERM, which `grouplock release` sends,
//!
//! * when the process that the room is held for ends,
//!
//! * when its time is over,
//!
//! * when this process ends before it has printed the token: then nobody could release the room.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use grouplock_room::{Guard, Patience, RoomError, Standing, parse_duration};
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, dup2_stderr, dup2_stdin, dup2_stdout, fork, setsid};

use super::caller::caller;
use super::token::{Token, world};
use crate::entering::nested::{self, OuterHolding};
use crate::entering::{
    Entered, Entering, Entrance, RoomRequest, StderrReport, WaitError, WaitReport,
};
use crate::exit::{self, Ending, complain};
use crate::system::descriptors::open_numbers;
use crate::system::process::{ProcessHandle, wait_for};
use crate::system::signals::Signals;
use crate::system::startup::stdout;

/// Enters a room. A process in the background keeps the holding until `grouplock release`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    entrance: Entrance,
    /// Leave when this process ends; `$$` is the script. Default: the program that called
    /// grouplock. A subshell counts as its script, and a command such as timeout(1) counts as its
    /// caller.
    #[arg(long = "for", value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    owner: Option<i32>,
    /// Leave after this time.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration_limit: Option<Duration>,
}

/// The time between two checks of the holding.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match begin(arguments) {
        Ok(code) => code,
        Err(error) => exit::failed(error),
    }
}

#[derive(Debug, thiserror::Error)]
enum AcquireError {
    #[error("there is no process {0} to hold the room for")]
    NoOwner(i32),
    #[error(
        "the program that called grouplock has ended, or /proc does not show it; name a process with --for, such as --for $$"
    )]
    NoCaller,
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error("cannot {what}: {source}")]
    System { what: &'static str, source: std::io::Error },
}

fn system<E: Into<std::io::Error>>(what: &'static str) -> impl FnOnce(E) -> AcquireError {
    move |error| AcquireError::System { what, source: error.into() }
}

/// What is known before the keeper starts.
struct Order<'a> {
    arguments: &'a Arguments,
    request: RoomRequest,
    /// The holding in the room that a descriptor of the caller keeps. The keeper does not inherit
    /// that descriptor.
    kept: Option<nested::Kept>,
    owner: ProcessHandle,
    /// Ctrl-Z in the foreground.
    stops: Signals,
}

fn begin(arguments: &Arguments) -> Result<ExitCode, AcquireError> {
    let owner = owner(arguments.owner)?;
    let request = arguments.entrance.request("grouplock acquire")?;
    let kept = OuterHolding::kept(&request);
    let stops = Signals::take_some(&[Signal::SIGTSTP]).map_err(system("take over signals"))?;
    let order = Order { arguments, request, kept, owner, stops };
    loop {
        let (answer, socket) = UnixStream::pair().map_err(system("make a socket"))?;
        // SAFETY: this process has a single thread, so the child may do anything that its parent
        // may do.
        let child = match unsafe { fork() }.map_err(system("start a keeper"))? {
            ForkResult::Parent { child } => child,
            ForkResult::Child => {
                drop(answer);
                return Ok(keep(&order, socket));
            }
        };
        drop(socket);
        if is_answered(&answer, &order.stops).map_err(system("wait for the keeper"))? {
            return relay(answer);
        }
        // A stopped process must not be in the queue or the room: others would wait for it.
        drop(answer);
        _ = kill(child, Signal::SIGTERM);
        _ = waitpid(child, None);
        order.stops.stop_by(Signal::SIGTSTP).map_err(system("stop"))?;
    }
}

/// Waits for the keeper's answer. Returns `false` if this process must stop.
fn is_answered(answer: &UnixStream, stops: &Signals) -> nix::Result<bool> {
    loop {
        let source = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut sources = [source(answer.as_fd()), source(stops.as_fd())];
        wait_for(&mut sources, None)?;
        if sources[0].any() == Some(true) {
            return Ok(true);
        }
        if stops.next()?.is_some() {
            return Ok(false);
        }
    }
}

/// A handle to the process that the room is held for.
fn owner(named: Option<i32>) -> Result<ProcessHandle, AcquireError> {
    match named {
        Some(pid) => {
            ProcessHandle::open(Pid::from_raw(pid)).map_err(|_| AcquireError::NoOwner(pid))
        }
        None => caller().map(|caller| caller.handle).ok_or(AcquireError::NoCaller),
    }
}

/// In the parent: passes on the keeper's answer. Its first byte is the exit code.
fn relay(mut answer: UnixStream) -> Result<ExitCode, AcquireError> {
    let mut text = Vec::new();
    answer.read_to_end(&mut text).map_err(system("read the keeper's answer"))?;
    let Some((code, text)) = text.split_first() else {
        return Ok(exit::failed("the keeper died before it had entered"));
    };
    if !text.is_empty() {
        let mut out = stdout().map_err(system("print the token"))?;
        out.write_all(text).and_then(|()| out.flush()).map_err(system("print the token"))?;
    }
    // A keeper that could not enter is already gone.
    _ = answer.write_all(b"!");
    Ok(ExitCode::from(*code))
}

/// In the keeper.
fn keep(order: &Order<'_>, mut socket: UnixStream) -> ExitCode {
    // Signals from the terminal go to the process in the foreground. If it ends, the socket reports
    // that.
    _ = setsid();
    let Order { arguments, owner, stops, .. } = order;
    close_inherited(&[owner.as_fd(), socket.as_fd(), stops.as_fd()]);
    let (guard, signals, token) = match enter(order, socket.as_fd()) {
        Ok(entered) => entered,
        Err((code, message)) => {
            if let Some(message) = message {
                complain(message);
            }
            _ = socket.write_all(&[code]);
            return ExitCode::from(code);
        }
    };
    if owner.has_ended() {
        complain("the process that the room was to be held for has ended");
        _ = socket.write_all(&[exit::FAILED]);
        return ExitCode::from(exit::FAILED);
    }
    let detached = detach();
    let sent = socket.write_all(format!("\0{token}\n").as_bytes());
    let sent = sent.and_then(|()| socket.shutdown(Shutdown::Write));
    // If nobody has the token, nobody can release the room.
    if detached.is_ok() && sent.is_ok() {
        stay(&guard, &signals, owner, arguments.duration_limit, socket);
    }
    // No process can get a report.
    _ = guard.leave();
    ExitCode::SUCCESS
}

type KeeperState = (Guard<'static>, Signals, Token);

fn enter(order: &Order<'_>, caller: BorrowedFd<'_>) -> Result<KeeperState, (u8, Option<String>)> {
    let failed = |error: &dyn std::fmt::Display| (exit::FAILED, Some(error.to_string()));
    let entrance = &order.arguments.entrance;
    let signals = Signals::take().map_err(|error| failed(&error))?;
    let mut request = order.request.clone();
    let outer = OuterHolding::around_with(&request, order.kept.clone());
    if outer.map_err(|error| failed(&error))?.is_some() {
        // The requests in front of us wait until the outer run ends, and the outer run waits for
        // us.
        request.patience = Patience::None;
    }
    let mut report = StderrReport::new(&request.room, &request.session, entrance.verbosity(false));
    let wait_report = WaitReport::new(&mut report, None, &request);
    let entering = Entering {
        request: &request,
        signals: &signals,
        caller: Some(caller),
        report: wait_report,
    };
    match entering.enter() {
        Ok(Entered::Continue(guard)) => {
            report.entered(guard.epoch(), guard.holder().as_str(), guard.recovered());
            let token = Token {
                pid: i32::try_from(std::process::id()).unwrap_or_default(),
                world: world(),
                holder: guard.holder().to_string(),
                room: request.room.clone(),
                place: request.place.to_string(),
            };
            Ok((guard, signals, token))
        }
        Ok(Entered::Break(signal)) => Err((Ending::Signal(signal as i32).code(), None)),
        Err(WaitError::CallerGone) => Err((exit::FAILED, None)),
        Err(error) => {
            let (code, message) = entrance.failure(&error);
            Err((code, (!entrance.is_silent_about(&error)).then_some(message)))
        }
    }
}

/// Closes the descriptors of the caller. A process may wait until a pipe among them is closed.
fn close_inherited(ours: &[BorrowedFd<'_>]) {
    let ours: Vec<RawFd> = ours.iter().map(AsRawFd::as_raw_fd).collect();
    for number in open_numbers() {
        if !ours.contains(&number) {
            // SAFETY: nothing of ours is open here but `ours` and the standard streams. The
            // directory that was just read is among the numbers and closed already, which does no
            // harm: there is no other thread to reuse it.
            unsafe { libc::close(number) };
        }
    }
}

/// Closes the standard streams, and leaves the directory.
fn detach() -> nix::Result<()> {
    nix::unistd::chdir("/")?;
    let null = open("/dev/null", OFlag::O_RDWR, Mode::empty())?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    if null.as_raw_fd() <= 2 {
        // One of them was closed before. It is this one now.
        _ = null.into_raw_fd();
    }
    Ok(())
}

/// Stays inside until there is a reason to leave. The first message of `socket` confirms that the
/// token was printed.
fn stay(
    guard: &Guard<'_>,
    signals: &Signals,
    owner: &ProcessHandle,
    limit: Option<Duration>,
    socket: UnixStream,
) {
    let end = limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut unprinted = Some(socket);
    while guard.standing() == Standing::Held {
        let left = end.map_or(LOOK, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return;
        }
        let source = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut sources = vec![source(signals.as_fd()), source(owner.as_fd())];
        sources.extend(unprinted.as_ref().map(|socket| source(socket.as_fd())));
        match wait_for(&mut sources, Some(left.min(LOOK))) {
            Ok(0) => continue,
            Ok(_) if sources[..2].iter().all(|source| source.any() == Some(false)) => {}
            Ok(_) | Err(_) => return,
        }
        if unprinted.take().is_some_and(|mut socket| socket.read_exact(&mut [0]).is_err()) {
            return;
        }
    }
}
