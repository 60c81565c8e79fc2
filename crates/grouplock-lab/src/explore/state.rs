//! A global state: the contents of memory and the position of each process.

use super::weak::Buffers;
use crate::automaton::{LocalId, Op, Target};
use crate::layout::Layout;
use crate::memory::context::BlueprintRegister;
use crate::value::Val;

/// The largest number of processes of an exploration.
pub(crate) const MOST_PROCESSES: usize = 8;
/// The largest number of objects that a process can know at a time.
pub(super) const MOST_KNOWN: usize = 24;

/// The objects that a process knows, by placeholder.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Env {
    len: u8,
    objects: [u8; MOST_KNOWN],
}

impl Env {
    pub fn from_objects(objects: impl IntoIterator<Item = u8>) -> Self {
        let mut env = Env::default();
        for object in objects {
            env.push(object);
        }
        env
    }

    /// # Panics
    /// If the process knows too many objects. Then its text should say which it no longer needs.
    pub fn push(&mut self, object: u8) {
        assert!(
            usize::from(self.len) < MOST_KNOWN,
            "a process holds too many pointers: say `live`"
        );
        self.objects[usize::from(self.len)] = object;
        self.len += 1;
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.objects[..usize::from(self.len)]
    }

    pub fn placeholder(&self, object: usize) -> Option<usize> {
        self.as_slice().iter().position(|&known| usize::from(known) == object)
    }
}

/// The position of a process, and the monitors' marks about it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "marks, each by itself")]
pub struct Proc {
    pub local: LocalId,
    pub env: Env,
    /// The processes that requested before this one and have not entered, as a set.
    pub before: u8,
    /// Whether it has finished its doorway, and has not entered.
    pub past_doorway: bool,
    /// Whether no process was active in another session when it finished its doorway, and it has
    /// not entered.
    pub undisturbed: bool,
    /// Whether a process that requested the same session later has entered, and this one has not.
    pub enabled: bool,
    /// Whether it withdraws, and a conflicting process that requested later has entered.
    pub overtaken: bool,
    /// How many passages it has begun, if that is bounded.
    pub passages: u8,
}

impl Proc {
    /// Clears all marks about its request.
    pub(crate) fn clear_marks(&mut self) {
        let Proc { local, env, passages, .. } = *self;
        *self = Proc { local, env, passages, ..Proc::default() };
    }
}

/// A global state.
#[derive(PartialEq, Eq)]
pub struct State {
    pub memory: Vec<Val>,
    pub procs: Vec<Proc>,
    /// The writes that have not reached memory.
    pub buffers: Buffers,
}

impl Clone for State {
    fn clone(&self) -> Self {
        let (memory, procs) = (self.memory.clone(), self.procs.clone());
        State { memory, procs, buffers: self.buffers.clone() }
    }

    /// Reuses the allocations.
    fn clone_from(&mut self, source: &Self) {
        self.memory.clone_from(&source.memory);
        self.procs.clone_from(&source.procs);
        self.buffers.0.clone_from(&source.buffers.0);
    }
}

impl State {
    /// The state in which all processes have joined and none has moved. With `forget`, registers
    /// that the text calls dead from the start are blank.
    pub(crate) fn first(layout: &Layout, procs: &[(LocalId, Vec<usize>)], forget: bool) -> Self {
        let procs = procs.iter().map(|(local, env)| Proc {
            local: *local,
            env: Env::from_objects(env.iter().map(|&object| object as u8)),
            ..Proc::default()
        });
        let initial = |register: &BlueprintRegister<Val>| {
            if forget && register.forgotten { Val::UNDEF } else { register.initial }
        };
        let memory = layout.registers.iter().map(initial).collect();
        State { memory, procs: procs.collect(), buffers: Buffers::default() }
    }

    /// The request of process `p` no longer counts.
    pub(crate) fn cancel_request(&mut self, p: usize) {
        self.procs[p].clear_marks();
        for proc in &mut self.procs {
            proc.before &= !(1 << p);
        }
    }

    /// The register that `target` is for process `p`.
    pub(crate) fn register(&self, layout: &Layout, p: usize, target: Target) -> usize {
        match target {
            Target::Global(register) => register,
            Target::Field(placeholder, field) => {
                let object = self.procs[p].env.as_slice()[placeholder];
                layout.objects[usize::from(object)].registers[field]
            }
        }
    }

    pub(crate) fn operation(&self, p: usize, op: Op) -> Op {
        op.renamed(|placeholder| usize::from(self.procs[p].env.as_slice()[placeholder]))
    }

    pub(crate) fn value(&self, p: usize, value: Val) -> Val {
        value.map(|placeholder| usize::from(self.procs[p].env.as_slice()[placeholder]))
    }

    /// Writes the state as a row of words, which `unpack` reads.
    pub fn pack(&self, row: &mut Vec<u32>) {
        row.clear();
        row.extend(self.memory.iter().map(|value| value.0));
        for proc in &self.procs {
            row.push(proc.local);
            row.push(
                u32::from(proc.before)
                    | u32::from(proc.past_doorway) << 8
                    | u32::from(proc.undisturbed) << 22
                    | u32::from(proc.enabled) << 23
                    | u32::from(proc.overtaken) << 24
                    | u32::from(proc.passages) << 9
                    | u32::from(proc.env.len) << 17,
            );
            row.extend(proc.env.as_slice().chunks(4).map(|objects| {
                objects.iter().fold(1, |word, &object| word << 7 | u32::from(object))
            }));
        }
        self.buffers.pack(row);
    }

    /// Reads a state that `pack` wrote, of `registers` registers.
    pub fn unpack(row: &[u32], registers: usize) -> Self {
        let mut procs = Vec::with_capacity(MOST_PROCESSES);
        let mut rest = &row[registers..];
        while let [local, marks, ..] = *rest
            && !Buffers::begin(rest)
        {
            let len = (marks >> 17 & 31) as usize;
            let words = len.div_ceil(4);
            let mut env = Env::default();
            for (i, &word) in rest[2..2 + words].iter().enumerate() {
                let here = (len - 4 * i).min(4);
                for k in (0..here).rev() {
                    env.push((word >> (7 * k) & 127) as u8);
                }
            }
            procs.push(Proc {
                local,
                env,
                before: marks as u8,
                past_doorway: marks >> 8 & 1 == 1,
                undisturbed: marks >> 22 & 1 == 1,
                enabled: marks >> 23 & 1 == 1,
                overtaken: marks >> 24 & 1 == 1,
                passages: (marks >> 9) as u8,
            });
            rest = &rest[2 + words..];
        }
        let memory = row[..registers].iter().map(|&word| Val(word)).collect();
        State { memory, procs, buffers: Buffers::unpack(rest) }
    }
}
