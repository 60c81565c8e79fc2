//! Schedules that run one process after the other, each until it has reached a goal.
//!
//! If the process cannot run, or has had enough steps, the schedule skips the goal. After the last
//! goal it is round robin.

use super::round_robin;
use crate::rmr::world::World;

/// The goal of a process.
#[derive(Clone, Copy, Debug)]
enum Goal {
    /// Until it has written once more.
    Announce,
    /// Until it is inside, or blocked.
    Enter,
    /// Until it would withdraw.
    Wait,
    /// Until it has finished its doorway.
    Doorway,
    /// Until it has made a passage.
    Finish,
}

/// The schedule of He, Gopalakrishnan and Gafni 2018, section 4, for any lock.
///
/// Theirs makes process N of the Burns-Lamport lock pay Ω(N²). Process N-1 announces itself, and N
/// is sent back. Then N-2 announces itself, and N-1 and N are sent back; and so on down to process
/// 1, which passes. The same follows without process 1, and so on. Here "announces itself" means
/// that the process runs until it has written, and "is sent back" that it runs until it is blocked.
pub(super) fn staircase(processes: usize) -> impl FnMut(&World) -> usize {
    let victim = processes - 1;
    let mut goals = vec![(victim, Goal::Announce)];
    for lowest in 0..victim {
        for stair in (lowest..victim).rev() {
            goals.push((stair, Goal::Announce));
            if stair + 1 != victim {
                goals.push((stair + 1, Goal::Enter));
            }
            goals.push((victim, Goal::Enter));
        }
        goals.push((lowest, Goal::Finish));
    }
    let mut rest = towards(goals, 64 * processes as u64 + 64);
    // All first go through their doorways in step.
    let mut in_doorways = true;
    let mut in_step = round_robin();
    move |world| {
        if in_doorways {
            let is_before = |p| world.is_ready(p) && !world.processes[p].is_past_doorway;
            if (0..processes).any(is_before) && world.tally.steps < 1 << 24 {
                loop {
                    let p = in_step(world);
                    if is_before(p) {
                        return p;
                    }
                }
            }
            in_doorways = false;
        }
        rest(world)
    }
}

/// Process 0 is late: it has done its doorway and no more when all processes before it withdraw,
/// the last of them first. Then it must pass what the lock makes of the withdrawn requests.
pub(super) fn late(processes: usize) -> impl FnMut(&World) -> usize {
    let (late, holder) = (0, processes - 1);
    let between = 1..holder;
    let mut goals = vec![(holder, Goal::Enter)];
    goals.extend(between.clone().map(|p| (p, Goal::Wait)));
    goals.push((late, Goal::Doorway));
    goals.extend(between.rev().map(|p| (p, Goal::Finish)));
    goals.push((late, Goal::Wait));
    towards(goals, u64::MAX)
}

/// Runs processes for `goals`, for at most `patience` steps each.
fn towards(mut goals: Vec<(usize, Goal)>, patience: u64) -> impl FnMut(&World) -> usize {
    goals.reverse();
    // The writes and passages when the goal began, and the step at which it is skipped.
    let mut begun = None;
    let mut rest = round_robin();
    move |world| {
        let steps = world.tally.steps;
        while let Some(&(p, goal)) = goals.last() {
            let runner = &world.processes[p];
            let (writes, finished, end) = *begun.get_or_insert_with(|| {
                (runner.writes, runner.finished, steps.saturating_add(patience))
            });
            let reached = match goal {
                Goal::Announce => runner.writes > writes,
                Goal::Enter => world.is_inside(p),
                Goal::Wait => world.would_withdraw(p),
                Goal::Doorway => runner.is_past_doorway,
                Goal::Finish => runner.finished > finished,
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
