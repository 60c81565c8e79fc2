//! `grouplock acquire`: a holding for a script that cannot be wrapped.
//!
//! A child of this process, the keeper, enters the room and stays inside in the background. It was forked before
//! it opened the room, since a handle belongs to the process that opened it; this process waits for its
//! answer, prints it, tells the keeper that it has, and is gone. The keeper leaves the room when it is told to (`grouplock
//! release` sends SIGTERM), when the process it keeps the room for ends, when its time is over, or when this process ends
//! before it has printed the token: then nobody could give the room back.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use grouplock_room::{Guard, Patience, RoomError, Standing, parse_duration};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, dup2_stderr, dup2_stdin, dup2_stdout, fork, setsid};

use crate::before::stdout;
use crate::caller::caller;
use crate::exit::{self, Ending, complain};
use crate::handle::{Handle, wait_for};
use crate::outer::{self, Outer};
use crate::run::{Audible, Entrance, Teller};
use crate::signals::Signals;
use crate::token::{Token, world};
use crate::waiting::{self, Ended, WaitError, Wish};

/// Enters a room and keeps it in the background until `grouplock release`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    entrance: Entrance,
    /// Leave when this process ends; `$$` is the script. Default: the program that called us, which is the script as well if a
    /// subshell of it or a command such as timeout(1) has.
    #[arg(long = "for", value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    owner: Option<i32>,
    /// Leave after this time at the latest.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration_limit: Option<Duration>,
}

/// How often the keeper looks whether its holding still stands.
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
        "the program that called us has ended, or cannot be seen in /proc; name one with --for, such as --for $$"
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

/// What is known before there is a keeper.
struct Order<'a> {
    arguments: &'a Arguments,
    wish: Wish,
    /// The place in the room that a descriptor of the caller keeps. The keeper does not inherit those.
    kept: Option<outer::Kept>,
    owner: Handle,
    /// Ctrl-Z in front.
    stops: Signals,
}

fn begin(arguments: &Arguments) -> Result<ExitCode, AcquireError> {
    let owner = owner(arguments.owner)?;
    let wish = arguments.entrance.wish("grouplock acquire")?;
    let kept = Outer::kept(&wish);
    let stops = Signals::take_some(&[Signal::SIGTSTP]).map_err(system("take over signals"))?;
    let order = Order { arguments, wish, kept, owner, stops };
    loop {
        let (answer, report) = UnixStream::pair().map_err(system("make a socket"))?;
        // SAFETY: this process has a single thread, so the child may do whatever its parent might have done.
        let child = match unsafe { fork() }.map_err(system("start a keeper"))? {
            ForkResult::Parent { child } => child,
            ForkResult::Child => {
                drop(answer);
                return Ok(keep(&order, report));
            }
        };
        drop(report);
        if is_answered(&answer, &order.stops).map_err(system("wait for the keeper"))? {
            return relay(answer);
        }
        // Nothing of us is in the queue or the room while we are stopped: else everybody would wait for us.
        drop(answer);
        _ = kill(child, Signal::SIGTERM);
        _ = waitpid(child, None);
        order.stops.stop_by(Signal::SIGTSTP).map_err(system("stop"))?;
    }
}

/// Waits for the keeper's answer, or until we are to stop: false.
fn is_answered(answer: &UnixStream, stops: &Signals) -> nix::Result<bool> {
    loop {
        let source = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut sources = [source(answer.as_fd()), source(stops.as_fd())];
        match wait_for(&mut sources, None) {
            Err(Errno::EINTR) => continue,
            ready => ready?,
        };
        if sources[0].any() == Some(true) {
            return Ok(true);
        }
        if stops.next()?.is_some() {
            return Ok(false);
        }
    }
}

/// A handle to the process the room is kept for.
fn owner(named: Option<i32>) -> Result<Handle, AcquireError> {
    match named {
        Some(pid) => Handle::open(Pid::from_raw(pid)).map_err(|_| AcquireError::NoOwner(pid)),
        None => caller().map(|caller| caller.handle).ok_or(AcquireError::NoCaller),
    }
}

/// In the parent: passes the keeper's answer on. Its first byte is the exit code.
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
    // One that could not enter is gone already.
    _ = answer.write_all(b"!");
    Ok(ExitCode::from(*code))
}

/// In the keeper.
fn keep(order: &Order<'_>, mut report: UnixStream) -> ExitCode {
    // Signals from the terminal are for the process in front. If that ends, the pipe to it tells us.
    _ = setsid();
    let Order { arguments, owner, stops, .. } = order;
    close_inherited(&[owner.as_fd(), report.as_fd(), stops.as_fd()]);
    let (guard, signals, token) = match enter(order, report.as_fd()) {
        Ok(entered) => entered,
        Err((code, message)) => {
            if let Some(message) = message {
                complain(message);
            }
            _ = report.write_all(&[code]);
            return ExitCode::from(code);
        }
    };
    if owner.has_ended() {
        complain("the process that the room was to be held for has ended");
        _ = report.write_all(&[exit::FAILED]);
        return ExitCode::from(exit::FAILED);
    }
    let detached = detach();
    let told = report.write_all(format!("\0{token}\n").as_bytes());
    let told = told.and_then(|()| report.shutdown(Shutdown::Write));
    // If nobody has got the token, nobody can give the holding back.
    if detached.is_ok() && told.is_ok() {
        stay(&guard, &signals, owner, arguments.duration_limit, report);
    }
    // Nobody is left to be told.
    _ = guard.leave();
    ExitCode::SUCCESS
}

type Entered = (Guard<'static>, Signals, Token);

fn enter(order: &Order<'_>, caller: BorrowedFd<'_>) -> Result<Entered, (u8, Option<String>)> {
    let failed = |error: &dyn std::fmt::Display| (exit::FAILED, Some(error.to_string()));
    let entrance = &order.arguments.entrance;
    let signals = Signals::take().map_err(|error| failed(&error))?;
    let mut wish = order.wish.clone();
    let outer = Outer::around_with(&wish, order.kept.clone());
    if outer.map_err(|error| failed(&error))?.is_some() {
        // Whoever waits in front of us waits for the outer run to end, and that waits for us.
        wish.patience = Patience::None;
    }
    let mut teller = Teller::new(&wish.room, &wish.session, entrance.loudness(false));
    let mut audience = Audible { teller: &mut teller, events: None, wish: &wish, told: None };
    match waiting::enter(&wish, &signals, Some(caller), &mut audience) {
        Ok(Ended::Inside(guard)) => {
            teller.entered(guard.epoch(), guard.holder().as_str(), guard.recovered());
            let token = Token {
                pid: i32::try_from(std::process::id()).unwrap_or_default(),
                world: world(),
                holder: guard.holder().to_string(),
                room: wish.room.clone(),
                place: wish.place.to_string(),
            };
            Ok((guard, signals, token))
        }
        Ok(Ended::Signalled(signal)) => Err((Ending::Signal(signal as i32).code(), None)),
        Ok(Ended::HungUp) => Err((exit::FAILED, None)),
        Err(error) if matches!(&error, WaitError::Room(error) if error.is_conflict()) => {
            let message = (!entrance.quiet).then(|| entrance.told(&error));
            Err((entrance.conflict_exit_code, message))
        }
        Err(error) => Err(failed(&error)),
    }
}

/// Lets go of what belongs to the caller: somebody may wait for the end of a pipe that we would keep open.
fn close_inherited(ours: &[BorrowedFd<'_>]) {
    let ours: Vec<RawFd> = ours.iter().map(AsRawFd::as_raw_fd).collect();
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<RawFd> =
        open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers {
        if number > 2 && !ours.contains(&number) {
            // SAFETY: nothing of ours is open here but `ours` and the standard streams. The directory that was just
            // read is among the numbers and closed already, which does no harm: there is no other thread to reuse it.
            unsafe { libc::close(number) };
        }
    }
}

/// Lets go of the standard streams and the directory.
fn detach() -> nix::Result<()> {
    nix::unistd::chdir("/")?;
    let null = open("/dev/null", OFlag::O_RDWR, Mode::empty())?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    if null.as_raw_fd() <= 2 {
        // One of them was closed, and is this one now.
        _ = null.into_raw_fd();
    }
    Ok(())
}

/// Stays inside until there is a reason to leave. `report` tells first that the token was printed.
fn stay(
    guard: &Guard<'_>,
    signals: &Signals,
    owner: &Handle,
    limit: Option<Duration>,
    report: UnixStream,
) {
    let end = limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut unprinted = Some(report);
    while guard.standing() == Standing::Held {
        let left = end.map_or(LOOK, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return;
        }
        let source = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut sources = vec![source(signals.as_fd()), source(owner.as_fd())];
        sources.extend(unprinted.as_ref().map(|report| source(report.as_fd())));
        match wait_for(&mut sources, Some(left.min(LOOK))) {
            Ok(0) | Err(Errno::EINTR) => continue,
            Ok(_) if sources[..2].iter().all(|source| source.any() == Some(false)) => {}
            Ok(_) | Err(_) => return,
        }
        if unprinted.take().is_some_and(|mut report| report.read_exact(&mut [0]).is_err()) {
            return;
        }
    }
}
