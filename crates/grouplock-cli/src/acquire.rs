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
use grouplock_room::{Guard, Standing};
use nix::unistd::{ForkResult, fork, setsid};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};

use crate::exit;
use crate::plain::say;
use crate::run::{Audible, Entrance, Teller};
use crate::signals::Signals;
use crate::span;
use crate::token::Token;
use crate::waiting::{self, Ended, WaitError};

/// Enters a room and keeps it in the background until `grouplock release`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    entrance: Entrance,
    /// Leave when this process ends. Default: the one that called us.
    #[arg(long = "for", value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    owner: Option<i32>,
    /// Leave after this time at the latest.
    #[arg(long, value_name = "TIME", value_parser = span::parse)]
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
    #[error("the process that called us has ended; name another with --for")]
    NoCaller,
    #[error("cannot {what}: {source}")]
    System { what: &'static str, source: std::io::Error },
}

fn system<E: Into<std::io::Error>>(what: &'static str) -> impl FnOnce(E) -> AcquireError {
    move |error| AcquireError::System { what, source: error.into() }
}

fn begin(arguments: &Arguments) -> Result<ExitCode, AcquireError> {
    let owner = owner(arguments.owner)?;
    let (answer, report) = pipe_with(PipeFlags::CLOEXEC).map_err(system("make a pipe"))?;
    // SAFETY: this process has a single thread, so the child may do whatever its parent might have done.
    match unsafe { fork() }.map_err(system("start a keeper"))? {
        ForkResult::Parent { .. } => {
            drop(report);
            relay(answer)
        }
        ForkResult::Child => {
            drop(answer);
            Ok(keep(arguments, &owner, report))
        }
    }
}

/// A handle to the process the room is kept for.
fn owner(named: Option<i32>) -> Result<OwnedFd, AcquireError> {
    let pid = match named {
        Some(pid) => Pid::from_raw(pid).ok_or(AcquireError::NoOwner(pid))?,
        None => getppid().ok_or(AcquireError::NoCaller)?,
    };
    let handle = pidfd_open(pid, PidfdFlags::empty())
        .map_err(|_| AcquireError::NoOwner(pid.as_raw_nonzero().get()))?;
    // If it had ended before the handle was made, somebody else may have its number and we another parent.
    if named.is_none() && getppid() != Some(pid) {
        return Err(AcquireError::NoCaller);
    }
    Ok(handle)
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
    say(&String::from_utf8_lossy(text));
    Ok(ExitCode::from(*code))
}

/// In the keeper.
fn keep(arguments: &Arguments, owner: &OwnedFd, report: OwnedFd) -> ExitCode {
    // Signals from the terminal end the process in front, and the pipe to it tells us.
    _ = setsid();
    close_inherited(&[owner.as_raw_fd(), report.as_raw_fd()]);
    let (guard, signals, token) = match enter(arguments, report.as_fd()) {
        Ok(entered) => entered,
        Err((code, message)) => {
            if let Some(message) = message {
                eprintln!("grouplock: {message}");
            }
            _ = rustix::io::write(&report, &[code]);
            return ExitCode::from(code);
        }
    };
    let detached = detach();
    let mut report = std::fs::File::from(report);
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
    let wish = entrance.wish("grouplock acquire").map_err(|error| failed(&error))?;
    let mut teller = Teller::new(&wish, entrance.loudness(false));
    let mut audience = Audible { teller: &mut teller, events: None, wish: &wish, told: None };
    match waiting::enter(&wish, &signals, Some(caller), &mut audience) {
        Ok(Ended::Inside(guard)) => {
            teller.entered(&guard);
            let token = Token {
                pid: i32::try_from(std::process::id()).unwrap_or_default(),
                holder: guard.holder().to_string(),
                room: wish.room.clone(),
                place: wish.place.to_string(),
            };
            Ok((guard, signals, token))
        }
        Ok(Ended::Signalled(signal)) => Err((exit::by_signal(signal as i32), None)),
        Ok(Ended::HungUp) => Err((exit::FAILED, None)),
        Err(WaitError::Room(conflict)) if conflict.is_conflict() => {
            let message = (!entrance.quiet).then(|| conflict.to_string());
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
fn detach() -> rustix::io::Result<()> {
    rustix::process::chdir("/")?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    if null.as_raw_fd() <= 2 {
        // One of them was closed, and is this one now.
        _ = null.into_raw_fd();
    }
    Ok(())
}

/// Stays inside until there is a reason to leave.
fn stay(guard: &Guard<'_>, signals: &Signals, owner: &OwnedFd, limit: Option<Duration>) {
    let end = limit.and_then(|limit| Instant::now().checked_add(limit));
    while guard.standing() == Standing::Held {
        let left = end.map_or(LOOK, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return;
        }
        let mut sources = [PollFd::new(signals, PollFlags::IN), PollFd::new(owner, PollFlags::IN)];
        let wait = Timespec::try_from(left.min(LOOK)).ok();
        match poll(&mut sources, wait.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}
