//! Schedules that prefer nobody.

use super::Schedule;
use crate::rmr::world::World;

/// Any that can, with equal chances.
pub(super) struct Random(pub(super) fastrand::Rng);

impl Schedule for Random {
    fn pick(&mut self, world: &World) -> usize {
        world.ready()[self.0.usize(..world.ready().len())]
    }
}

/// Each in turn.
#[derive(Default)]
pub(super) struct RoundRobin {
    next: usize,
}

impl Schedule for RoundRobin {
    fn pick(&mut self, world: &World) -> usize {
        let count = world.processes();
        let p = (self.next..count)
            .chain(0..self.next)
            .find(|&p| world.is_ready(p))
            .expect("somebody is ready");
        self.next = (p + 1) % count;
        p
    }
}
