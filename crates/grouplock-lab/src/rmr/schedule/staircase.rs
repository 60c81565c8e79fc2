//! The schedule of He, Gopalakrishnan and Gafni 2018, section 4, without a word about the lock it is for.
//!
//! Theirs makes process N of the Burns-Lamport lock pay Ω(N²): process N-1 announces itself, and N is sent back; then
//! N-2 announces itself, N-1 is sent back and so is N; and so down to process 1, which passes. The same again
//! without process 1, and so on. Here "announces itself" is "runs until it has written", and "is sent back" is "runs
//! until it is blocked": any lock can be driven like that. Where it cannot, the goal is passed over.

use super::Schedule;
use super::fair::RoundRobin;
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

/// Goals one after the other.
pub(super) struct Staircase {
    processes: usize,
    /// All first go through their doorways in step.
    doorways: Option<RoundRobin>,
    /// The lowest process that has not passed.
    round: usize,
    /// Who announces itself now. Goes down from the victim to `round`.
    stair: usize,
    /// What is still to be done at this stair, the next thing last.
    goals: Vec<Goal>,
    /// The writes and passages at the goal's beginning, and the step at which it is given up.
    begun: Option<(u64, usize, u64)>,
    rest: RoundRobin,
}

impl Staircase {
    pub(super) fn new(processes: usize) -> Self {
        Staircase {
            processes,
            doorways: Some(RoundRobin::default()),
            round: 0,
            stair: processes - 1,
            goals: vec![Goal::Announce(processes - 1)],
            begun: None,
            rest: RoundRobin::default(),
        }
    }

    /// The next goal, if there is one.
    fn goal(&mut self) -> Option<Goal> {
        let victim = self.processes - 1;
        while self.goals.is_empty() && self.round < victim {
            if self.stair > self.round {
                self.stair -= 1;
                self.goals.push(Goal::Block(victim));
                if self.stair + 1 != victim {
                    self.goals.push(Goal::Block(self.stair + 1));
                }
                self.goals.push(Goal::Announce(self.stair));
            } else {
                self.goals.push(Goal::Pass(self.round));
                self.round += 1;
                self.stair = victim;
            }
        }
        self.goals.last().copied()
    }

    /// Whether `goal` is reached, or out of reach.
    fn is_over(&mut self, goal: Goal, world: &World) -> bool {
        let (Goal::Announce(p) | Goal::Block(p) | Goal::Pass(p)) = goal;
        let patience = 64 * self.processes as u64 + 64;
        let (writes, passages, end) = *self.begun.get_or_insert_with(|| {
            (world.writes_of(p), world.finished_by(p), world.steps() + patience)
        });
        let reached = match goal {
            Goal::Announce(_) => world.writes_of(p) > writes,
            Goal::Block(_) => world.is_inside(p),
            Goal::Pass(_) => world.finished_by(p) > passages,
        };
        reached || !world.is_ready(p) || world.steps() >= end
    }
}

impl Schedule for Staircase {
    fn pick(&mut self, world: &World) -> usize {
        if let Some(in_step) = &mut self.doorways {
            let is_before = |p| world.is_ready(p) && !world.is_past_doorway(p);
            if (0..self.processes).any(is_before) && world.steps() < 1 << 24 {
                loop {
                    let p = in_step.pick(world);
                    if is_before(p) {
                        return p;
                    }
                }
            }
            self.doorways = None;
        }
        while let Some(goal) = self.goal() {
            if !self.is_over(goal, world) {
                let (Goal::Announce(p) | Goal::Block(p) | Goal::Pass(p)) = goal;
                return p;
            }
            self.goals.pop();
            self.begun = None;
        }
        self.rest.pick(world)
    }
}
