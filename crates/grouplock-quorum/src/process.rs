//! The active player: a process that asks, is inside, and leaves.

use std::collections::VecDeque;
use std::time::Duration;

use thiserror::Error;

use crate::death::Death;
use crate::message::{GroupMessage, ProcessMessage};
use crate::name::{MemberId, ProcessId, home};
use crate::settings::Settings;
use crate::time::Time;

/// A process that enters one session at a time. Like [`Member`](crate::Member) it has no sockets
/// and no clock.
///
/// ```
/// use grouplock_quorum::{GroupMessage, Process, ProcessId, Settings, ProcessState, Time};
///
/// let mut process = Process::new(ProcessId(1), 3, Settings::default());
/// process.ask(Time::ZERO, "release", None, 0)?;
/// let (home, _ask) = process.poll_transmit().unwrap();
///
/// // … carried to its home, which some time later answers:
/// let enter = GroupMessage::Enter { attempt: 1, epoch: 5, heard: Time::ZERO, recovered: None };
/// process.handle(Time::ZERO, home, enter);
/// assert_eq!(process.state(), ProcessState::Inside { epoch: 5, valid_until: None });
/// process.leave();
/// assert_eq!(process.state(), ProcessState::Outside);
/// # Ok::<(), grouplock_quorum::Busy>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    me: ProcessId,
    members: u16,
    retry: Duration,
    lease: Option<Duration>,
    /// The id of the process on its machine.
    pid: u32,
    /// How long a message to its home takes.
    delay: Duration,
    /// The number of the last request.
    attempt: u64,
    state: State,
    out: VecDeque<(MemberId, ProcessMessage)>,
    /// When to repeat the last message.
    speak_at: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Outside,
    Lost,
    Asking { session: String, stay: Option<Duration>, priority: i32, at: MemberId },
    Inside { home: MemberId, epoch: u64, heard: Time, recovered: Option<Death> },
}

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProcessState {
    /// It has no request.
    Outside,
    /// It waits.
    Waiting,
    /// It is inside.
    Inside {
        /// The epoch of the stage.
        epoch: u64,
        /// When it must have left, unless its home renews the lease.
        valid_until: Option<Time>,
    },
    /// It was inside, but its lease has ended or its home no longer knows it.
    Lost,
}

/// A process can have only one request at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} waits or is inside already: it has to leave first")]
pub struct Busy(pub ProcessId);

impl Process {
    /// A process without a request, in a cluster of `members`.
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

    /// Sets the id of the process on its machine, for the report of its death.
    #[must_use]
    pub fn with_pid(self, pid: u32) -> Self {
        Process { pid, ..self }
    }

    /// Sets how long a message between the process and its home takes: the paper's tc. A later
    /// request joins a stage only if it can leave in time in spite of the delay.
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

    /// Asks another member, which stands in for a home that cannot be reached
    /// ([`homes`](crate::homes) gives the order).
    pub fn turn_to(&mut self, now: Time, member: MemberId) {
        if let State::Asking { at, .. } = &mut self.state
            && *at != member
        {
            *at = member;
            self.speak(now);
        }
    }

    /// Leaves, or withdraws the request.
    pub fn leave(&mut self) {
        self.go(matches!(self.state, State::Inside { .. }));
    }

    /// The same for a process that was admitted when it no longer wanted it. It has not learnt of
    /// deaths.
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

    /// Handles a message from the home of a session.
    pub fn handle(&mut self, now: Time, from: MemberId, message: GroupMessage) {
        match message {
            GroupMessage::Enter { attempt, epoch, heard, recovered } if attempt == self.attempt => {
                match &mut self.state {
                    State::Asking { at, .. } => {
                        // Another member may have been asked in the meantime.
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

    /// Handles the passing of time.
    pub fn handle_timeout(&mut self, now: Time) {
        self.lose_if_late(now);
        if self.speak_at.is_some_and(|at| at <= now) {
            self.speak(now);
        }
    }

    /// Repeats the last message after a reconnect: it may be lost.
    pub fn handle_reconnect(&mut self, now: Time) {
        self.lose_if_late(now);
        self.speak(now);
    }

    /// Repeats that the last request is over.
    pub fn leave_again(&mut self, home: MemberId) {
        if matches!(self.state, State::Outside | State::Lost) {
            self.deny(home, self.attempt);
        }
    }

    /// The next message, and its receiver.
    pub fn poll_transmit(&mut self) -> Option<(MemberId, ProcessMessage)> {
        self.out.pop_front()
    }

    /// When to call [`handle_timeout`](Process::handle_timeout) if nothing else happens.
    pub fn poll_timeout(&self) -> Option<Time> {
        [self.speak_at, self.valid_until()].into_iter().flatten().min()
    }

    /// Its state. [`handle_timeout`](Process::handle_timeout) notices the end of a lease.
    pub fn state(&self) -> ProcessState {
        match self.state {
            State::Outside => ProcessState::Outside,
            State::Lost => ProcessState::Lost,
            State::Asking { .. } => ProcessState::Waiting,
            State::Inside { epoch, .. } => {
                ProcessState::Inside { epoch, valid_until: self.valid_until() }
            }
        }
    }

    /// The death that it learnt of when it was admitted.
    pub fn recovered(&self) -> Option<&Death> {
        match &self.state {
            State::Inside { recovered, .. } => recovered.as_ref(),
            _ => None,
        }
    }

    /// Which process this is.
    pub fn id(&self) -> ProcessId {
        self.me
    }

    /// The home counts the lease from the time at which it hears us, which is later than the time
    /// at which we sent.
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

    /// Answers a grant that is not wanted: the request was withdrawn before, or the grant is a
    /// copy.
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
