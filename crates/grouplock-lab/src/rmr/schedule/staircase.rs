//! The schedule of He, Gopalakrishnan and Gafni 2018, section 4, without a word about the lock it is for.
//!
//! Theirs makes process N of the Burns-Lamport lock pay Ω(N²): process N-1 announces itself, and N is sent back; then
//! N-2 announces itself, N-1 is sent back and so is N; and so down to process 1, which passes. The same again
//! without process 1, and so on. Here "announces itself" is "runs until it has written", and "is sent back" is "runs
//! until it is blocked": any lock can be driven like that. Where it cannot, the goal is passed over.

use super::round_robin;
use crate::rmr::world::World;

/// What one process is run for.
#[derive(Clone, Copy, Debug)]
enum Goal {
    /// Until it has written once more.
    Announce(usize),
    /// Until it is blocked, or inside.
    Block(usize),
    /// Until it has made a passage.
    Pass(usize),
}

/// All goals, the first one last.
fn goals(victim: usize) -> Vec<Goal> {
    let mut goals = vec![Goal::Announce(victim)];
    for lowest in 0..victim {
        for stair in (lowest..victim).rev() {
            goals.push(Goal::Announce(stair));
            if stair + 1 != victim {
                goals.push(Goal::Block(stair + 1));
            }
            goals.push(Goal::Block(victim));
        }
        goals.push(Goal::Pass(lowest));
    }
    goals.reverse();
    goals
}

pub(super) fn staircase(processes: usize) -> impl FnMut(&World) -> usize {
    let patience = 64 * processes as u64 + 64;
    let mut goals = goals(processes - 1);
    // The writes and passages at the goal's beginning, and the step at which it is given up.
    let mut begun = None;
    // All first go through their doorways in step.
    let mut in_doorways = true;
    let (mut in_step, mut rest) = (round_robin(), round_robin());
    move |world| {
        let steps = world.tally.steps;
        if in_doorways {
            let is_before = |p| world.is_ready(p) && !world.processes[p].is_past_doorway;
            if (0..processes).any(is_before) && steps < 1 << 24 {
                loop {
                    let p = in_step(world);
                    if is_before(p) {
                        return p;
                    }
                }
            }
            in_doorways = false;
        }
        while let Some(&goal) = goals.last() {
            let (Goal::Announce(p) | Goal::Block(p) | Goal::Pass(p)) = goal;
            let process = &world.processes[p];
            let (writes, finished, end) =
                *begun.get_or_insert_with(|| (process.writes, process.finished, steps + patience));
            let reached = match goal {
                Goal::Announce(_) => process.writes > writes,
                Goal::Block(_) => world.is_inside(p),
                Goal::Pass(_) => process.finished > finished,
            };
            if !reached && world.is_ready(p) && steps < end {
                return p;
            }
            goals.pop();
            begun = None;
        }
        rest(world)
    }
}
