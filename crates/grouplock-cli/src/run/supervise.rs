//! While the command runs.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use grouplock_room::{Guard, Loss, LossWatch, Standing};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{getpgid, getpgrp};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::arguments::OnLoss;
use super::child::{Child, Prepared};
use super::events::{Event, Events};
use super::guardian::Guardian;
use super::words::Teller;
use super::{RunError, family};
use crate::exit;
use crate::signals::{Arrival, Signals};

/// A command that ends sooner is not worth a thread that watches its holding: nothing that takes a holding away
/// is that fast.
const UNWATCHED: Duration = Duration::from_millis(25);

/// How long a command may take to end after its holding was lost.
const GRACE: Duration = Duration::from_secs(5);

/// What it takes to look after a command.
pub(super) struct Supervision<'a> {
    pub(super) signals: &'a Signals,
    pub(super) guard: &'a Guard<'static>,
    pub(super) on_loss: OnLoss,
}

/// How it ended.
pub(super) struct Over {
    pub(super) code: u8,
    pub(super) loss: Option<Loss>,
    /// Ends with the command; to be dismissed when everything else is done, so that nobody waits for it.
    pub(super) guardian: Guardian,
}

impl Supervision<'_> {
    /// Runs the command, and returns when it has ended.
    pub(super) fn run(
        &self,
        command: &Prepared,
        events: &mut Events,
        teller: &Teller,
    ) -> Result<Over, RunError> {
        let guardian = Guardian::post(None)?;
        let child = command.fork(self.signals, &guardian)?;
        let over = self.look_after(&child, guardian, events, teller);
        if over.is_err() {
            // Whatever went wrong with us: once we have left, the command must not be there any more.
            family::kill(child.pid, &child.handle);
            while waitpid(child.pid, None) == Err(nix::errno::Errno::EINTR) {}
        }
        over
    }

    fn look_after(
        &self,
        child: &Child,
        mut guardian: Guardian,
        events: &mut Events,
        teller: &Teller,
    ) -> Result<Over, RunError> {
        events.tell(&Event::Started { pid: child.pid.as_raw() });
        let mut watch: Option<Watch> = None;
        let mut loss: Option<Loss> = None;
        let mut kill_at: Option<Instant> = None;
        let code = loop {
            let wait = match (&watch, kill_at) {
                (None, _) => Some(UNWATCHED),
                (_, Some(time)) => Some(time.saturating_duration_since(Instant::now())),
                (Some(_), None) => None,
            };
            if !self.doze(watch.as_ref(), wait)? && watch.is_none() {
                watch = Some(Watch::start(self.guard.watch())?);
            }
            while let Some(arrival) =
                self.signals.next().map_err(RunError::system("read signals"))?
            {
                self.pass_on(arrival, child, events);
            }
            if let Some(code) = self.ended(child, events)? {
                break code;
            }
            if guardian.is_gone() {
                guardian = Guardian::post(Some(child))?;
            }
            if loss.is_none()
                && let Some(found) = watch.as_ref().and_then(Watch::loss)
            {
                events.tell(&Event::Lost { reason: found.to_string() });
                teller.lost(&found, self.on_loss);
                loss = Some(found);
                kill_at = self.act_on_loss(child);
            }
            if kill_at.is_some_and(|time| time <= Instant::now()) {
                family::kill(child.pid, &child.handle);
                kill_at = None;
            }
        };
        Ok(Over { code, loss, guardian })
    }

    /// Sleeps until something happens, at most that long; false if nothing did.
    fn doze(&self, watch: Option<&Watch>, wait: Option<Duration>) -> Result<bool, RunError> {
        let mut sources = vec![PollFd::new(self.signals, PollFlags::IN)];
        // Once a loss is known there is nothing more to hear.
        let unheard = watch.filter(|watch| watch.loss().is_none());
        sources.extend(unheard.map(|watch| PollFd::new(&watch.bell, PollFlags::IN)));
        let failed = |source| RunError::System { what: "wait for the command", source };
        let wait = wait.map(Timespec::try_from).transpose();
        let wait = wait.map_err(|_| failed(io::ErrorKind::InvalidInput.into()))?;
        match poll(&mut sources, wait.as_ref()) {
            Ok(count) => Ok(count > 0),
            Err(rustix::io::Errno::INTR) => Ok(true),
            Err(errno) => Err(failed(errno.into())),
        }
    }

    /// What was sent to us is meant for the command.
    fn pass_on(&self, arrival: Arrival, child: &Child, events: &mut Events) {
        // The terminal has sent it to the command as well.
        if arrival.signal == Signal::SIGCHLD || arrival.from_terminal {
            return;
        }
        // The child is not reaped yet, so the number is its own; it may have become another user's.
        let passed = kill(child.pid, arrival.signal).is_ok();
        events.tell(&Event::Forwarded { signal: arrival.signal.as_str(), passed });
    }

    /// The exit code if the command has ended. Stops with it if it was stopped.
    fn ended(&self, child: &Child, events: &mut Events) -> Result<Option<u8>, RunError> {
        let news = waitpid(child.pid, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED));
        match news.map_err(RunError::system("wait for the command"))? {
            WaitStatus::Exited(_, code) => {
                let code = u8::try_from(code).unwrap_or(u8::MAX);
                events.tell(&Event::Exited { code: Some(code), signal: None });
                Ok(Some(code))
            }
            WaitStatus::Signaled(_, signal, _) => {
                events.tell(&Event::Exited { code: None, signal: Some(signal.as_str()) });
                Ok(Some(exit::by_signal(signal as i32)))
            }
            WaitStatus::Stopped(_, signal) => {
                self.stop_with(child, signal);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// If the command was stopped as a job of the shell that started us, the shell has to see us stopped. Stopped by
    /// SIGSTOP, or in a group of its own, it was stopped alone and will be continued alone.
    fn stop_with(&self, child: &Child, signal: Signal) {
        let job = matches!(signal, Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU);
        if job && getpgid(Some(child.pid)) == Ok(getpgrp()) && self.signals.stop_by(signal).is_ok()
        {
            // Only we may have been continued. One who runs already does not mind.
            _ = kill(child.pid, Signal::SIGCONT);
        }
    }

    /// When to kill the command.
    fn act_on_loss(&self, child: &Child) -> Option<Instant> {
        let now = Instant::now();
        match self.on_loss {
            OnLoss::Warn => None,
            OnLoss::Kill => Some(now),
            OnLoss::Term => {
                // If it has just ended, the next look tells. One that is stopped has to go on to end.
                _ = kill(child.pid, Signal::SIGTERM);
                _ = kill(child.pid, Signal::SIGCONT);
                let others_enter = self.guard.watch().valid_until();
                Some(others_enter.map_or(now + GRACE, |time| time.min(now + GRACE)))
            }
        }
    }
}

/// Learns of a loss on a thread of its own.
struct Watch {
    bell: Arc<OwnedFd>,
    found: Arc<Mutex<Option<Loss>>>,
}

impl Watch {
    fn start(holding: LossWatch) -> Result<Self, RunError> {
        let failed = |source| RunError::System { what: "watch the holding", source };
        let bell = eventfd(0, EventfdFlags::CLOEXEC).map_err(|errno| failed(errno.into()))?;
        let (bell, found) = (Arc::new(bell), Arc::new(Mutex::new(None)));
        let (theirs, put) = (Arc::clone(&bell), Arc::clone(&found));
        let watch = move || {
            if let Standing::Lost(loss) = holding.wait() {
                *put.lock().unwrap_or_else(PoisonError::into_inner) = Some(loss);
                // The first write to an event counter always fits.
                _ = rustix::io::write(theirs.as_fd(), &1_u64.to_ne_bytes());
            }
        };
        let thread = std::thread::Builder::new().name("holding".to_owned());
        thread.spawn(watch).map_err(failed)?;
        Ok(Watch { bell, found })
    }

    fn loss(&self) -> Option<Loss> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
