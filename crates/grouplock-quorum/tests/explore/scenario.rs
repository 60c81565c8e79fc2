//! What can happen in an exploration: who wants what, and what may go wrong how often.

use std::sync::Arc;
use std::time::Duration;

use grouplock_quorum::{Admission, Coterie, MemberId, Precedence, Settings, Votes, home};

/// When there are leases.
pub(crate) const LEASE: Duration = Duration::from_micros(64);

/// What is explored: everything that can happen within these bounds.
#[derive(Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is a thing that can happen or not")]
pub(crate) struct Scenario {
    pub(crate) coterie: Arc<Coterie>,
    pub(crate) precedence: Precedence,
    pub(crate) admission: Admission,
    pub(crate) votes: Votes,
    pub(crate) processes: Vec<Plan>,
    /// Messages between two parties arrive in the order in which they were sent.
    pub(crate) ordered: bool,
    /// Processes are where their group is: their messages take no time.
    pub(crate) direct: bool,
    /// Who waits may give up.
    pub(crate) cancel: bool,
    /// Whenever somebody leaves, the time is one later.
    pub(crate) clock: bool,
    /// How many messages may come twice.
    pub(crate) duplicates: u8,
    /// How many messages may be lost.
    pub(crate) losses: u8,
    /// How many times a connection from one member to another may break, with all that is on its
    /// way there. The one who sends is told when it has another.
    pub(crate) breaks: u8,
    /// How many times a member may stop and start again with what it saved.
    pub(crate) crashes: u8,
    /// With a member all its connections break, and everybody is told. Else nothing is lost and
    /// nobody is told.
    pub(crate) reconnect: bool,
    /// What a member finds on its disk then, or remembers of a room that is retired: for a mutant
    /// that finds nothing.
    pub(crate) forgetful: bool,
    /// Leases, and how many times `step` may pass. Whose time has come may do what it has to, or be
    /// late.
    pub(crate) passes: u8,
    /// So long that every lease runs out, unless it is said otherwise.
    pub(crate) step: Duration,
    /// How many messages may be on their way when time passes, or a member dies or forgets.
    pub(crate) under_way: usize,
    /// How many members may die for good.
    pub(crate) deaths: u8,
    /// How many members may lose their memory: they ask the others and wait for the lease of a
    /// vote.
    pub(crate) amnesias: u8,
    /// How many times a member may forget the room when it is idle there.
    pub(crate) retirements: u8,
    /// They do not wait: for a mutant.
    pub(crate) rash: bool,
    /// How many times a timer may go off though what it waits for is on the way.
    pub(crate) hasty: u8,
    /// How many times all timers may go off when nobody can do anything else.
    pub(crate) patience: u8,
}

/// What a process does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) home: u16,
    /// Which of the sessions with that home.
    pub(crate) nth: usize,
    pub(crate) priority: i32,
    pub(crate) stay: Option<u64>,
    pub(crate) rounds: u8,
    /// It does not give up, whatever others do.
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
    /// Reordering, processes at their group, nothing else going wrong.
    pub(crate) fn new(coterie: Coterie, processes: &[Plan]) -> Self {
        Scenario {
            coterie: Arc::new(coterie),
            precedence: Precedence::Static,
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
        }
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            precedence: self.precedence,
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
