//! The active player: asks, is inside, leaves.

use std::collections::VecDeque;
use std::time::Duration;

use thiserror::Error;

use crate::death::Death;
use crate::message::{GroupMessage, ProcessMessage};
use crate::name::{MemberId, ProcessId, home};
use crate::settings::Settings;
use crate::time::Time;

/// A process that enters one session at a time, without sockets or clocks like [`Member`](crate::Member).
///
/// ```
/// use grouplock_quorum::{GroupMessage, Process, ProcessId, Settings, Standing, Time};
///
/// let mut process = Process::new(ProcessId(1), 3, Settings::default());
/// process.ask(Time::ZERO, "release", None, 0)?;
/// let (home, _ask) = process.poll_transmit().unwrap();
///
/// // … carried to its home, which some time later answers:
/// let enter = GroupMessage::Enter { attempt: 1, epoch: 5, heard: Time::ZERO, recovered: None };
/// process.handle(Time::ZERO, home, enter);
/// assert_eq!(process.standing(), Standing::Inside { epoch: 5, valid_until: None });
/// process.leave();
/// assert_eq!(process.standing(), Standing::Outside);
/// # Ok::<(), grouplock_quorum::Busy>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    me: ProcessId,
    members: u16,
    retry: Duration,
    lease: Option<Duration>,
    /// What it is called on its machine.
    pid: u32,
    /// How long a message to its home takes.
    delay: Duration,
    /// The number of the last request.
    attempt: u64,
    state: State,
    out: VecDeque<(MemberId, ProcessMessage)>,
    /// When to say something again.
    speak_at: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Outside,
    Lost,
    Asking { session: String, stay: Option<Duration>, priority: i32, at: MemberId },
    Inside { home: MemberId, epoch: u64, heard: Time, recovered: Option<Death> },
}

/// How a process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It wants nothing.
    Outside,
    /// It waits.
    Waiting,
    /// It is inside.
    Inside {
        /// The epoch of the stage.
        epoch: u64,
        /// When it has to be out unless it hears from its home before.
        valid_until: Option<Time>,
    },
    /// It was inside, but its lease ran out or its home does not know it any more.
    Lost,
}

/// A process asks for one thing at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} waits or is inside already: it has to leave first")]
pub struct Busy(pub ProcessId);

impl Process {
    /// A process that has not asked for anything yet, in a cluster of `members`.
    pub fn new(me: ProcessId, members: u16, settings: Settings) -> Self {
        Process {
            me,
            members,
            retry: settings.retry,
            lease: settings.lease,
            pid: 0,
            delay: Duration::ZERO,
            attempt: 0,
            state: State::Outside,
            out: VecDeque::new(),
            speak_at: None,
        }
    }

    /// What it is called on its machine: told to the next stage if it dies inside.
    #[must_use]
    pub fn with_pid(self, pid: u32) -> Self {
        Process { pid, ..self }
    }

    /// How long a message between it and the home it asks takes, as far as that was measured: the paper's tc. A request that is made from now
    /// on joins a stage under way only if it will be out in time all the same.
    pub fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// Asks for a session.
    ///
    /// # Errors
    /// [`Busy`] if the last request is not over.
    pub fn ask(
        &mut self,
        now: Time,
        session: &str,
        stay: Option<Duration>,
        priority: i32,
    ) -> Result<(), Busy> {
        if matches!(self.state, State::Asking { .. } | State::Inside { .. }) {
            return Err(Busy(self.me));
        }
        self.attempt += 1;
        let (at, session) = (home(session, self.members), session.to_owned());
        self.state = State::Asking { session, stay, priority, at };
        self.speak(now);
        Ok(())
    }

    /// Asks another member, which stands in for the home that cannot be reached ([`homes`](crate::homes) tells the order).
    pub fn turn_to(&mut self, now: Time, member: MemberId) {
        if let State::Asking { at, .. } = &mut self.state
            && *at != member
        {
            *at = member;
            self.speak(now);
        }
    }

    /// Leaves, or gives up waiting.
    pub fn leave(&mut self) {
        self.go(matches!(self.state, State::Inside { .. }));
    }

    /// The same for one that did not want to be inside any more when it was let in, and has looked at nothing.
    pub fn withdraw(&mut self) {
        self.go(false);
    }

    fn go(&mut self, entered: bool) {
        let home = match &self.state {
            State::Outside | State::Lost => None,
            State::Asking { at, .. } => Some(*at),
            State::Inside { home, .. } => Some(*home),
        };
        self.state = State::Outside;
        self.speak_at = None;
        if let Some(home) = home {
            self.out.push_back((home, ProcessMessage::Leave { attempt: self.attempt, entered }));
        }
    }

    /// A message from the home of a session.
    pub fn handle(&mut self, now: Time, from: MemberId, message: GroupMessage) {
        match message {
            GroupMessage::Enter { attempt, epoch, heard, recovered } if attempt == self.attempt => {
                match &mut self.state {
                    State::Asking { at, .. } => {
                        // Another may have been asked in the meantime.
                        let other = Some(*at).filter(|at| *at != from);
                        self.state = State::Inside { home: from, epoch, heard, recovered };
                        self.speak_at = self.lease.map(|lease| heard + lease / 4);
                        if let Some(other) = other {
                            self.deny(other, attempt);
                        }
                    }
                    State::Inside { home, heard: last, .. } if *home == from => {
                        *last = heard.max(*last);
                    }
                    State::Inside { .. } | State::Outside | State::Lost => self.deny(from, attempt),
                }
            }
            GroupMessage::Enter { attempt, .. } => self.deny(from, attempt),
            GroupMessage::Renewed { attempt, heard } if attempt == self.attempt => {
                if let State::Inside { home, heard: last, .. } = &mut self.state
                    && *home == from
                {
                    *last = heard.max(*last);
                }
            }
            GroupMessage::Gone { attempt } if attempt == self.attempt => {
                if matches!(self.state, State::Inside { home, .. } if home == from) {
                    self.state = State::Lost;
                    self.speak_at = None;
                }
            }
            GroupMessage::Renewed { .. } | GroupMessage::Gone { .. } => {}
        }
        self.lose_if_late(now);
    }

    /// It is later.
    pub fn handle_timeout(&mut self, now: Time) {
        self.lose_if_late(now);
        if self.speak_at.is_some_and(|at| at <= now) {
            self.speak(now);
        }
    }

    /// The connection to its home is a new one, and what was said on the old one may be lost: says it again.
    pub fn handle_reconnect(&mut self, now: Time) {
        self.lose_if_late(now);
        self.speak(now);
    }

    /// The same for one that is out: its last request is over.
    pub fn leave_again(&mut self, home: MemberId) {
        if matches!(self.state, State::Outside | State::Lost) {
            self.deny(home, self.attempt);
        }
    }

    /// What to send, and to whom.
    pub fn poll_transmit(&mut self) -> Option<(MemberId, ProcessMessage)> {
        self.out.pop_front()
    }

    /// When to call [`handle_timeout`](Process::handle_timeout) if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Time> {
        [self.speak_at, self.valid_until()].into_iter().flatten().min()
    }

    /// How it stands. Whether the lease has run out is noticed by [`handle_timeout`](Process::handle_timeout).
    pub fn standing(&self) -> Standing {
        match self.state {
            State::Outside => Standing::Outside,
            State::Lost => Standing::Lost,
            State::Asking { .. } => Standing::Waiting,
            State::Inside { epoch, .. } => {
                Standing::Inside { epoch, valid_until: self.valid_until() }
            }
        }
    }

    /// Who had died inside when it was let in.
    pub fn recovered(&self) -> Option<&Death> {
        match &self.state {
            State::Inside { recovered, .. } => recovered.as_ref(),
            _ => None,
        }
    }

    /// Who this is.
    pub fn id(&self) -> ProcessId {
        self.me
    }

    /// The home counts the lease from when it hears, which is later than when we spoke.
    fn valid_until(&self) -> Option<Time> {
        let State::Inside { heard, .. } = self.state else { return None };
        self.lease.map(|lease| heard + lease)
    }

    fn lose_if_late(&mut self, now: Time) {
        if self.valid_until().is_some_and(|until| until <= now) {
            self.leave();
            self.state = State::Lost;
        }
    }

    /// Answers an admission that is not wanted: the request was given up, and this crossed it or is a copy.
    fn deny(&mut self, home: MemberId, attempt: u64) {
        self.out.push_back((home, ProcessMessage::Leave { attempt, entered: false }));
    }

    fn speak(&mut self, now: Time) {
        let (attempt, sent) = (self.attempt, now);
        match &self.state {
            State::Outside | State::Lost => self.speak_at = None,
            State::Asking { session, stay, priority, at: to } => {
                let (session, stay, priority) = (session.clone(), *stay, *priority);
                let (delay, pid) = (self.delay, self.pid);
                let ask =
                    ProcessMessage::Ask { attempt, session, stay, priority, sent, delay, pid };
                self.out.push_back((*to, ask));
                self.speak_at = Some(now + self.retry);
            }
            State::Inside { home, .. } => {
                self.out.push_back((*home, ProcessMessage::Renew { attempt, sent }));
                self.speak_at = self.lease.map(|lease| now + lease / 4);
            }
        }
    }
}
