//! While the command runs.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use grouplock_room::Loss;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
use nix::unistd::{getpgid, getpgrp};

use super::arguments::OnLoss;
use super::child::{Child, News, Prepared};
use super::events::{Event, Events};
use super::guardian::Guardian;
use super::inside::{Awaited, Inside};
use super::words::Teller;
use super::{RunError, family};
use crate::exit::Ending;
use crate::handle::wait_for;
use crate::signals::{Arrival, Signals};

/// A command that ends sooner is not worth a thread that watches its holding: nothing that takes a holding away
/// is that fast.
const UNWATCHED: Duration = Duration::from_millis(25);

/// How long a command may take to end after its holding was lost.
const GRACE: Duration = Duration::from_secs(5);

/// What it takes to look after a command.
pub(super) struct Supervision<'a> {
    pub(super) signals: &'a Signals,
    pub(super) inside: &'a Inside,
    pub(super) on_loss: OnLoss,
}

/// How it ended.
pub(super) struct Over {
    pub(super) ending: Ending,
    pub(super) loss: Option<Loss>,
    /// Ends with the command; to be dismissed when everything else is done, so that nobody waits for it.
    pub(super) guardian: Guardian,
    /// Ends when the room has been left.
    pub(super) watch: Option<Watch>,
}

impl Supervision<'_> {
    /// Runs the command, and returns when it has ended.
    pub(super) fn run(
        &self,
        command: &Prepared,
        events: &mut Events,
        teller: &Teller,
    ) -> Result<Over, RunError> {
        let guardian = Guardian::post(None, self.inside)?;
        let child = command.fork(self.signals, &guardian, self.inside)?;
        let over = self.look_after(&child, guardian, events, teller);
        if over.is_err() {
            // Whatever went wrong with us: once we have left, the command must not be there any more.
            family::kill(child.pid, &child.handle);
            while waitpid(child.pid, None) == Err(Errno::EINTR) {}
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
        let ending = loop {
            let wait = match (&watch, kill_at) {
                (None, _) => Some(UNWATCHED),
                (_, Some(time)) => Some(time.saturating_duration_since(Instant::now())),
                (Some(_), None) => None,
            };
            if !self.doze(child, watch.as_ref(), wait)? && watch.is_none() {
                watch = Some(Watch::start(self.inside.losses())?);
            }
            while let Some(arrival) =
                self.signals.next().map_err(RunError::system("read signals"))?
            {
                self.pass_on(arrival, child, &guardian, events);
            }
            if let Some(ending) = self.ended(child, events)? {
                break ending;
            }
            reap_others(child, &guardian);
            if guardian.is_gone() {
                guardian = Guardian::post(Some(child), self.inside)?;
            }
            if loss.is_none()
                && let Some((room, found)) = watch.as_ref().and_then(Watch::loss)
            {
                events.tell(&Event::Lost { room: &room, reason: found.to_string() });
                teller.lost(&room, &found, self.on_loss);
                loss = Some(found);
                kill_at = self.act_on_loss(child);
            }
            if kill_at.is_some_and(|time| time <= Instant::now()) {
                family::kill(child.pid, &child.handle);
                kill_at = None;
            }
        };
        Ok(Over { ending, loss, guardian, watch })
    }

    /// Sleeps until something happens, at most that long; false if nothing did.
    fn doze(
        &self,
        child: &Child,
        watch: Option<&Watch>,
        wait: Option<Duration>,
    ) -> Result<bool, RunError> {
        let source = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut sources = vec![source(self.signals.as_fd()), source(child.handle.as_fd())];
        // Once a loss is known there is nothing more to hear.
        let unheard = watch.filter(|watch| watch.loss().is_none());
        sources.extend(unheard.map(|watch| source(watch.bell.as_fd())));
        match wait_for(&mut sources, wait) {
            Ok(count) => Ok(count > 0),
            Err(Errno::EINTR) => Ok(true),
            Err(errno) => Err(RunError::system("wait for the command")(errno)),
        }
    }

    /// What was sent to us is meant for the command, unless it was sent to the command as well.
    fn pass_on(&self, arrival: Arrival, child: &Child, guardian: &Guardian, events: &mut Events) {
        let Arrival { signal, from_terminal } = arrival;
        if signal == Signal::SIGCHLD {
            return;
        }
        // The guardian is asked in any case, since that makes it forget.
        let whole_group = guardian.has_got(signal) || from_terminal;
        if whole_group && is_in_our_group(child) {
            return;
        }
        // It may have ended, or have become another user's.
        let passed = child.handle.send(signal as i32).is_ok();
        events.tell(&Event::Forwarded { signal: signal.as_str(), passed });
    }

    /// How the command has ended, if it has. Stops with it if it was stopped.
    fn ended(&self, child: &Child, events: &mut Events) -> Result<Option<Ending>, RunError> {
        match child.news().map_err(RunError::system("wait for the command"))? {
            Some(News::Ended(ending)) => {
                events.tell(&Event::exited(ending));
                Ok(Some(ending))
            }
            Some(News::Stopped(number)) => {
                self.stop_with(child, number);
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// If the command was stopped as a job of the shell that started us, the shell has to see us stopped. Stopped by
    /// SIGSTOP, or in a group of its own, it was stopped alone and will be continued alone.
    fn stop_with(&self, child: &Child, number: i32) {
        let job = [Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU]
            .into_iter()
            .find(|signal| *signal as i32 == number);
        if let Some(signal) = job
            && is_in_our_group(child)
            && self.signals.stop_by(signal).is_ok()
        {
            // Only we may have been continued. One who runs already does not mind.
            _ = child.handle.send(Signal::SIGCONT as i32);
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
                _ = child.handle.send(Signal::SIGTERM as i32);
                _ = child.handle.send(Signal::SIGCONT as i32);
                let others_enter = self.inside.valid_until();
                Some(others_enter.map_or(now + GRACE, |time| time.min(now + GRACE)))
            }
        }
    }
}

fn is_in_our_group(child: &Child) -> bool {
    getpgid(Some(child.pid)) == Ok(getpgrp())
}

/// Reaps children that are not ours: as the first process of a container we get all orphans.
fn reap_others(child: &Child, guardian: &Guardian) {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    while let Some(pid) = waitid(Id::All, look).ok().and_then(|status| status.pid())
        && pid != child.pid
        && pid != guardian.pid()
    {
        _ = waitpid(pid, None);
    }
}

/// Learns of a loss, on a thread for each place.
pub(super) struct Watch {
    bell: Arc<EventFd>,
    found: Arc<Mutex<Option<(String, Loss)>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Watch {
    fn start(places: Vec<Awaited>) -> Result<Self, RunError> {
        let failed = |source: io::Error| RunError::System { what: "watch the holding", source };
        let bell = EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC);
        let bell = Arc::new(bell.map_err(|errno| failed(errno.into()))?);
        let mut watch = Watch { bell, found: Arc::default(), threads: Vec::new() };
        for place in places {
            let (bell, found) = (Arc::clone(&watch.bell), Arc::clone(&watch.found));
            let wait = move || {
                if let Some(loss) = place() {
                    found.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(loss);
                    // An event counter has space for as many as we are.
                    _ = bell.write(1);
                }
            };
            let thread = std::thread::Builder::new().name("holding".to_owned());
            watch.threads.push(thread.spawn(wait).map_err(failed)?);
        }
        Ok(watch)
    }

    fn loss(&self) -> Option<(String, Loss)> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for the end of the threads, once the rooms have been left: with them goes the last share of a room, whose slot
    /// would else stay locked for as long as somebody has inherited the descriptor.
    pub(super) fn end(self) {
        for thread in self.threads {
            // It does not panic.
            _ = thread.join();
        }
    }
}
