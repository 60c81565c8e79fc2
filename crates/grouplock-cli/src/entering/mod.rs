//! Entering a room: the options, the wait, and what is reported about it.
//!
//! `run`, `enter` and `acquire` enter in the same way. The wait ends with the entry, with an error,
//! or with a signal. [`nested`] knows the rooms that this process is inside already.

pub(crate) mod nested;
mod options;
mod report;
pub(crate) mod variables;

use std::io;
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use grouplock_room::{Guard, Patience, Place, Room, RoomError, RoomOptions};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::Signal;

pub(crate) use options::Entrance;
pub(crate) use report::{StderrReport, WaitReport};

use crate::place::places;
use crate::system::process::wait_for;
use crate::system::signals::Signals;

/// The time between two snapshots for messages about the wait.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(500);

/// The time between two attempts to get a slot in a full room. No event says that a slot is free.
const FULL_RETRY: Duration = Duration::from_millis(100);

/// The time that servers may take to answer. Only after it the program reports that it waits.
const ANSWER_TIME: Duration = Duration::from_millis(100);

/// One room to enter, and how to enter it.
#[derive(Clone, Debug)]
pub(crate) struct RoomRequest {
    pub(crate) place: Place,
    pub(crate) room: String,
    pub(crate) session: String,
    pub(crate) alone: bool,
    pub(crate) at_most: Option<NonZeroU32>,
    /// Whether there is a set-up or a tear-down.
    pub(crate) prepares: bool,
    pub(crate) options: RoomOptions,
    pub(crate) priority: i32,
    pub(crate) expected: Option<Duration>,
    pub(crate) patience: Patience,
    /// Whether to wait for a slot if the room is full.
    pub(crate) waits_if_full: bool,
}

/// The guard, or the signal that ended the wait. Then the request is withdrawn.
pub(crate) type Entered = ControlFlow<Signal, Guard<'static>>;

#[derive(Debug, thiserror::Error)]
pub(crate) enum WaitError {
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error("cannot wait: {0}")]
    System(#[from] io::Error),
    #[error("the caller has hung up")]
    CallerGone,
}

impl WaitError {
    /// Whether the room was not free in time. Nothing else is wrong.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, WaitError::Room(error) if error.is_conflict())
    }
}

impl From<Errno> for WaitError {
    fn from(errno: Errno) -> Self {
        WaitError::System(errno.into())
    }
}

/// What an entry needs.
pub(crate) struct Entering<'a> {
    pub(crate) request: &'a RoomRequest,
    pub(crate) signals: &'a Signals,
    /// A descriptor that hangs up when nobody needs the room any more.
    pub(crate) caller: Option<BorrowedFd<'a>>,
    pub(crate) report: WaitReport<'a>,
}

impl Entering<'_> {
    /// Opens the room and enters. Ctrl-Z stops this process, and the wait begins again when the
    /// process continues.
    pub(crate) fn enter(mut self) -> Result<Entered, WaitError> {
        loop {
            match self.enter_once()? {
                // A stopped process must not be in the queue: requests behind it would wait for it.
                Entered::Break(stop @ Signal::SIGTSTP) => self.signals.stop_by(stop)?,
                entered => return Ok(entered),
            }
        }
    }

    /// As [`enter`](Entering::enter), but SIGTSTP ends the wait like other signals.
    pub(crate) fn enter_once(&mut self) -> Result<Entered, WaitError> {
        // Another process may remove the room between opening and entering. Then open a new room.
        let mut attempts = 0;
        let request = self.request;
        let started = Instant::now();
        loop {
            let room = places().open(&request.place, &request.room, &request.options)?;
            match self.enter_room(&room) {
                Err(WaitError::Room(RoomError::Removed { .. })) if attempts < 10 => attempts += 1,
                Err(WaitError::Room(RoomError::Full { .. }))
                    if request.waits_if_full && request.patience != Patience::None =>
                {
                    if request.patience.exhausted() {
                        return Err(RoomError::TimedOut { waited: started.elapsed() }.into());
                    }
                    let left = request.patience.deadline();
                    let left = left.map(|time| time.saturating_duration_since(Instant::now()));
                    let next = left.map_or(FULL_RETRY, |left| left.min(FULL_RETRY));
                    if let Some(signal) = self.sleep(None, Some(next))? {
                        return Ok(Entered::Break(signal));
                    }
                }
                done => return done,
            }
        }
    }

    fn enter_room(&mut self, room: &Room) -> Result<Entered, WaitError> {
        let request = self.request;
        let entry = room.request(&request.session);
        let mut entry = entry.priority(request.priority).patience(request.patience);
        if request.alone {
            entry = entry.alone();
        }
        if let Some(holders) = request.at_most {
            entry = entry.at_most(holders);
        }
        if let Some(expected) = request.expected {
            entry = entry.expected(expected);
        }
        if request.prepares && !room.capabilities().set_up {
            // The request is refused now, with the usual message, and not after the wait.
            entry = entry.set_up(|| Ok(()));
        }
        let started = Instant::now();
        let mut entry = pin!(entry.enter_async());
        // Mostly the room is free. Then an eventfd is not worth its system call.
        let mut no_waker = Context::from_waker(Waker::noop());
        if request.patience == Patience::None
            && let Poll::Ready(result) = entry.as_mut().poll(&mut no_waker)
        {
            return Ok(Entered::Continue(result?));
        }
        let answer_time = if room.capabilities().leases { ANSWER_TIME } else { Duration::ZERO };
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let wakeup = Arc::new(Wakeup(EventFd::from_value_and_flags(0, flags)?));
        let waker = Waker::from(Arc::clone(&wakeup));
        let mut context = Context::from_waker(&waker);
        let mut waited = false;
        let entered = loop {
            if let Poll::Ready(result) = entry.as_mut().poll(&mut context) {
                break result.map(Entered::Continue).map_err(WaitError::from);
            }
            waited = true;
            let next = match answer_time.checked_sub(started.elapsed()) {
                _ if !self.report.is_wanted() || request.patience == Patience::None => None,
                Some(left) if !left.is_zero() => Some(left),
                _ => {
                    self.report.waiting(started.elapsed(), &room.snapshot()?);
                    Some(SNAPSHOT_INTERVAL)
                }
            };
            match self.sleep(Some(&wakeup), next) {
                Ok(None) => wakeup.clear(),
                Ok(Some(signal)) => break Ok(Entered::Break(signal)),
                Err(error) => break Err(error),
            }
        };
        if waited {
            self.report.done();
        }
        entered
    }

    /// Sleeps until the task is woken, the time is over, or a signal arrives.
    fn sleep(
        &self,
        wakeup: Option<&Wakeup>,
        time: Option<Duration>,
    ) -> Result<Option<Signal>, WaitError> {
        let mut sources = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        // poll(2) reports a hang-up without a flag for it.
        sources.extend(self.caller.map(|caller| PollFd::new(caller, PollFlags::empty())));
        sources.extend(wakeup.map(|wakeup| PollFd::new(wakeup.0.as_fd(), PollFlags::POLLIN)));
        wait_for(&mut sources, time)?;
        if self.caller.is_some() && sources[1].any() == Some(true) {
            return Err(WaitError::CallerGone);
        }
        while let Some(arrival) = self.signals.next()? {
            // A window that changes its size does not end the wait.
            if arrival.signal != Signal::SIGWINCH {
                return Ok(Some(arrival.signal));
            }
        }
        Ok(None)
    }
}

/// Wakes this thread from a poll.
struct Wakeup(EventFd);

impl Wakeup {
    fn clear(&self) {
        // It fails if the counter is zero.
        _ = self.0.read();
    }
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // It fails only if the counter is full. Then the thread wakes anyway.
        _ = self.0.write(1);
    }
}
