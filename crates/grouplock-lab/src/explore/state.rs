//! A global state: what memory holds, and where everybody is.

use super::weak::Buffers;
use crate::automaton::{LocalId, Target};
use crate::layout::Layout;
use crate::memory::context::RegisterPlan;
use crate::value::Val;

/// The most processes an exploration can have.
pub(crate) const MOST_PROCESSES: usize = 8;
/// The most objects a process can know at a time.
const MOST_KNOWN: usize = 24;

/// The objects that a process knows, by placeholder.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Env {
    len: u8,
    objects: [u8; MOST_KNOWN],
}

impl Env {
    pub fn from_objects(objects: impl IntoIterator<Item = u8>) -> Self {
        let mut env = Env { len: 0, objects: [0; MOST_KNOWN] };
        for object in objects {
            env.push(object);
        }
        env
    }

    /// # Panics
    /// If the process knows too many objects. Then its text should say what it no longer needs.
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

/// Where a process is.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "marks, each by itself")]
pub struct Proc {
    pub local: LocalId,
    pub env: Env,
    /// Who asked before this process did, as a set of processes, and has not entered.
    pub before: u8,
    /// Whether it has finished its doorway, and has not entered.
    pub past_doorway: bool,
    /// Whether nobody with another session was about when it finished its doorway, and it has not entered.
    pub undisturbed: bool,
    /// Whether somebody who asked for its session after it has entered, and it has not.
    pub enabled: bool,
    /// Whether it is giving up, and somebody has entered who asked after it and is in conflict with it.
    pub overtaken: bool,
    /// How many passages it has begun, if that is bounded.
    pub passages: u8,
}

/// A global state.
#[derive(PartialEq, Eq)]
pub struct State {
    pub memory: Vec<Val>,
    pub procs: Vec<Proc>,
    /// What is on its way to memory.
    pub buffers: Buffers,
}

impl Clone for State {
    fn clone(&self) -> Self {
        let (memory, procs) = (self.memory.clone(), self.procs.clone());
        State { memory, procs, buffers: self.buffers.clone() }
    }

    /// Keeps the room it has.
    fn clone_from(&mut self, source: &Self) {
        self.memory.clone_from(&source.memory);
        self.procs.clone_from(&source.procs);
        self.buffers.clone_from(&source.buffers);
    }
}

impl State {
    /// The state in which everybody has joined and nobody has moved.
    /// If `forget`, what the text says is dead from the start is.
    pub(crate) fn first(layout: &Layout, procs: &[(LocalId, Vec<usize>)], forget: bool) -> Self {
        let procs = procs.iter().map(|(local, env)| Proc {
            local: *local,
            env: Env::from_objects(env.iter().map(|&object| object as u8)),
            before: 0,
            past_doorway: false,
            undisturbed: false,
            enabled: false,
            overtaken: false,
            passages: 0,
        });
        let initial = |register: &RegisterPlan<Val>| {
            if forget && register.forgotten { Val::UNDEF } else { register.initial }
        };
        let memory = layout.registers.iter().map(initial).collect();
        State { memory, procs: procs.collect(), buffers: Buffers::default() }
    }

    /// The register that process `p` means.
    pub(crate) fn register(&self, layout: &Layout, p: usize, target: Target) -> usize {
        match target {
            Target::Global(register) => register,
            Target::Field(placeholder, field) => {
                let object = self.procs[p].env.as_slice()[placeholder];
                layout.objects[usize::from(object)].registers[field]
            }
        }
    }

    /// The value that process `p` means.
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
            let mut env = Env::from_objects([]);
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
