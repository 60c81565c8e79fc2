//! Entering a room with an ear open for signals.

use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use grouplock_room::{Guard, Patience, Place, Room, RoomError, RoomOptions, Snapshot};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::Signal;

use crate::handle::wait_for;
use crate::place::places;
use crate::signals::Signals;

/// How often the room is looked at for somebody who watches us wait.
const LOOK: Duration = Duration::from_millis(500);

/// How often a room without a place for another participant is asked again. Nobody tells us when there is one.
const FULL: Duration = Duration::from_millis(100);

/// How long servers may take to answer before that counts as waiting.
const ANSWER: Duration = Duration::from_millis(100);

/// What somebody wants to enter, and how.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) place: Place,
    pub(crate) room: String,
    pub(crate) session: String,
    pub(crate) alone: bool,
    pub(crate) at_most: Option<NonZeroU32>,
    pub(crate) options: RoomOptions,
    pub(crate) priority: i32,
    pub(crate) expected: Option<Duration>,
    pub(crate) patience: Patience,
    /// Whether it waits too where the room has no place for another participant.
    pub(crate) waits_if_full: bool,
}

/// How a wait ended.
pub(crate) enum Ended {
    Inside(Guard<'static>),
    /// A signal came; nothing is left in the queue.
    Signalled(Signal),
    /// Nobody is there any more for whom we wait; nothing is left in the queue.
    HungUp,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum WaitError {
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error("cannot wait: {0}")]
    System(#[from] io::Error),
}

impl From<Errno> for WaitError {
    fn from(errno: Errno) -> Self {
        WaitError::System(errno.into())
    }
}

/// Those who want to know how it goes.
pub(crate) trait Audience {
    /// Whether anybody looks: else the room is not asked for snapshots.
    fn looks(&self) -> bool;
    /// It has been waited that long, and so the room looks now.
    fn waiting(&mut self, waited: Duration, room: &Snapshot);
    /// The wait is over.
    fn done(&mut self);
}

/// Opens the room and enters. `caller` is a descriptor that hangs up when nobody wants to enter any more.
pub(crate) fn enter(
    wish: &Wish,
    signals: &Signals,
    caller: Option<BorrowedFd<'_>>,
    audience: &mut dyn Audience,
) -> Result<Ended, WaitError> {
    loop {
        match enter_once(wish, signals, caller, audience)? {
            // Nothing of us is in the queue while we are stopped: else everybody behind us would wait for us.
            Ended::Signalled(stop @ Signal::SIGTSTP) => signals.stop_by(stop)?,
            ended => return Ok(ended),
        }
    }
}

/// The same, but it is the caller who stops if it was told to.
pub(crate) fn enter_once(
    wish: &Wish,
    signals: &Signals,
    caller: Option<BorrowedFd<'_>>,
    audience: &mut dyn Audience,
) -> Result<Ended, WaitError> {
    // Somebody may remove the room between our opening and entering it; the next one is as good.
    let mut attempts = 0;
    let started = Instant::now();
    loop {
        let room = places().open(&wish.place, &wish.room, &wish.options)?;
        match enter_room(&room, wish, signals, caller, audience) {
            Err(WaitError::Room(RoomError::Removed { .. })) if attempts < 10 => attempts += 1,
            Err(WaitError::Room(RoomError::Full { .. }))
                if wish.waits_if_full && wish.patience != Patience::None =>
            {
                if wish.patience.exhausted() {
                    return Err(RoomError::TimedOut { waited: started.elapsed() }.into());
                }
                let left = wish.patience.deadline();
                let left = left.map(|time| time.saturating_duration_since(Instant::now()));
                let next = left.map_or(FULL, |left| left.min(FULL));
                if let Some(ended) = doze(signals, None, caller, Some(next))? {
                    return Ok(ended);
                }
            }
            done => return done,
        }
    }
}

fn enter_room(
    room: &Room,
    wish: &Wish,
    signals: &Signals,
    caller: Option<BorrowedFd<'_>>,
    audience: &mut dyn Audience,
) -> Result<Ended, WaitError> {
    let mut request = room.request(&wish.session).priority(wish.priority).patience(wish.patience);
    if wish.alone {
        request = request.alone();
    }
    if let Some(holders) = wish.at_most {
        request = request.at_most(holders);
    }
    if let Some(expected) = wish.expected {
        request = request.expected(expected);
    }
    let started = Instant::now();
    let mut entry = pin!(request.enter_async());
    // Most often nobody has to wait, and then a bell is not worth its system call.
    let mut silent = Context::from_waker(Waker::noop());
    if wish.patience == Patience::None
        && let Poll::Ready(result) = entry.as_mut().poll(&mut silent)
    {
        return Ok(Ended::Inside(result?));
    }
    let unseen = if room.capabilities().leases { ANSWER } else { Duration::ZERO };
    let bell = EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
    let bell = Arc::new(Bell(bell?));
    let waker = Waker::from(Arc::clone(&bell));
    let mut context = Context::from_waker(&waker);
    let mut waited = false;
    let ended = loop {
        if let Poll::Ready(result) = entry.as_mut().poll(&mut context) {
            break result.map(Ended::Inside).map_err(WaitError::from);
        }
        waited = true;
        let next = match unseen.checked_sub(started.elapsed()) {
            _ if !audience.looks() || wish.patience == Patience::None => None,
            Some(answer) if !answer.is_zero() => Some(answer),
            _ => {
                audience.waiting(started.elapsed(), &room.snapshot()?);
                Some(LOOK)
            }
        };
        match doze(signals, Some(&bell), caller, next)? {
            Some(ended) => break Ok(ended),
            None => bell.silence(),
        }
    };
    if waited {
        audience.done();
    }
    ended
}

/// Sleeps until the bell rings, it is time for a look, or somebody wants the wait to end.
fn doze(
    signals: &Signals,
    bell: Option<&Bell>,
    caller: Option<BorrowedFd<'_>>,
    time: Option<Duration>,
) -> Result<Option<Ended>, WaitError> {
    let mut sources = vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    // That it hangs up is told without being asked for.
    sources.extend(caller.map(|caller| PollFd::new(caller, PollFlags::empty())));
    sources.extend(bell.map(|bell| PollFd::new(bell.0.as_fd(), PollFlags::POLLIN)));
    match wait_for(&mut sources, time) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    if caller.is_some() && sources[1].any() == Some(true) {
        return Ok(Some(Ended::HungUp));
    }
    while let Some(arrival) = signals.next()? {
        // A window that changes its size is no reason to give up.
        if arrival.signal != Signal::SIGWINCH {
            return Ok(Some(Ended::Signalled(arrival.signal)));
        }
    }
    Ok(None)
}

/// Wakes this thread from a poll.
struct Bell(EventFd);

impl Bell {
    fn silence(&self) {
        // It may not have rung.
        _ = self.0.read();
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // It can only fail if it has rung very often and nobody has listened yet, who then will.
        _ = self.0.write(1);
    }
}
