//! The simulated machine: memory, caches, and processes that take one step at a time.

use std::cell::RefCell;
use std::rc::Rc;

use grouplock_algorithms::memory::Word;

use super::contention::Crowd;
use super::model::{Caches, Effect, PerModel};
use super::run::{Tally, Workload};
use crate::memory::context::{Access, Blueprint, Cue, Operation, Suspension};
use crate::memory::running::{Running, recycle, start};
use crate::subject;

#[derive(Clone, Copy, Debug)]
enum Next {
    /// Continues with this cue after as many idle steps: requests, leaves or withdraws.
    Idle(u32, Cue),
    /// Not ready if the access has to wait for another process.
    Access(Access),
    /// Nothing until another process writes what it waits on.
    Wait,
    Nothing,
}

pub(super) struct Runner {
    running: Running,
    next: Next,
    /// The cost so far of the passage it is in, or was in last.
    costs: PerModel<u64>,
    begun: usize,
    pub(super) finished: usize,
    /// Whether it is in a passage and has done its doorway.
    pub(super) is_past_doorway: bool,
    /// How many steps it has taken, and how many of them may have written.
    pub(super) steps: u64,
    pub(super) writes: u64,
    /// The registers that it read in this round of waiting, and how often each had been written
    /// then.
    round: Vec<(usize, u32)>,
    /// Counts its waits. An entry in a list of waiters with an older number is void.
    ticket: u32,
}

pub(crate) struct World {
    pub(super) processes: Vec<Runner>,
    contents: Vec<Word>,
    caches: Caches,
    /// Per register: how often an operation that may write was done on it.
    writes: Vec<u32>,
    /// Per register: the processes that wait for a write, with their tickets.
    waiters: Vec<Vec<(u16, u32)>>,
    workload: Workload,
    /// The processes that can take a step, in no particular order, and the position of each of them
    /// there.
    pub(super) ready: Vec<usize>,
    place: Vec<Option<usize>>,
    pub(super) arrivals: u64,
    crowd: Crowd,
    pub(super) tally: Tally,
}

impl World {
    /// All processes in their remainder sections, nothing in the caches.
    pub(crate) fn new(
        joined: Vec<Box<dyn subject::Process>>,
        blueprint: &Blueprint,
        workload: Workload,
    ) -> Self {
        let (count, registers) = (joined.len(), blueprint.registers.len());
        let homes = blueprint.registers.iter().map(|register| register.site.home).collect();
        let process = |member| Runner {
            running: start(Rc::new(RefCell::new(member)), None),
            next: Next::Nothing,
            costs: [0; 4],
            begun: 0,
            finished: 0,
            is_past_doorway: false,
            steps: 0,
            writes: 0,
            round: Vec::new(),
            ticket: 0,
        };
        let mut world = World {
            processes: joined.into_iter().map(process).collect(),
            contents: blueprint.registers.iter().map(|register| register.initial).collect(),
            caches: Caches::new(count, homes),
            writes: vec![0; registers],
            waiters: vec![Vec::new(); registers],
            workload,
            ready: Vec::with_capacity(count),
            place: vec![None; count],
            arrivals: 0,
            crowd: Crowd::new(count),
            tally: Tally::default(),
        };
        for p in 0..count {
            world.go_on(p, None);
        }
        world
    }

    pub(super) fn is_ready(&self, p: usize) -> bool {
        self.place[p].is_some()
    }

    pub(super) fn is_inside(&self, p: usize) -> bool {
        matches!(self.processes[p].next, Next::Idle(_, Cue::Pass))
    }

    pub(super) fn would_withdraw(&self, p: usize) -> bool {
        matches!(self.processes[p].next, Next::Idle(_, Cue::Waited(false)))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.processes.iter().all(|process| matches!(process.next, Next::Nothing))
    }

    /// Whether the next step of `p` would count, by model. `None` if it is no access.
    pub(super) fn would_count(&self, p: usize) -> Option<PerModel<bool>> {
        let Next::Access(access) = self.processes[p].next else { return None };
        let effect = Effect::of(access.operation, self.contents[access.register]);
        Some(self.caches.peek(p, access.register, effect))
    }

    /// The counts, at the end of a run.
    pub(crate) fn into_tally(self) -> Tally {
        for process in self.processes {
            recycle(process.running);
        }
        self.tally
    }

    /// `p`, which is ready, takes a step.
    pub(crate) fn step(&mut self, p: usize) {
        self.tally.steps += 1;
        let process = &mut self.processes[p];
        process.steps += 1;
        match &mut process.next {
            Next::Idle(idle @ 1.., _) => *idle -= 1,
            &mut Next::Idle(0, cue) => {
                if matches!(cue, Cue::Request(_)) {
                    process.begun += 1;
                    process.costs = [0; 4];
                    self.crowd.begin(p);
                }
                self.go_on(p, Some(cue));
            }
            &mut Next::Access(access) => self.access(p, access),
            Next::Wait | Next::Nothing => unreachable!("a process that is not ready took a step"),
        }
    }

    fn access(&mut self, p: usize, access: Access) {
        let register = access.register;
        let held = self.contents[register];
        if matches!(access.operation, Operation::AwaitCas(old, _) if old != held) {
            let process = &mut self.processes[p];
            process.ticket += 1;
            self.waiters[register].push((p as u16, process.ticket));
            self.set_ready(p, false);
            return;
        }
        let effect = Effect::of(access.operation, held);
        let counts = self.caches.access(p, register, effect);
        let process = &mut self.processes[p];
        for (cost, counts) in process.costs.iter_mut().zip(counts) {
            *cost += u64::from(counts);
        }
        if effect == Effect::Read {
            process.round.push((register, self.writes[register]));
        } else {
            process.writes += 1;
            self.writes[register] += 1;
            self.contents[register] = access.operation.written(held).unwrap_or(held);
        }
        self.go_on(p, Some(access.operation.answer(held)));
        if effect != Effect::Read {
            self.wake(register);
        }
    }

    /// The waiters on `register` read it again: at least one protocol has invalidated their copies.
    fn wake(&mut self, register: usize) {
        let mut waiters = std::mem::take(&mut self.waiters[register]);
        for (p, ticket) in waiters.drain(..) {
            let process = &mut self.processes[usize::from(p)];
            match process.next {
                _ if process.ticket != ticket => {}
                Next::Wait => self.go_on(usize::from(p), None),
                Next::Access(_) => self.set_ready(usize::from(p), true),
                _ => {}
            }
        }
        // No new waiter was added meanwhile: a process that reads again waits only after its own
        // step.
        self.waiters[register] = waiters;
    }

    /// Lets `p` run to the next point where the scheduler decides.
    fn go_on(&mut self, p: usize, mut cue: Option<Cue>) {
        let next = loop {
            let process = &mut self.processes[p];
            let Some(suspension) = process.running.resume(cue.take()).as_yield() else {
                break Next::Nothing;
            };
            match suspension {
                Suspension::Access(access) => break Next::Access(access),
                Suspension::DoorwayEnd => process.is_past_doorway = true,
                Suspension::Inside => {
                    break Next::Idle(self.workload.dwell(p, process.begun, true), Cue::Pass);
                }
                Suspension::Remainder => {
                    process.is_past_doorway = false;
                    if process.begun > process.finished {
                        process.finished += 1;
                        self.tally.add(process.costs, self.crowd.end(p));
                    }
                    if p < self.workload.active && process.begun < self.workload.passages {
                        let session = self.workload.session(p, process.begun);
                        let idle = self.workload.dwell(p, process.begun, false);
                        break Next::Idle(idle, Cue::Request(session));
                    }
                }
                Suspension::RoundBegins(_) => process.round.clear(),
                Suspension::RoundEnds(false) => {
                    let is_remote = |&(register, _): &_| self.caches.is_remote(p, register);
                    self.tally.remote_spinning |= process.round.iter().any(is_remote);
                    let is_old = |&(register, seen): &_| self.writes[register] != seen;
                    if !process.round.iter().any(is_old) {
                        process.ticket += 1;
                        for &(register, _) in &process.round {
                            self.waiters[register].push((p as u16, process.ticket));
                        }
                        break Next::Wait;
                    }
                }
                Suspension::MayWithdraw => {
                    if let Some(idle) = self.workload.withdraws_after(p, process.begun) {
                        break Next::Idle(idle, Cue::Waited(false));
                    }
                }
                Suspension::RoundEnds(true) | Suspension::Forget(_) | Suspension::Live(..) => {}
            }
        };
        self.processes[p].next = next;
        self.set_ready(p, !matches!(next, Next::Wait | Next::Nothing));
    }

    fn set_ready(&mut self, p: usize, ready: bool) {
        match self.place[p] {
            None if ready => {
                self.place[p] = Some(self.ready.len());
                self.ready.push(p);
                self.arrivals += 1;
            }
            Some(place) if !ready => {
                self.place[p] = None;
                self.ready.swap_remove(place);
                if let Some(&moved) = self.ready.get(place) {
                    self.place[moved] = Some(place);
                }
            }
            _ => {}
        }
    }
}
