//! Processes that die: what a death does to a state.
//!
//! A process outside its remainder section may die instead of taking its next step. What it held in private is lost, what it wrote
//! stays, and its register `Dead` is set. An [ideal latch](crate::ideal_latch) that it owned is free, and its next owner is told. Whoever waits
//! where it can be told of a death may be told at any moment while there is one, and is told in the end.
//!
//! The dead is *buried* when its register `State` is zero and the latch does not name it. Then a new process has its place, idle, which is to say
//! that it may come or not. So a death is over when `Dead` is false again. Until then one that died inside counts as inside.
//!
//! Tickets are compared and nothing else. While no living process owns the latch, nobody keeps one in private. Then those of the places
//! that wait (`State` is one) are numbered anew from one, in their order, and others are blanked.

use super::state::{Env, State};
use super::stepper::Stepper;
use crate::automaton::LocalId;
use crate::automaton::run::{Op, Phase};
use crate::ideal_latch;
use crate::layout::Layout;
use crate::memory::context::RegisterPlan;
use crate::trace::{Event, What};
use crate::value::Val;
use grouplock_algorithms::memory::Site;

/// What the register is called that counts how many may yet die, if that is bounded.
const LIVES: &str = "deaths to come";

/// The registers that deaths are about, and how a process begins.
#[derive(Clone, Debug)]
pub(super) struct Deaths {
    dead: Vec<usize>,
    state: Vec<usize>,
    ticket: Vec<usize>,
    tickets: Option<usize>,
    /// The word of the latch that names its owner, and the mark of an ideal one that its owner died.
    latch: Option<usize>,
    left: Option<usize>,
    lives: Option<usize>,
    first: Vec<(LocalId, Vec<usize>)>,
}

const WAIT: u64 = 1;

/// The layout with a register that says how many may die.
pub(super) fn with_lives(mut layout: Layout, deaths: u8) -> Layout {
    let initial = Val(Val::number(0).map_or(0, |zero| zero.0) + u32::from(deaths));
    layout.globals.push(layout.registers.len());
    let site = Site::shared(LIVES);
    layout.registers.push(RegisterPlan { site, initial, object: None, forgotten: false });
    layout
}

impl Deaths {
    /// For processes that begin like this.
    pub(super) fn new(layout: &Layout, first: &[(LocalId, Vec<usize>)]) -> Self {
        let all = |name: &str| -> Vec<usize> {
            let ids = 0..layout.registers.len();
            ids.filter(|&id| layout.registers[id].site.name == name).collect()
        };
        let one = |name: &str| all(name).first().copied();
        let (dead, state, ticket) = (all("Dead"), all("State"), all("Ticket"));
        assert_eq!((dead.len(), state.len()), (first.len(), first.len()), "a place each");
        Deaths {
            dead,
            state,
            ticket,
            tickets: one("Tickets"),
            latch: one(ideal_latch::OWNER).or_else(|| one("word")),
            left: one(ideal_latch::LEFT),
            lives: one(LIVES),
            first: first.to_vec(),
        }
    }

    fn is(&self, state: &State, p: usize) -> bool {
        flag(state, self.dead[p])
    }

    /// The process that the latch names.
    fn owner(&self, state: &State) -> Option<usize> {
        let name = self.latch.and_then(|latch| state.memory[latch].as_number())?;
        name.checked_sub(1).map(|p| p as usize)
    }

    /// Whether there is a death to be told of.
    fn any(&self, state: &State) -> bool {
        let left = self.left.is_some_and(|left| flag(state, left));
        left || (0..self.dead.len()).any(|p| self.is(state, p))
    }

    fn die(&self, state: &mut State, p: usize, stays_inside: bool) {
        if let Some(lives) = self.lives {
            state.memory[lives].0 -= 1;
        }
        state.memory[self.dead[p]] = number(1);
        if let (Some(latch), Some(left)) = (self.latch, self.left)
            && self.owner(state) == Some(p)
        {
            state.memory[latch] = number(0);
            state.memory[left] = number(1);
        }
        if !stays_inside {
            self.begin(state, p);
        }
    }

    /// Process `p` is as it was at first.
    fn begin(&self, state: &mut State, p: usize) {
        let (local, env) = &self.first[p];
        let proc = &mut state.procs[p];
        (proc.local, proc.before) = (*local, 0);
        proc.env = Env::from_objects(env.iter().map(|&object| object as u8));
        (proc.past_doorway, proc.undisturbed) = (false, false);
        (proc.enabled, proc.overtaken) = (false, false);
        for proc in &mut state.procs {
            proc.before &= !(1 << p);
        }
    }

    /// Gives the places of those that were buried to new processes.
    fn bury(&self, state: &mut State) {
        for p in 0..self.dead.len() {
            let out = state.memory[self.state[p]] == number(0);
            if self.is(state, p) && out && self.owner(state) != Some(p) {
                state.memory[self.dead[p]] = number(0);
                self.begin(state, p);
            }
        }
    }

    fn renumber(&self, state: &mut State) {
        let Some(tickets) = self.tickets else { return };
        if self.owner(state).is_some_and(|owner| !self.is(state, owner)) {
            return;
        }
        let waits = |p: &usize| state.memory[self.state[*p]] == number(WAIT);
        let mut line: Vec<usize> = (0..self.ticket.len()).filter(waits).collect();
        line.sort_by_key(|&p| state.memory[self.ticket[p]]);
        for &ticket in &self.ticket {
            state.memory[ticket] = Val::UNDEF;
        }
        for (i, &p) in line.iter().enumerate() {
            state.memory[self.ticket[p]] = number(i as u64 + 1);
        }
        state.memory[tickets] = number(line.len() as u64);
    }
}

fn number(number: u64) -> Val {
    Val::number(number).unwrap_or(Val::UNDEF)
}

fn flag(state: &State, register: usize) -> bool {
    state.memory[register] == number(1)
}

impl Stepper {
    pub(super) fn is_dead(&self, state: &State, p: usize) -> bool {
        self.deaths.as_ref().is_some_and(|deaths| deaths.is(state, p))
    }

    /// Whether a process that waits where it can be told something can be told now.
    pub(super) fn is_told(&self, state: &State) -> bool {
        self.deaths.as_ref().is_none_or(|deaths| deaths.any(state))
    }

    /// Whether process `p`, which lives and is outside its remainder section, may die now.
    pub(super) fn may_die(&self, state: &State) -> bool {
        let lives = |lives: usize| state.memory[lives] != number(0);
        self.deaths.as_ref().is_some_and(|deaths| deaths.lives.is_none_or(lives))
    }

    /// Process `p` dies.
    pub(super) fn die(&mut self, state: &mut State, p: usize) {
        if let Some(log) = &mut self.log {
            log.push(Event { process: p, what: What::Die });
        }
        let stays_inside = self.node(state.procs[p].local).phase == Phase::Inside;
        if let Some(deaths) = &self.deaths {
            deaths.die(state, p, stays_inside);
        }
    }

    /// What follows from a step without being one.
    pub(super) fn after(&self, state: &mut State) {
        if let Some(deaths) = &self.deaths {
            deaths.bury(state);
            if self.reductions.forget {
                deaths.renumber(state);
            }
        }
    }

    /// Whether `op` waits in vain in `state` for a register that holds `contents`.
    pub(super) fn waits(&self, state: &State, op: Op, contents: Val) -> Option<bool> {
        let (Op::WaitFor(value) | Op::WaitUnless(value) | Op::AwaitCas(value, _)) = op else {
            return None;
        };
        let told = self.deaths.is_some() && matches!(op, Op::WaitUnless(_)) && self.is_told(state);
        Some(contents != value && contents != Val::UNDEF && !told)
    }
}
