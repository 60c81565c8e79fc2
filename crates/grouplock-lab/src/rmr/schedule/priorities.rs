//! Schedules by priority.

use crate::rmr::world::World;

/// A priority for each process, and points where one changes. The process with the highest runs.
#[derive(Clone, Debug)]
pub(crate) struct Priorities {
    initial: Vec<u32>,
    /// Processes with higher numbers never run.
    active: usize,
    changes: Vec<Change>,
}

/// When `process` has taken `steps` steps, its priority becomes `priority`.
#[derive(Clone, Copy, Debug)]
struct Change {
    process: usize,
    steps: u64,
    priority: u32,
}

impl Priorities {
    /// Random priorities, with two changes for each of the `active` lowest processes within its
    /// first `horizon` steps.
    pub(crate) fn random(
        active: usize,
        processes: usize,
        horizon: u64,
        rng: &mut fastrand::Rng,
    ) -> Self {
        let initial = (0..processes).map(|_| rng.u32(..)).collect();
        let mut made = Priorities { initial, active, changes: Vec::new() };
        for _ in 0..2 * active {
            made.add_change(horizon, rng);
        }
        made
    }

    fn add_change(&mut self, horizon: u64, rng: &mut fastrand::Rng) {
        let process = rng.usize(..self.active);
        let steps = rng.u64(..=horizon);
        self.changes.push(Change { process, steps, priority: rng.u32(..) });
    }

    /// These priorities with a few changes.
    pub(crate) fn mutated(&self, horizon: u64, rng: &mut fastrand::Rng) -> Self {
        let mut made = self.clone();
        for _ in 0..=rng.u8(..4) {
            match rng.u8(..4) {
                0 => {
                    let p = rng.usize(..made.active);
                    made.initial[p] = rng.u32(..);
                }
                1 => made.add_change(horizon, rng),
                2 if !made.changes.is_empty() => {
                    made.changes.swap_remove(rng.usize(..made.changes.len()));
                }
                3 if !made.changes.is_empty() => {
                    let change = rng.usize(..made.changes.len());
                    made.changes[change].steps = rng.u64(..=horizon);
                }
                _ => {}
            }
        }
        made
    }

    pub(super) fn start(self) -> impl FnMut(&World) -> usize {
        let mut priorities = self.initial;
        let mut changes = vec![Vec::new(); priorities.len()];
        for change in self.changes {
            changes[change.process].push((change.steps, change.priority));
        }
        for changes in &mut changes {
            // The earliest is last, so that `pop` returns it.
            changes.sort_by_key(|&(steps, _)| std::cmp::Reverse(steps));
        }
        // The highest is searched only when it may have changed.
        let (mut last, mut arrivals) = (None::<usize>, 0);
        move |world: &World| {
            let mut known = last;
            if let Some(p) = last {
                let steps = world.processes[p].steps;
                while let Some((_, priority)) = changes[p].pop_if(|&mut (at, _)| at <= steps) {
                    priorities[p] = priority;
                    known = None;
                }
            }
            let known = known.filter(|&p| arrivals == world.arrivals && world.is_ready(p));
            arrivals = world.arrivals;
            let best = || world.ready.iter().copied().max_by_key(|&p| (priorities[p], p));
            last = known.or_else(best);
            last.expect("somebody is ready")
        }
    }
}
