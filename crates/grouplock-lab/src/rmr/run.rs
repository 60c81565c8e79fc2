//! One run: a lock, a workload and a schedule, from the first step to the last.

use grouplock_algorithms::claims::Kind;

use super::RmrError;
use super::schedule::Plan;
use super::tally::{PassageId, Tally};
use super::workload::Workload;
use super::world::World;
use crate::memory::context::{self, Plan as Made};
use crate::subject::Subject;

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) plan: Plan,
    pub(crate) workload: Workload,
    pub(crate) seed: u64,
}

impl Case {
    /// What to call it in a report about a lock of this kind with so many processes.
    pub(crate) fn name(&self, kind: Kind, processes: usize) -> String {
        let mut name = self.plan.to_string();
        if kind == Kind::Group {
            name = format!("{name}, {}", self.workload.sessions);
        }
        if self.workload.active < processes {
            name = format!("{name}, {} take part", self.workload.active);
        }
        name
    }
}

/// How a lock breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Its code panics, with this message.
    #[error("panics ({0})")]
    Panicked(String),
    /// Some have not made their passages and nobody can move.
    #[error("comes to a standstill")]
    Stuck,
    /// It goes on for more than so many steps.
    #[error("has not finished after {0} steps")]
    Endless(u64),
}

/// Runs `case`, and keeps the steps of one passage if it is told which.
pub(crate) fn run(
    lock: &Subject,
    processes: usize,
    case: &Case,
    told: Option<PassageId>,
) -> Result<(Tally, Made), RmrError> {
    let (joined, made) = context::set_up(|| (lock.make)(processes));
    let joined = joined.expect("it was made before");
    let mut world = World::new(joined, &made, case.workload, Tally::telling(told));
    let mut schedule = case.plan.start(processes, case.seed);
    let limit = most_steps(processes, case.workload.passages);
    let driven = context::hushed(|| {
        while !world.ready.is_empty() {
            if world.tally.steps >= limit {
                return Err(Failure::Endless(limit));
            }
            let p = schedule(&world);
            world.step(p);
        }
        if world.is_done() { Ok(()) } else { Err(Failure::Stuck) }
    });
    // A panic has left it set, and what is suspended is unwound when the world is dropped.
    context::end();
    let failure = match driven {
        Ok(Ok(())) => return Ok((world.into_tally(), made)),
        Ok(Err(failure)) => failure,
        Err(payload) => Failure::Panicked(context::message(&*payload)),
    };
    let (algorithm, schedule) = (lock.name.to_owned(), case.name(lock.claims.kind, processes));
    Err(RmrError::Broken { algorithm, processes, schedule, failure })
}

/// Far more than any of the algorithms takes: a process of the Burns-Lamport lock may be sent back N² times and
/// look at N others each time.
fn most_steps(processes: usize, passages: usize) -> u64 {
    16 * (processes as u64 + 16).pow(3) * (passages as u64 + 1)
}
