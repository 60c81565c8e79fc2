//! The bounds of an exploration: the requests, and how often each fault may happen.

use std::sync::Arc;
use std::time::Duration;

use grouplock_quorum::{Admission, Coterie, MemberId, Precedence, Settings, Votes, home};

/// The lease, in scenarios with leases.
pub(crate) const LEASE: Duration = Duration::from_micros(64);

/// The exploration covers everything that can happen within these bounds.
#[derive(Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is a thing that can happen or not")]
pub(crate) struct Scenario {
    pub(crate) coterie: Arc<Coterie>,
    pub(crate) precedence: Precedence,
    /// A mutant: the rule that members use instead.
    pub(crate) mistaken: Option<Precedence>,
    pub(crate) admission: Admission,
    pub(crate) votes: Votes,
    pub(crate) processes: Vec<Plan>,
    /// Messages between two parties arrive in the order in which they were sent.
    pub(crate) ordered: bool,
    /// Processes are at their group: their messages take no time.
    pub(crate) direct: bool,
    /// Waiters may withdraw.
    pub(crate) cancel: bool,
    /// The time grows by one whenever a process asks or leaves.
    pub(crate) clock: bool,
    /// How many messages may arrive twice.
    pub(crate) duplicates: u8,
    /// How many messages may be lost.
    pub(crate) losses: u8,
    /// How many times a connection from one member to another may break, with all messages on it.
    /// The sender is notified when it has a new connection.
    pub(crate) breaks: u8,
    /// How many times a member may stop and start again with what it saved.
    pub(crate) crashes: u8,
    /// A member's crash breaks all its connections, and all others are notified. Otherwise nothing
    /// is lost and nobody is notified.
    pub(crate) reconnect: bool,
    /// What a member saves and what [can wait](grouplock_quorum::Record::can_wait) is not on its
    /// disk before it saves something else. When it stops, that is lost.
    pub(crate) late: bool,
    /// A mutant: a member finds nothing on its disk, and remembers nothing of a retired room.
    pub(crate) forgetful: bool,
    /// How many times `step` may pass. There are leases if it is not 0. A party whose time has come
    /// may act, or be late.
    pub(crate) passes: u8,
    /// Every lease expires in this time, unless a scenario says otherwise.
    pub(crate) step: Duration,
    /// How many messages may be on their way when time passes, or when a member dies or forgets.
    pub(crate) under_way: usize,
    /// How many members may die for good.
    pub(crate) deaths: u8,
    /// How many members may lose their memory. They ask the others and wait for the lease of a
    /// vote.
    pub(crate) amnesias: u8,
    /// How many times a member may forget the room when it is idle there.
    pub(crate) retirements: u8,
    /// A mutant: such members do not wait.
    pub(crate) rash: bool,
    /// How many times a timer may fire while its message is on its way.
    pub(crate) hasty: u8,
    /// How many times all timers may fire when nothing else can happen.
    pub(crate) patience: u8,
    /// Explored depth first, without messages that have no effect ([`State::drop_late`]).
    ///
    /// [`State::drop_late`]: crate::state::State::drop_late
    pub(crate) large: bool,
}

/// The plan of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) home: u16,
    /// The number of its session among those with that home.
    pub(crate) nth: usize,
    pub(crate) priority: i32,
    pub(crate) stay: Option<u64>,
    pub(crate) rounds: u8,
    /// It never withdraws.
    pub(crate) patient: bool,
}

/// One round, priority 0, session 0 at `home`.
pub(crate) fn at(home: u16) -> Plan {
    Plan { home, nth: 0, priority: 0, stay: None, rounds: 1, patient: false }
}

impl Plan {
    pub(crate) fn priority(self, priority: i32) -> Self {
        Plan { priority, ..self }
    }

    pub(crate) fn rounds(self, rounds: u8) -> Self {
        Plan { rounds, ..self }
    }

    pub(crate) fn patient(self) -> Self {
        Plan { patient: true, ..self }
    }

    pub(crate) fn session(self, nth: usize) -> Self {
        Plan { nth, ..self }
    }

    pub(crate) fn stay(self, micros: u64) -> Self {
        Plan { stay: Some(micros), ..self }
    }
}

impl Scenario {
    /// Messages are reordered, and processes are at their group. There are no other faults.
    pub(crate) fn new(coterie: Coterie, processes: &[Plan]) -> Self {
        Scenario {
            coterie: Arc::new(coterie),
            precedence: Precedence::Static,
            mistaken: None,
            admission: Admission::Together,
            votes: Votes::AnyQuorum,
            processes: processes.to_vec(),
            ordered: false,
            direct: true,
            cancel: false,
            clock: false,
            duplicates: 0,
            losses: 0,
            breaks: 0,
            crashes: 0,
            reconnect: false,
            late: false,
            forgetful: false,
            passes: 0,
            step: LEASE * 2,
            under_way: 0,
            deaths: 0,
            amnesias: 0,
            retirements: 0,
            rash: false,
            hasty: 0,
            patience: 0,
            large: false,
        }
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            precedence: self.mistaken.unwrap_or(self.precedence),
            admission: self.admission,
            votes: self.votes,
            retry: if self.passes > 0 { LEASE / 4 } else { Duration::from_millis(1) },
            lease: (self.passes > 0).then_some(LEASE),
        }
    }

    pub(crate) fn session(&self, plan: Plan) -> String {
        let members = self.coterie.members();
        let names = (0..).map(|n| format!("s{n}"));
        let mut here = names.filter(|name| home(name, members) == MemberId(plan.home));
        here.nth(plan.nth).expect("names do not run out")
    }
}
