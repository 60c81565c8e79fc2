//! Which states count as the same state.
//!
//! *Scrubbing*: the contents of an object that no process can reach are dead. *Symmetry*: states
//! that differ only in the names of processes and objects are one state. The standard form of a
//! state numbers objects in the order in which a walk through memory meets them, and orders the
//! processes by their descriptions. If several orders remain, all are tried and the smallest result
//! is taken.

use super::state::{Env, MOST_KNOWN, MOST_PROCESSES, Proc, State};
use crate::layout::Layout;
use crate::value::{MOST_CLASSES, MOST_OBJECTS, Val};

/// The processes that can reach each object, a bit each. One more bit is for the registers that lie
/// in no object.
pub(crate) struct Reach([u16; MOST_OBJECTS]);

const GLOBAL: u16 = 1 << MOST_PROCESSES;

impl Reach {
    pub(crate) fn of(state: &State, layout: &Layout) -> Self {
        let mut reach = Reach([0; MOST_OBJECTS]);
        let mut stack = Vec::with_capacity(layout.objects.len());
        stack.extend(layout.globals.iter().filter_map(|&r| state.memory[r].as_object()));
        reach.spread(GLOBAL, &mut stack, state, layout);
        for (p, proc) in state.procs.iter().enumerate() {
            stack.extend(proc.env.as_slice().iter().map(|&object| usize::from(object)));
            reach.spread(1 << p, &mut stack, state, layout);
        }
        reach
    }

    fn spread(&mut self, who: u16, stack: &mut Vec<usize>, state: &State, layout: &Layout) {
        while let Some(object) = stack.pop() {
            if self.0[object] & who == 0 {
                self.0[object] |= who;
                let fields = &layout.objects[object].registers;
                stack.extend(fields.iter().filter_map(|&r| state.memory[r].as_object()));
            }
        }
    }

    pub(crate) fn is_private(&self, object: usize, p: usize) -> bool {
        self.0[object] == 1 << p
    }

    pub(crate) fn scrub(&self, state: &mut State, layout: &Layout) {
        for (object, who) in layout.objects.iter().zip(&self.0) {
            if *who == 0 {
                for &register in &object.registers {
                    state.memory[register] = Val::UNDEF;
                }
            }
        }
    }
}

/// How a state was renamed: `order[i]` is the process that is now number `i`, `objects[o]` is the
/// new number of object `o`.
#[derive(Clone, Debug)]
pub(crate) struct Renaming {
    pub(crate) order: Vec<usize>,
    pub(crate) objects: [u8; MOST_OBJECTS],
}

const UNNAMED: u8 = u8::MAX;

/// A description of a process. Those in one local state know equally many objects.
type Look = [u32; 3 + MOST_KNOWN];

/// A walk through memory that renumbers objects.
#[derive(Clone)]
struct Walk<'a> {
    state: &'a State,
    layout: &'a Layout,
    objects: [u8; MOST_OBJECTS],
    /// The number of objects of each kind that have a number.
    taken: [u8; MOST_CLASSES],
    queue: Vec<usize>,
}

impl<'a> Walk<'a> {
    /// A walk that has met all objects that the global registers lead to.
    fn from_globals(state: &'a State, layout: &'a Layout) -> Self {
        let (objects, taken) = ([UNNAMED; MOST_OBJECTS], [0; MOST_CLASSES]);
        let mut walk = Walk { state, layout, objects, taken, queue: Vec::new() };
        for &register in &layout.globals {
            walk.meet(state.memory[register]);
        }
        walk.go_on();
        walk
    }

    fn meet(&mut self, value: Val) {
        if let Some(object) = value.as_object()
            && self.objects[object] == UNNAMED
        {
            let class = self.layout.objects[object].class;
            let number = self.layout.classes[class][usize::from(self.taken[class])];
            self.objects[object] = number as u8;
            self.taken[class] += 1;
            self.queue.push(object);
        }
    }

    fn go_on(&mut self) {
        let mut next = 0;
        while next < self.queue.len() {
            for &register in &self.layout.objects[self.queue[next]].registers {
                self.meet(self.state.memory[register]);
            }
            next += 1;
        }
        self.queue.clear();
    }

    /// A description of process `p` that names no process.
    fn look_at(&self, p: usize) -> Look {
        let proc = &self.state.procs[p];
        let behind = self.state.procs.iter().filter(|q| q.before >> p & 1 == 1).count();
        let mut look = [0; 3 + MOST_KNOWN];
        look[0] = proc.local;
        look[1] = u32::from(proc.enabled) << 18
            | u32::from(proc.undisturbed) << 17
            | u32::from(proc.past_doorway) << 16
            | u32::from(proc.passages);
        look[2] = proc.before.count_ones() << 8 | behind as u32;
        for (word, &object) in look[3..].iter_mut().zip(proc.env.as_slice()) {
            let object = usize::from(object);
            *word = match self.objects[object] {
                UNNAMED => 1000 + self.layout.objects[object].class as u32,
                number => u32::from(number),
            };
        }
        look
    }

    /// The state with processes in `order`, objects numbered as the walk meets them.
    fn finish(mut self, order: &[usize]) -> (State, [u8; MOST_OBJECTS]) {
        let (state, layout) = (self.state, self.layout);
        for &p in order {
            for &object in state.procs[p].env.as_slice() {
                self.meet(Val::object(usize::from(object)));
            }
            for pending in state.buffers.of(p) {
                if let Some((object, _)) = pending.register.and_then(|r| layout.registers[r].object)
                {
                    self.meet(Val::object(object));
                }
                self.meet(pending.value);
            }
            self.go_on();
        }
        // No process can reach the rest. It matters only if it is not scrubbed.
        for object in 0..layout.objects.len() {
            self.meet(Val::object(object));
        }
        let name = |object: usize| usize::from(self.objects[object]);
        let mut memory = vec![Val::UNDEF; state.memory.len()];
        for &register in &layout.globals {
            memory[register] = state.memory[register].map(name);
        }
        for (object, info) in layout.objects.iter().enumerate() {
            let there = &layout.objects[name(object)].registers;
            for (&from, &to) in info.registers.iter().zip(there) {
                memory[to] = state.memory[from].map(name);
            }
        }
        let mut place = [0; MOST_PROCESSES];
        for (i, &p) in order.iter().enumerate() {
            place[p] = i;
        }
        let procs = order.iter().map(|&p| {
            let proc = &state.procs[p];
            let objects =
                proc.env.as_slice().iter().map(|&object| self.objects[usize::from(object)]);
            let before = (0..order.len()).filter(|&q| proc.before >> q & 1 == 1);
            Proc {
                env: Env::from_objects(objects),
                before: before.fold(0, |set, q| set | 1 << place[q]),
                ..*proc
            }
        });
        let procs = procs.collect();
        let buffers = state.buffers.renamed(order, |r| layout.renamed(r, name), name);
        (State { memory, procs, buffers }, self.objects)
    }
}

/// Which names may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renamed {
    Nothing,
    /// Only those of objects: processes differ in their code.
    Objects,
    All,
}

/// The standard form of `state`, and how it was renamed.
pub(crate) fn canonical(state: &State, layout: &Layout, what: Renamed) -> (State, Renaming) {
    let walk = Walk::from_globals(state, layout);
    // If only objects change names, processes keep their order.
    let look = |p: usize| match what {
        Renamed::All => walk.look_at(p),
        _ => [p as u32; 3 + MOST_KNOWN],
    };
    let mut looks: Vec<(Look, usize)> = (0..state.procs.len()).map(|p| (look(p), p)).collect();
    looks.sort_unstable();
    let mut best: Option<(State, Renaming)> = None;
    let mut best_row = Vec::new();
    let mut row = Vec::new();
    for_each_order(&looks, &mut |order| {
        let (renamed, objects) = walk.clone().finish(order);
        renamed.pack(&mut row);
        if best.is_none() || row < best_row {
            std::mem::swap(&mut row, &mut best_row);
            best = Some((renamed, Renaming { order: order.to_vec(), objects }));
        }
    });
    best.expect("there is at least one order")
}

/// `state`, in its standard form if names may change.
pub(crate) fn standard(state: State, layout: &Layout, what: Renamed) -> State {
    if what == Renamed::Nothing { state } else { canonical(&state, layout, what).0 }
}

/// Whether `state` stays the same, except for names, if two processes change places: then each can
/// do what the other can.
pub(crate) fn may_swap(state: &State, layout: &Layout, p: usize, q: usize) -> bool {
    let mut order: Vec<usize> = (0..state.procs.len()).collect();
    let walk = Walk::from_globals(state, layout);
    let (before, _) = walk.clone().finish(&order);
    order.swap(p, q);
    before == walk.finish(&order).0
}

/// Calls `f` with every order of the processes that keeps `looks` sorted.
pub fn for_each_order<L: PartialEq>(looks: &[(L, usize)], f: &mut dyn FnMut(&[usize])) {
    fn place<L: PartialEq>(
        looks: &[(L, usize)],
        used: u16,
        order: &mut Vec<usize>,
        f: &mut dyn FnMut(&[usize]),
    ) {
        let at = order.len();
        if at == looks.len() {
            return f(order);
        }
        for (i, (look, p)) in looks.iter().enumerate() {
            if used >> i & 1 == 0 && *look == looks[at].0 {
                order.push(*p);
                place(looks, used | 1 << i, order, f);
                order.pop();
            }
        }
    }
    place(looks, 0, &mut Vec::with_capacity(looks.len()), f);
}
