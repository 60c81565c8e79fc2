//! Store buffers: memory in which writes take effect late. The page `docs/verification.md` ("Store
//! buffers") has the rules and what is checked.
//!
//! While a buffer holds a write there is no deadlock, even if its process is idle: the write can
//! still reach memory.
//!
//! # What is merged
//! Names ([`Reductions::symmetry`]): every rule treats processes alike, and a buffer is renamed
//! together with its process. Dead contents ([`Reductions::forget`]): only memory is blanked, never
//! a buffer, so each register holds its contents or nothing, and a read of nothing is a violation.
//! The other reductions do not know buffers, and are off.

use std::fmt;
use std::str::FromStr;

use grouplock_algorithms::memory::Ordering;
use serde::{Deserialize, Serialize};

use super::state::State;
use super::stepper::Stepper;
use super::{Move, Options, Reductions};
use crate::automaton::{Node, Op};
use crate::property::{Properties, Property};
use crate::registry::{self, UnknownName};
use crate::trace::What;
use crate::value::Val;

/// How many writes of one process its buffer can hold.
pub const MOST_PENDING: usize = 16;

/// When others see a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryModel {
    /// At once: sequential consistency, the papers' memory.
    #[default]
    Sc,
    /// Total store order, as on x86: a process's writes reach memory in the order in which it made
    /// them.
    Tso,
    /// Partial store order: a release comes after all earlier writes of its process; a relaxed
    /// write may overtake writes to other registers.
    Pso,
}

impl MemoryModel {
    /// All of them, the strongest first.
    pub const ALL: &[MemoryModel] = &[MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            MemoryModel::Sc => "sc",
            MemoryModel::Tso => "tso",
            MemoryModel::Pso => "pso",
        }
    }

    /// Whether it is the papers' memory.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde asks")]
    pub(crate) fn is_sc(&self) -> bool {
        *self == MemoryModel::Sc
    }

    /// Whether an exploration under this model checks `property`. With store buffers it checks
    /// single states and the order of service, but not infinite executions and not bounds on steps.
    pub fn checks(self, property: Property) -> bool {
        let steps_and_cycles = Properties::BOUNDING.contains(property)
            || Properties::FOR_EVER.contains(property) && property != Property::DeadlockFreedom;
        self == MemoryModel::Sc || !steps_and_cycles
    }

    /// `options` without what this model does not allow.
    pub(super) fn fit(self, options: &Options) -> Options {
        let mut options = options.clone();
        if self != MemoryModel::Sc {
            let Reductions { forget, symmetry, .. } = options.reductions;
            options.reductions = Reductions { forget, symmetry, ..Reductions::NONE };
            options.properties = options.properties.iter().filter(|&p| self.checks(p)).collect();
            options.graph_limit = 0;
        }
        options
    }
}

impl fmt::Display for MemoryModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MemoryModel {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        registry::named("memory model", MemoryModel::ALL, |model| model.name(), name)
    }
}

/// A write in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The register; none for the data that a process writes inside.
    pub register: Option<usize>,
    /// The written value; for data, the session.
    pub value: Val,
    /// It reaches memory after all earlier writes.
    pub ordered: bool,
}

/// In a packed row, before the buffers: no local state has this number.
const BUFFERS: u32 = u32::MAX;
const ORDERED: u32 = 1 << 31;
const DATA: u32 = ORDERED - 1;

/// The buffers of all processes; none if writes reach memory at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffers(pub(super) Vec<Vec<Pending>>);

impl Buffers {
    pub fn new(model: MemoryModel, processes: usize) -> Self {
        let buffers = if model == MemoryModel::Sc { 0 } else { processes };
        Buffers(vec![Vec::new(); buffers])
    }

    /// The writes in the buffer of process `p`, the oldest first.
    pub fn of(&self, p: usize) -> &[Pending] {
        self.0.get(p).map_or(&[], Vec::as_slice)
    }

    pub fn are_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }

    /// # Panics
    /// If there are no buffers.
    pub fn push(&mut self, p: usize, pending: Pending) {
        self.0[p].push(pending);
    }

    /// Whether the write at `place` in the buffer of `p` may reach memory now.
    pub fn may_leave(&self, p: usize, place: usize) -> bool {
        let (earlier, rest) = self.of(p).split_at(place);
        earlier.iter().all(|other| !rest[0].ordered && other.register != rest[0].register)
    }

    /// The same buffers under other names: `order[i]` is the process that is now number `i`.
    #[must_use]
    pub(super) fn renamed(
        &self,
        order: &[usize],
        register: impl Fn(usize) -> usize,
        object: impl Fn(usize) -> usize,
    ) -> Self {
        let rename = |pending: &Pending| Pending {
            register: pending.register.map(&register),
            value: pending.value.map(&object),
            ..*pending
        };
        let of = |&p: &usize| self.of(p).iter().map(rename).collect();
        Buffers(if self.0.is_empty() { Vec::new() } else { order.iter().map(of).collect() })
    }

    /// Adds the buffers to a row of words, which `unpack` reads.
    pub fn pack(&self, row: &mut Vec<u32>) {
        if self.0.is_empty() {
            return;
        }
        row.push(BUFFERS);
        for buffer in &self.0 {
            row.push(buffer.len() as u32);
            for &Pending { register, value, ordered } in buffer {
                let register = register.map_or(DATA, |register| register as u32);
                row.extend([register | if ordered { ORDERED } else { 0 }, value.0]);
            }
        }
    }

    /// Whether the buffers begin here in a row.
    pub fn begin(row: &[u32]) -> bool {
        row.first() == Some(&BUFFERS)
    }

    /// Reads what `pack` wrote.
    pub fn unpack(row: &[u32]) -> Self {
        let mut rest = row.get(1..).unwrap_or_default();
        let mut buffers = Vec::new();
        while let [len, words @ ..] = rest {
            let (words, after) = words.split_at(2 * *len as usize);
            let pending = words.chunks(2).map(|word| Pending {
                register: Some(word[0] & !ORDERED).filter(|&r| r != DATA).map(|r| r as usize),
                value: Val(word[1]),
                ordered: word[0] & ORDERED != 0,
            });
            buffers.push(pending.collect());
            rest = after;
        }
        Buffers(buffers)
    }
}

impl State {
    /// What process `p` reads in `register`.
    pub(crate) fn seen(&self, p: usize, register: usize) -> Val {
        let mut own = self.buffers.of(p).iter().rev();
        let own = own.find(|pending| pending.register == Some(register));
        own.map_or(self.memory[register], |pending| pending.value)
    }
}

impl Stepper {
    /// Whether the step of `node` is a write that goes to a buffer.
    pub(super) fn is_buffered(&self, node: &Node) -> bool {
        let plain = matches!(node.step, Some((_, Op::Write(_))));
        self.options.memory_model != MemoryModel::Sc && plain && node.order != Ordering::SeqCst
    }

    /// Whether the buffer of process `p` lets it take the step of `node`, which may write
    /// `register`.
    pub(super) fn may_write(
        &mut self,
        state: &State,
        p: usize,
        node: &Node,
        register: usize,
    ) -> bool {
        if self.is_buffered(node) {
            return self.has_room(state, p);
        }
        let fails = match node.step {
            Some((_, Op::Cas(expected, _))) => state.value(p, expected) != state.memory[register],
            _ => false,
        };
        let weak = match node.order {
            Ordering::Relaxed | Ordering::Acquire => true,
            Ordering::SeqCst => false,
            _ => fails,
        };
        let overtakes = weak && self.options.memory_model == MemoryModel::Pso;
        let mut pending = state.buffers.of(p).iter();
        pending.all(|other| overtakes && other.register != Some(register))
    }

    /// Whether one more write fits into the buffer of process `p`; notes if not.
    fn has_room(&mut self, state: &State, p: usize) -> bool {
        let full = state.buffers.of(p).len() == MOST_PENDING;
        self.buffer_full |= full;
        !full
    }

    /// Process `p` writes `value` into its buffer.
    pub(super) fn buffer(&self, state: &mut State, p: usize, write: (usize, Val), order: Ordering) {
        let ordered = self.options.memory_model == MemoryModel::Tso || order != Ordering::Relaxed;
        state.buffers.push(p, Pending { register: Some(write.0), value: write.1, ordered });
    }

    /// Process `p`, which is inside for `session`, writes data.
    pub(super) fn write_data(&mut self, state: &mut State, p: usize, session: u64) {
        if self.options.memory_model != MemoryModel::Sc && self.has_room(state, p) {
            let value = Val::number(session).expect("there are few sessions");
            let ordered = self.options.memory_model == MemoryModel::Tso;
            state.buffers.push(p, Pending { register: None, value, ordered });
        }
    }

    /// Whether the buffer of process `q` holds data that conflict with `session`.
    pub(super) fn has_unseen_data(&self, state: &State, q: usize, session: u64) -> bool {
        let data = state.buffers.of(q).iter().filter(|pending| pending.register.is_none());
        let mut sessions = data.filter_map(|pending| pending.value.as_number());
        sessions.any(|written| (self.subject.conflict)(session, written))
    }

    /// The writes of process `p` that may reach memory now, as choices.
    pub(super) fn arrivals(&self, state: &State, p: usize, choices: &mut Vec<Move>) {
        let places = (0..state.buffers.of(p).len()).filter(|&i| state.buffers.may_leave(p, i));
        let turn = |place| Move { process: p as u8, session: Move::REACHES + place as u8 };
        choices.extend(places.map(turn));
    }

    /// The write at `place` in the buffer of process `p` reaches memory.
    pub(super) fn reach(&mut self, state: &mut State, p: usize, place: usize) {
        let Pending { register, value, .. } = state.buffers.0[p].remove(place);
        let old = register.map_or(Val::UNDEF, |register| state.memory[register]);
        let object = |object: usize| self.names.objects[object];
        let what = What::Reaches {
            register: register.map(|register| self.layout.renamed(register, object)),
            old: old.map(object),
            new: value.map(object),
        };
        self.record(p, what);
        if let Some(register) = register {
            state.memory[register] = value;
        }
    }
}
