//! `grouplock acquire`: a holding for a script that cannot be wrapped.
//!
//! A child of this process, the keeper, enters the room and stays inside in the background. It was forked before
//! it opened the room, since a handle belongs to the process that opened it; this process waits for its
//! answer, prints it, and is gone. The keeper leaves the room when it is told to (`grouplock release` sends
//! SIGTERM), when the process it keeps the room for ends, or when its time is over.

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use grouplock_room::{Guard, Patience, Standing, parse_duration};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{ForkResult, Pid, dup2_stderr, dup2_stdin, dup2_stdout, fork, pipe2, setsid};

use crate::caller::caller;
use crate::exit::{self, Ending, complain};
use crate::handle::{Handle, wait_for};
use crate::outer::Outer;
use crate::run::{Audible, Entrance, Teller};
use crate::signals::Signals;
use crate::token::{Token, world};
use crate::waiting::{self, Ended, WaitError};

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
    #[error("cannot {what}: {source}")]
    System { what: &'static str, source: std::io::Error },
}

fn system<E: Into<std::io::Error>>(what: &'static str) -> impl FnOnce(E) -> AcquireError {
    move |error| AcquireError::System { what, source: error.into() }
}

fn begin(arguments: &Arguments) -> Result<ExitCode, AcquireError> {
    let owner = owner(arguments.owner)?;
    let (answer, report) = pipe2(OFlag::O_CLOEXEC).map_err(system("make a pipe"))?;
    // SAFETY: this process has a single thread, so the child may do whatever its parent might have done.
    match unsafe { fork() }.map_err(system("start a keeper"))? {
        ForkResult::Parent { child } => {
            drop(report);
            let relayed = relay(answer);
            if relayed.is_err() {
                // Nobody has got the token, so nobody could give the room back.
                _ = kill(child, Signal::SIGTERM);
            }
            relayed
        }
        ForkResult::Child => {
            drop(answer);
            Ok(keep(arguments, &owner, report))
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
fn relay(answer: OwnedFd) -> Result<ExitCode, AcquireError> {
    let mut text = Vec::new();
    std::fs::File::from(answer)
        .read_to_end(&mut text)
        .map_err(system("read the keeper's answer"))?;
    let Some((code, text)) = text.split_first() else {
        return Ok(exit::failed("the keeper died before it had entered"));
    };
    let mut out = std::io::stdout();
    out.write_all(text).and_then(|()| out.flush()).map_err(system("print the token"))?;
    Ok(ExitCode::from(*code))
}

/// In the keeper.
fn keep(arguments: &Arguments, owner: &Handle, report: OwnedFd) -> ExitCode {
    // Signals from the terminal end the process in front, and the pipe to it tells us.
    _ = setsid();
    close_inherited(&[owner.as_fd().as_raw_fd(), report.as_raw_fd()]);
    let (guard, signals, token) = match enter(arguments, report.as_fd()) {
        Ok(entered) => entered,
        Err((code, message)) => {
            if let Some(message) = message {
                complain(message);
            }
            _ = nix::unistd::write(&report, &[code]);
            return ExitCode::from(code);
        }
    };
    let mut report = std::fs::File::from(report);
    if owner.has_ended() {
        complain("the process that the room was to be held for has ended");
        _ = report.write_all(&[exit::FAILED]);
        return ExitCode::from(exit::FAILED);
    }
    let detached = detach();
    let told = report.write_all(format!("\0{token}\n").as_bytes());
    drop(report);
    // If nobody has got the token, nobody can give the holding back.
    if detached.is_ok() && told.is_ok() {
        stay(&guard, &signals, owner, arguments.duration_limit);
    }
    // Nobody is left to be told.
    _ = guard.leave();
    ExitCode::SUCCESS
}

type Entered = (Guard<'static>, Signals, Token);

fn enter(arguments: &Arguments, caller: BorrowedFd<'_>) -> Result<Entered, (u8, Option<String>)> {
    let failed = |error: &dyn std::fmt::Display| (exit::FAILED, Some(error.to_string()));
    let entrance = &arguments.entrance;
    let signals = Signals::take().map_err(|error| failed(&error))?;
    let mut wish = entrance.wish("grouplock acquire").map_err(|error| failed(&error))?;
    if Outer::around(&wish).map_err(|error| failed(&error))?.is_some() {
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
fn close_inherited(ours: &[RawFd]) {
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

/// Stays inside until there is a reason to leave.
fn stay(guard: &Guard<'_>, signals: &Signals, owner: &Handle, limit: Option<Duration>) {
    let end = limit.and_then(|limit| Instant::now().checked_add(limit));
    while guard.standing() == Standing::Held {
        let left = end.map_or(LOOK, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return;
        }
        let source = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut sources = [source(signals.as_fd()), source(owner.as_fd())];
        match wait_for(&mut sources, Some(left.min(LOOK))) {
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}
