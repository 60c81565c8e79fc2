//! A process that comes late: it has done its doorway and no more when all those before it give up, the last of them first.
//!
//! What a lock makes of those who gave up, the late process has to find its way past.

use super::round_robin;
use crate::rmr::world::World;

/// What one process is run for.
#[derive(Clone, Copy, Debug)]
enum Goal {
    /// Until it is inside.
    Enter(usize),
    /// Until it would give up.
    Wait(usize),
    /// Until it has finished its doorway.
    Doorway(usize),
    /// Until its request is over.
    Finish(usize),
}

/// All goals, the first one last.
fn goals(processes: usize) -> Vec<Goal> {
    let (late, holder) = (0, processes - 1);
    let between = 1..holder;
    let mut goals = vec![Goal::Enter(holder)];
    goals.extend(between.clone().map(Goal::Wait));
    goals.push(Goal::Doorway(late));
    goals.extend(between.rev().map(Goal::Finish));
    goals.push(Goal::Wait(late));
    goals.reverse();
    goals
}

pub(super) fn late(processes: usize) -> impl FnMut(&World) -> usize {
    let mut goals = goals(processes);
    let mut rest = round_robin();
    move |world| {
        while let Some(&goal) = goals.last() {
            let (p, reached) = match goal {
                Goal::Enter(p) => (p, world.is_inside(p)),
                Goal::Wait(p) => (p, world.would_give_up(p)),
                Goal::Doorway(p) => (p, world.processes[p].is_past_doorway),
                Goal::Finish(p) => (p, world.processes[p].finished > 0),
            };
            if !reached && world.is_ready(p) {
                return p;
            }
            goals.pop();
        }
        rest(world)
    }
}
