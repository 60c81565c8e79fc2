//! What happens, as JSON for programs. `docs/cli.md` tells the fields.

use std::io::Write;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use grouplock_room::Snapshot;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::Signal;
use serde::Serialize;

use super::inside::Seat;
use crate::exit::Ending;
use crate::waiting::Wish;

/// One thing that happened.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event<'a> {
    /// The room cannot be entered at once, or looks different than before.
    Waiting {
        room: &'a str,
        session: &'a str,
        waited_seconds: f64,
        inside: Option<&'a str>,
        holders: usize,
        phases_before: Option<usize>,
    },
    /// Inside.
    Entered {
        room: &'a str,
        session: &'a str,
        at: String,
        epoch: u64,
        holder: String,
        recovered: Option<Died>,
    },
    /// The command runs.
    Started { pid: i32 },
    /// A signal was sent to us and passed on.
    Forwarded { signal: &'a str, passed: bool },
    /// The holding was lost.
    Lost { room: &'a str, reason: String },
    /// The command ended, by itself or by a signal.
    Exited { code: Option<u8>, signal: Option<&'a str> },
    /// The room was left.
    Left,
    /// A signal ended the wait.
    Signalled { signal: &'a str, exit: u8 },
    /// It came to nothing, or the holding was lost.
    Failed { message: String, exit: u8 },
}

/// Someone died inside before.
#[derive(Debug, Serialize)]
pub(crate) struct Died {
    epoch: u64,
    session: String,
    pid: u32,
}

impl<'a> Event<'a> {
    pub(super) fn entered(wish: &'a Wish, seat: &Seat) -> Self {
        Event::Entered {
            room: &wish.room,
            session: &wish.session,
            at: wish.place.to_string(),
            epoch: seat.epoch(),
            holder: seat.holder(),
            recovered: seat.recovered().map(|died| Died {
                epoch: died.epoch,
                session: died.session,
                pid: died.pid,
            }),
        }
    }

    pub(super) fn exited(ending: Ending) -> Self {
        match ending {
            Ending::Code(code) => Event::Exited { code: Some(code), signal: None },
            Ending::Signal(number) => {
                let signal = Signal::try_from(number).map_or("realtime", Signal::as_str);
                Event::Exited { code: None, signal: Some(signal) }
            }
        }
    }

    pub(super) fn waiting(
        wish: &'a Wish,
        waited: Duration,
        room: &'a Snapshot,
        phases_before: Option<usize>,
    ) -> Self {
        Event::Waiting {
            room: &wish.room,
            session: &wish.session,
            waited_seconds: waited.as_secs_f64(),
            inside: room.session(),
            holders: room.holders(),
            phases_before,
        }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    time: f64,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

/// Where events go.
#[derive(Debug)]
pub(crate) struct Events {
    descriptor: Option<BorrowedFd<'static>>,
}

#[derive(Debug, thiserror::Error)]
#[error("--json={0}: no such file descriptor is open for writing; `--json` alone writes to stderr")]
pub(crate) struct NoDescriptor(i32);

impl Events {
    /// To a descriptor that the caller has opened; nowhere if `None`.
    pub(super) fn to(descriptor: Option<i32>) -> Result<Self, NoDescriptor> {
        let Some(number) = descriptor else { return Ok(Events { descriptor: None }) };
        if number < 0 {
            return Err(NoDescriptor(number));
        }
        // SAFETY: it is only asked for its mode before it is known to be open, and nobody else opened anything yet, so
        // that it is the caller's or closed; what is the caller's stays open for as long as we run.
        let caller = unsafe { BorrowedFd::borrow_raw(number) };
        let mode = fcntl(caller, FcntlArg::F_GETFL).map_err(|_| NoDescriptor(number))?;
        if !OFlag::from_bits_retain(mode).intersects(OFlag::O_WRONLY | OFlag::O_RDWR) {
            return Err(NoDescriptor(number));
        }
        Ok(Events { descriptor: Some(caller) })
    }

    /// Whether stderr is theirs, so that nothing else should be written there.
    pub(super) fn use_stderr(&self) -> bool {
        self.descriptor.is_some_and(|descriptor| descriptor.as_raw_fd() == 2)
    }

    pub(super) fn are_wanted(&self) -> bool {
        self.descriptor.is_some()
    }

    pub(crate) fn tell(&mut self, event: &Event<'_>) {
        let Some(descriptor) = self.descriptor else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let Ok(mut line) = serde_json::to_vec(&Line { time: now.as_secs_f64(), event }) else {
            return;
        };
        line.push(b'\n');
        // Whoever reads no further does not stop the command.
        _ = Descriptor(descriptor).write_all(&line);
    }
}

struct Descriptor(BorrowedFd<'static>);

impl Write for Descriptor {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(nix::unistd::write(self.0, bytes)?)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
