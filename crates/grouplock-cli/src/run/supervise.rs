//! Supervising the command while it runs.

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

use super::RunError;
use super::arguments::OnLoss;
use super::child::{Child, ChildEvent, PreparedCommand};
use super::guardian::Guardian;
use super::holdings::{Holdings, LossWait};
use crate::entering::StderrReport;
use crate::events::{Event, Events};
use crate::exit::Ending;
use crate::system::descendants;
use crate::system::process::wait_for;
use crate::system::signals::{Arrival, Signals};

/// For this time the holding has no watch. Most commands end sooner, and nothing takes a holding
/// away that fast.
const UNWATCHED: Duration = Duration::from_millis(25);

/// The time in which a command must end after its holding was lost.
const GRACE: Duration = Duration::from_secs(5);

/// What is needed to supervise a command.
pub(super) struct Supervision<'a> {
    pub(super) signals: &'a Signals,
    pub(super) holdings: &'a Holdings,
    pub(super) on_loss: OnLoss,
}

/// The result.
pub(super) struct Finished {
    pub(super) ending: Ending,
    pub(super) loss: Option<Loss>,
    /// It ends with the command. Dismiss it at the very end, so that nothing waits for it.
    pub(super) guardian: Guardian,
    /// It ends after the room was left.
    pub(super) watch: Option<Watch>,
}

impl Supervision<'_> {
    /// Runs the command, and returns when it has ended.
    pub(super) fn run(
        &self,
        command: &PreparedCommand,
        events: &mut Events,
        report: &StderrReport,
    ) -> Result<Finished, RunError> {
        let guardian = Guardian::start(None, self.holdings)?;
        let child = command.fork(self.signals, &guardian, self.holdings)?;
        let over = self.look_after(&child, guardian, events, report);
        if over.is_err() {
            // After grouplock has left the room, the command must not run any more.
            descendants::kill(child.pid, &child.handle);
            while waitpid(child.pid, None) == Err(Errno::EINTR) {}
        }
        over
    }

    fn look_after(
        &self,
        child: &Child,
        mut guardian: Guardian,
        events: &mut Events,
        report: &StderrReport,
    ) -> Result<Finished, RunError> {
        events.write(&Event::Started { pid: child.pid.as_raw() });
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
                watch = Some(Watch::start(self.holdings.losses())?);
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
                guardian = Guardian::start(Some(child), self.holdings)?;
            }
            if loss.is_none()
                && let Some((room, found)) = watch.as_ref().and_then(Watch::loss)
            {
                events.write(&Event::Lost { room: &room, reason: found.to_string() });
                report.lost(&room, &found, self.on_loss);
                loss = Some(found);
                kill_at = self.act_on_loss(child);
            }
            if kill_at.is_some_and(|time| time <= Instant::now()) {
                descendants::kill(child.pid, &child.handle);
                kill_at = None;
            }
        };
        Ok(Finished { ending, loss, guardian, watch })
    }

    /// Sleeps until something happens, at most that long. Returns whether something happened.
    fn doze(
        &self,
        child: &Child,
        watch: Option<&Watch>,
        wait: Option<Duration>,
    ) -> Result<bool, RunError> {
        let source = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut sources = vec![source(self.signals.as_fd()), source(child.handle.as_fd())];
        // After a loss its event is not needed any more.
        let unheard = watch.filter(|watch| watch.loss().is_none());
        sources.extend(unheard.map(|watch| source(watch.bell.as_fd())));
        let ready = wait_for(&mut sources, wait);
        ready.map(|count| count > 0).map_err(RunError::system("wait for the command"))
    }

    /// Passes a signal on to the command, unless the command received it too.
    fn pass_on(&self, arrival: Arrival, child: &Child, guardian: &Guardian, events: &mut Events) {
        let Arrival { signal, from_terminal } = arrival;
        if signal == Signal::SIGCHLD {
            return;
        }
        // Always ask the guardian, because that also makes it forget the signal.
        let whole_group = guardian.was_sent_to_group(signal) || from_terminal;
        if whole_group && is_in_our_group(child) {
            return;
        }
        // It fails if the command has ended, or belongs to another user.
        let passed = child.handle.send(signal as i32).is_ok();
        events.write(&Event::Forwarded { signal: signal.as_str(), passed });
    }

    /// The ending of the command, if it has ended. If the command was stopped, this process stops
    /// with it.
    fn ended(&self, child: &Child, events: &mut Events) -> Result<Option<Ending>, RunError> {
        match child.next_event().map_err(RunError::system("wait for the command"))? {
            Some(ChildEvent::Ended(ending)) => {
                events.write(&Event::exited(ending));
                Ok(Some(ending))
            }
            Some(ChildEvent::Stopped(number)) => {
                self.stop_with(child, number);
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// If the command was stopped as a job of the shell, the shell must see grouplock stopped too.
    /// If it was stopped by SIGSTOP, or is in another process group, it was stopped alone and will
    /// be continued alone.
    fn stop_with(&self, child: &Child, number: i32) {
        let job = [Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU]
            .into_iter()
            .find(|signal| *signal as i32 == number);
        if let Some(signal) = job
            && is_in_our_group(child)
            && self.signals.stop_by(signal).is_ok()
        {
            // Perhaps only grouplock was continued. SIGCONT does nothing to a process that runs.
            _ = child.handle.send(Signal::SIGCONT as i32);
        }
    }

    /// Acts on a loss. Returns when to kill the command.
    fn act_on_loss(&self, child: &Child) -> Option<Instant> {
        let now = Instant::now();
        match self.on_loss {
            OnLoss::Warn => None,
            OnLoss::Kill => Some(now),
            OnLoss::Term => {
                // It fails if the command has just ended. A stopped command must continue to end.
                _ = child.handle.send(Signal::SIGTERM as i32);
                _ = child.handle.send(Signal::SIGCONT as i32);
                let others_enter = self.holdings.valid_until();
                Some(others_enter.map_or(now + GRACE, |time| time.min(now + GRACE)))
            }
        }
    }
}

fn is_in_our_group(child: &Child) -> bool {
    getpgid(Some(child.pid)) == Ok(getpgrp())
}

/// Reaps other children. The first process of a container gets all orphans.
fn reap_others(child: &Child, guardian: &Guardian) {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    while let Some(pid) = waitid(Id::All, look).ok().and_then(|status| status.pid())
        && pid != child.pid
        && pid != guardian.pid()
    {
        _ = waitpid(pid, None);
    }
}

/// Waits for the loss of a holding, on a thread for each holding.
pub(super) struct Watch {
    bell: Arc<EventFd>,
    found: Arc<Mutex<Option<(String, Loss)>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Watch {
    fn start(places: Vec<LossWait>) -> Result<Self, RunError> {
        let failed = |source: io::Error| RunError::System { what: "watch the holding", source };
        let bell = EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC);
        let bell = Arc::new(bell.map_err(|errno| failed(errno.into()))?);
        let mut watch = Watch { bell, found: Arc::default(), threads: Vec::new() };
        for place in places {
            let (bell, found) = (Arc::clone(&watch.bell), Arc::clone(&watch.found));
            let wait = move || {
                if let Some(loss) = place() {
                    found.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(loss);
                    // It cannot overflow: there is one write for each thread.
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

    /// Waits for the end of the threads, after the rooms were left. Each thread keeps a room
    /// handle. As long as a handle lives, all processes that inherited the descriptor keep its slot
    /// locked.
    pub(super) fn end(self) {
        for thread in self.threads {
            // It does not panic.
            _ = thread.join();
        }
    }
}
