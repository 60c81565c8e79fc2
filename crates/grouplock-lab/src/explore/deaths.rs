//! Processes that die: what a death does to a state.
//!
//! A process outside its remainder section may die instead of taking its next step. Its private
//! variables are lost, its writes stay, and its register `Dead` is set. An [ideal
//! latch](crate::ideal_latch) that it owned becomes free, and the next owner learns of the death. A
//! process that waits where it can learn of a death may learn of it at any time while there is one,
//! and does so in the end.
//!
//! A dead process is *buried* when its register `State` is zero and the latch does not name it.
//! Then a new idle process has its place, and it may request or not. So a death is over when `Dead`
//! is false again. Until then a process that died inside counts as inside.
//!
//! The text only compares tickets. While no living process owns the latch, no process keeps a
//! ticket in private. Then the tickets of the waiting places (`State` is one) are renumbered from
//! one, in their order, and the others are blanked.

use super::state::{Env, State};
use super::stepper::Stepper;
use crate::automaton::{LocalId, Op};
use crate::ideal_latch;
use crate::layout::Layout;
use crate::memory::context::BlueprintRegister;
use crate::trace::{Section, What};
use crate::value::Val;
use grouplock_algorithms::memory::Site;

/// The name of the register that counts how many processes may still die, if that is bounded.
const LIVES: &str = "deaths to come";

/// The registers that deaths concern, and the first state of each process; nothing if processes do
/// not die.
#[derive(Clone, Debug, Default)]
pub(super) struct Deaths {
    dead: Vec<usize>,
    state: Vec<usize>,
    ticket: Vec<usize>,
    tickets: Option<usize>,
    /// The word of the latch that names its owner, and the mark of an ideal latch that its owner
    /// died.
    latch: Option<usize>,
    left: Option<usize>,
    lives: Option<usize>,
    first: Vec<(LocalId, Vec<usize>)>,
}

const WAIT: u64 = 1;

/// The layout with a register that counts how many processes may still die.
pub(super) fn with_lives(mut layout: Layout, deaths: u8) -> Layout {
    let initial = Val(Val::number(0).map_or(0, |zero| zero.0) + u32::from(deaths));
    layout.globals.push(layout.registers.len());
    let site = Site::shared(LIVES);
    layout.registers.push(BlueprintRegister { site, initial, object: None, forgotten: false });
    layout
}

impl Deaths {
    /// For processes with these first states.
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

    pub(super) fn is_dead(&self, state: &State, p: usize) -> bool {
        self.dead.get(p).is_some_and(|&dead| flag(state, dead))
    }

    /// The process that the latch names.
    fn owner(&self, state: &State) -> Option<usize> {
        let name = self.latch.and_then(|latch| state.memory[latch].as_number())?;
        name.checked_sub(1).map(|p| p as usize)
    }

    /// Whether there is a death that processes can learn of.
    pub(super) fn has_death(&self, state: &State) -> bool {
        let left = self.left.is_some_and(|left| flag(state, left));
        left || (0..self.dead.len()).any(|p| self.is_dead(state, p))
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

    fn begin(&self, state: &mut State, p: usize) {
        let (local, env) = &self.first[p];
        state.cancel_request(p);
        state.procs[p].local = *local;
        state.procs[p].env = Env::from_objects(env.iter().map(|&object| object as u8));
    }

    /// Gives the places of buried processes to new ones.
    fn bury(&self, state: &mut State) {
        for p in 0..self.dead.len() {
            let out = state.memory[self.state[p]] == number(0);
            if self.is_dead(state, p) && out && self.owner(state) != Some(p) {
                state.memory[self.dead[p]] = number(0);
                self.begin(state, p);
            }
        }
    }

    fn renumber(&self, state: &mut State) {
        let Some(tickets) = self.tickets else { return };
        if self.owner(state).is_some_and(|owner| !self.is_dead(state, owner)) {
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
    /// Whether a process that lives and is outside its remainder section may die now.
    pub(super) fn may_die(&self, state: &State) -> bool {
        let lives = self.deaths.lives;
        self.subject.dies && lives.is_none_or(|lives| state.memory[lives] != number(0))
    }

    pub(super) fn die(&mut self, state: &mut State, p: usize) {
        self.record(p, What::Die);
        let stays_inside = self.node(state.procs[p].local).section == Section::Inside;
        self.deaths.die(state, p, stays_inside);
    }

    /// The consequences of a step that are not steps.
    pub(super) fn after(&self, state: &mut State) {
        self.deaths.bury(state);
        if self.options.reductions.forget {
            self.deaths.renumber(state);
        }
    }

    /// Whether `op` has to wait in `state` if its register holds `contents`.
    pub(super) fn has_to_wait(&self, state: &State, op: Op, contents: Val) -> bool {
        let learns = matches!(op, Op::WaitUnless(_)) && self.deaths.has_death(state);
        op.waits_on(&contents) && contents != Val::UNDEF && !learns
    }
}
