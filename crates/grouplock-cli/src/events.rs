//! Events as JSON, for programs. `docs/cli.md` describes the fields.

use std::io::Write;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use grouplock_room::{Recovered, Snapshot};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::Signal;
use serde::Serialize;

use crate::entering::RoomRequest;
use crate::exit::Ending;
use crate::system::descriptors::inherited;

/// One event.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event<'a> {
    /// The request waits. Again when the state of the room changes.
    Waiting {
        room: &'a str,
        session: &'a str,
        waited_seconds: f64,
        inside: Option<&'a str>,
        holders: usize,
        phases_before: Option<usize>,
    },
    /// The room was entered.
    Entered {
        room: &'a str,
        session: &'a str,
        at: String,
        epoch: u64,
        holder: String,
        recovered: Option<Recovered>,
    },
    /// The command has started.
    Started { pid: i32 },
    /// A signal was passed on to the command.
    Forwarded { signal: &'a str, passed: bool },
    /// The holding was lost.
    Lost { room: &'a str, reason: String },
    /// The command has ended, by itself or by a signal.
    Exited { code: Option<u8>, signal: Option<&'a str> },
    /// The room was left.
    Left,
    /// A signal ended the wait.
    Signalled { signal: &'a str, exit: u8 },
    /// The room could not be entered, or the holding was lost.
    Failed { message: String, exit: u8 },
}

impl<'a> Event<'a> {
    pub(crate) fn entered(
        request: &'a RoomRequest,
        epoch: u64,
        holder: String,
        recovered: Option<Recovered>,
    ) -> Self {
        Event::Entered {
            room: &request.room,
            session: &request.session,
            at: request.place.to_string(),
            epoch,
            holder,
            recovered,
        }
    }

    pub(crate) fn exited(ending: Ending) -> Self {
        match ending {
            Ending::Code(code) => Event::Exited { code: Some(code), signal: None },
            Ending::Signal(number) => {
                let signal = Signal::try_from(number).map_or("realtime", Signal::as_str);
                Event::Exited { code: None, signal: Some(signal) }
            }
        }
    }

    pub(crate) fn waiting(
        request: &'a RoomRequest,
        waited: Duration,
        room: &'a Snapshot,
        phases_before: Option<usize>,
    ) -> Self {
        Event::Waiting {
            room: &request.room,
            session: &request.session,
            waited_seconds: waited.as_secs_f64(),
            inside: room.session(),
            holders: room.holders(),
            phases_before,
        }
    }
}

#[derive(Serialize)]
struct TimedEvent<'a> {
    time: f64,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

/// The destination of events. By default there is none.
#[derive(Debug, Default)]
pub(crate) struct Events {
    descriptor: Option<BorrowedFd<'static>>,
}

#[derive(Debug, thiserror::Error)]
#[error("--json={0}: no such file descriptor is open for writing; `--json` alone writes to stderr")]
pub(crate) struct NoDescriptor(i32);

impl Events {
    /// Events go to a descriptor that the caller has opened. `None` means no events.
    pub(crate) fn to(descriptor: Option<i32>) -> Result<Self, NoDescriptor> {
        let Some(number) = descriptor else { return Ok(Events::default()) };
        let caller = inherited(number).ok_or(NoDescriptor(number))?;
        let mode = fcntl(caller, FcntlArg::F_GETFL).map_err(|_| NoDescriptor(number))?;
        if !OFlag::from_bits_retain(mode).intersects(OFlag::O_WRONLY | OFlag::O_RDWR) {
            return Err(NoDescriptor(number));
        }
        Ok(Events { descriptor: Some(caller) })
    }

    /// Whether events go to stderr. Then nothing else should be written there.
    pub(crate) fn use_stderr(&self) -> bool {
        self.descriptor.is_some_and(|descriptor| descriptor.as_raw_fd() == 2)
    }

    pub(crate) fn are_wanted(&self) -> bool {
        self.descriptor.is_some()
    }

    pub(crate) fn write(&mut self, event: &Event<'_>) {
        let Some(descriptor) = self.descriptor else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let Ok(mut line) = serde_json::to_vec(&TimedEvent { time: now.as_secs_f64(), event })
        else {
            return;
        };
        line.push(b'\n');
        // A reader that is gone does not stop the command.
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
