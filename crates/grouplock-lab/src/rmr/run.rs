//! One run: a lock, a workload and a schedule, from the first step to the last.

use std::fmt;

use grouplock_algorithms::claims::Kind;

use super::RmrError;
use super::contention::{Contention, Largest};
use super::model::PerModel;
use super::schedule::Strategy;
use super::world::World;
use crate::memory::context;
use crate::subject::Subject;

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) strategy: Strategy,
    pub(crate) workload: Workload,
}

impl Case {
    /// Its name in a report about a lock of this kind with this number of processes.
    pub(crate) fn name(&self, kind: Kind, processes: usize) -> String {
        let mut name = self.strategy.to_string();
        if kind == Kind::Group {
            name = format!("{name}, {}", self.workload.sessions);
        }
        if self.workload.withdraws == Withdraws::Half {
            name.push_str(", half of the waiters withdraw");
        }
        if self.workload.active < processes {
            name = format!("{name}, {} take part", self.workload.active);
        }
        name
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sessions {
    /// Each process has its own session.
    Own,
    /// Each process has one of this number of sessions, and shares it with others.
    Fixed(u64),
    /// Each passage draws one of this number of sessions.
    Drawn(u64),
}

impl fmt::Display for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sessions::Drawn(1) => f.write_str("one session"),
            Sessions::Own => f.write_str("a session each"),
            Sessions::Fixed(count) => write!(f, "one of {count} sessions each"),
            Sessions::Drawn(count) => write!(f, "{count} sessions"),
        }
    }
}

/// Which requests are withdrawn if they have to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Withdraws {
    None,
    /// Drawn at random.
    Half,
    All,
}

/// The work of all processes. A passage's share of it depends on the seed, the process and the
/// passage's number, not on the schedule: so two schedules can be compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) sessions: Sessions,
    /// How many processes take part, the lowest ones; the others never leave their remainder
    /// sections.
    pub(crate) active: usize,
    pub(crate) passages: usize,
    /// Whether processes stay inside and outside for some time, a few of them for long.
    pub(crate) dwells: bool,
    pub(crate) withdraws: Withdraws,
    pub(crate) seed: u64,
}

impl Workload {
    fn draw(&self, process: usize, passage: usize, what: u64) -> fastrand::Rng {
        let place = (process as u64) << 32 ^ (passage as u64) << 2 ^ what;
        fastrand::Rng::with_seed(self.seed ^ place.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// The session of a passage: from one.
    pub(crate) fn session(&self, process: usize, passage: usize) -> u64 {
        match self.sessions {
            Sessions::Own => process as u64 + 1,
            Sessions::Fixed(count) => process as u64 % count + 1,
            Sessions::Drawn(count) => self.draw(process, passage, 0).u64(1..=count),
        }
    }

    /// After how many idle steps a request that has to wait is withdrawn, if it is.
    pub(crate) fn withdraws_after(&self, process: usize, passage: usize) -> Option<u32> {
        match self.withdraws {
            Withdraws::None => None,
            Withdraws::Half => {
                let mut draw = self.draw(process, passage, 3);
                draw.bool().then(|| idle(draw.u32(..)))
            }
            Withdraws::All => Some(0),
        }
    }

    /// For how many steps a process idles in its critical section or its remainder section: none in
    /// half of the cases. Each doubling is half as likely.
    pub(crate) fn dwell(&self, process: usize, passage: usize, inside: bool) -> u32 {
        let what = 1 + u64::from(inside);
        if self.dwells { idle(self.draw(process, passage, what).u32(..)) } else { 0 }
    }
}

/// A number of idle steps from random bits.
fn idle(bits: u32) -> u32 {
    (1 << bits.trailing_zeros().min(8)) - 1
}

/// The counts of a run: its passages and their costs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) steps: u64,
    pub(crate) passages: u64,
    pub(crate) sums: PerModel<u64>,
    /// The cost of the most expensive passage.
    pub(crate) max: PerModel<u64>,
    /// The largest costs, by point contention and by interval contention.
    pub(crate) by_point: Largest,
    pub(crate) by_interval: Largest,
    /// Whether a process waited on a register outside its own memory.
    pub(crate) remote_spinning: bool,
}

impl Tally {
    /// Adds a passage.
    pub(crate) fn add(&mut self, costs: PerModel<u64>, contention: Contention) {
        self.passages += 1;
        self.by_point.add(contention.point, costs);
        self.by_interval.add(contention.interval, costs);
        for (model, cost) in costs.into_iter().enumerate() {
            self.sums[model] += cost;
            self.max[model] = self.max[model].max(cost);
        }
    }
}

/// How a lock breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Its code panics, with this message.
    #[error("panics ({0})")]
    Panicked(String),
    /// Some processes have not made their passages and none can move.
    #[error("comes to a standstill")]
    Stuck,
    /// It continues for more than this number of steps.
    #[error("has not finished after {0} steps")]
    Endless(u64),
}

pub(crate) fn run(lock: &Subject, processes: usize, case: &Case) -> Result<Tally, RmrError> {
    let (joined, made) = context::set_up(|| (lock.make)(processes));
    let joined = joined.expect("it was made before");
    let mut world = World::new(joined, &made, case.workload);
    let mut schedule = case.strategy.start(processes, case.workload.seed);
    // Far more than any of the algorithms takes: a process of the Burns-Lamport lock may be sent
    // back N² times, and reads the bits of N others each time.
    let limit = 16 * (processes as u64 + 16).pow(3) * (case.workload.passages as u64 + 1);
    let driven = context::catch_quietly(|| {
        while !world.ready.is_empty() {
            if world.tally.steps >= limit {
                return Err(Failure::Endless(limit));
            }
            let p = schedule(&world);
            world.step(p);
        }
        if world.is_done() { Ok(()) } else { Err(Failure::Stuck) }
    });
    // A panic has left the context set. Suspended code is unwound when the world is dropped.
    context::end();
    let failure = match driven {
        Ok(Ok(())) => return Ok(world.into_tally()),
        Ok(Err(failure)) => failure,
        Err(payload) => Failure::Panicked(context::message(&*payload)),
    };
    let (algorithm, schedule) = (lock.name.to_owned(), case.name(lock.claims.kind, processes));
    Err(RmrError::Broken { algorithm, processes, schedule, failure })
}
