//! The largest cost of a passage, proven for any number of processes.
//!
//! The bound is the longest path through the local automaton of one process, from its remainder
//! section back to it. Every access counts, except the accesses that the model makes free and those
//! that are shown below to find a copy. A lock that uses another lock is taken over an [ideal
//! one](crate::ideal); a passage through that costs what is proven for the real one.
//!
//! # Why it holds for any number of processes
//! The automaton is that of the real code. But the values that a process observes do not come from
//! executions of a few processes. They come from one set for each kind of register, which contains
//!
//! * what the register holds at first, and every value that a process writes to it in any state
//!   that is reached;
//! * for a pointer, every object of its type: each one that the process knows, and one that it does
//!   not know.
//!
//! A compare-and-swap both succeeds and fails. The search repeats until no set grows. Then the
//! automaton contains every step of every execution with any number of processes: the first missing
//! step would have observed a value that no process wrote. This has three conditions:
//!
//! 1. The code of a process depends neither on the number of processes nor on its own number. Only
//!    locks for any number of processes are taken, and all processes must begin in the same local
//!    state.
//! 2. Sessions are compared for equality and nothing else. So two sessions, and what a register
//!    holds at first, are enough.
//! 3. The automaton merges executions by what the text says is dead (`Memory::live`), and checks
//!    that as in an exploration.
//!
//! The automaton also contains executions that cannot happen, so the true worst case may be
//! smaller.
//!
//! # Reads that find a copy
//! A process *owns* an object that was made for it when it joined, if it has held a pointer to it
//! ever since. The search learns what others write to such an object: everything that is written
//! through a pointer that the writer does not own. Suppose that a process has accessed a register
//! of its own before in this passage, and now reads a value that others never write there. Then no
//! process has written it since, so the copy is current and the read is free. (With
//! [`CcWriteThrough`](super::Model::CcWriteThrough) a write leaves no copy, so the earlier access
//! must be a read. A compare-and-swap by others may remove a copy and write nothing; if others do
//! that, nothing is free.)
//!
//! # Waits
//! A wait is bounded if the register is in an object of the process's own, and every value that
//! others write to it ends the wait. A read that does not end the wait then saw a value from before
//! any such write; it is free or costs one, as above. The next write by another process ends the
//! wait, for one more reference. On distributed memory both cost nothing. No other wait is bounded
//! here, and no loop.

use std::collections::{BTreeMap, BTreeSet};

use grouplock_algorithms::claims::{Kind, Limit};
use grouplock_algorithms::memory::Home;
use rustc_hash::FxHashMap;

use super::model::PerModel;
use super::{RmrError, named};
use crate::automaton::{Automaton, Edge, LocalId, Obs, Op, Target};
use crate::layout::Layout;
use crate::subject::Subject;
use crate::trace::Section;
use crate::value::Val;
use crate::{ideal, registry};

/// What a passage of the algorithm called `name` costs at most, whatever the number of processes:
/// proven, see `rmr/bound.rs` for how. `None` if it has no bound, or none that can be proven like
/// this: then its cost depends on the number of processes, as far as this shows.
///
/// ```
/// use grouplock_lab::rmr::{Model, bounds};
///
/// let proven = bounds("dvir-taubenfeld-1")?.expect("its cost is constant");
/// assert_eq!(proven[Model::Dsm as usize], 4);
/// assert_eq!(bounds("burns-lamport")?, None);
/// # Ok::<(), grouplock_lab::rmr::RmrError>(())
/// ```
///
/// # Errors
/// [`RmrError::Unknown`].
pub fn bounds(name: &str) -> Result<Option<PerModel<u64>>, RmrError> {
    named(name)?;
    let all = registry::all();
    // A lock that uses another is listed as `outer`, over an ideal lock, and as `outer+inner`.
    let inner = all.iter().find_map(|subject| subject.name.strip_prefix(name)?.strip_prefix('+'));
    let inner = match inner.map(bounds).transpose()? {
        Some(None) => return Ok(None),
        Some(Some(inner)) => inner,
        None => [0; 4],
    };
    let subject = all.iter().find(|subject| subject.name == name);
    let search = subject.and_then(|subject| PathSearch::of(subject, inner, PROCESSES).ok());
    Ok(search.map(|search| search.passage))
}

/// The same for any lock, taken as a whole.
pub fn bounds_of(subject: &Subject) -> Option<PerModel<u64>> {
    bounds_with(subject, PROCESSES).map(|(bounds, ..)| bounds)
}

/// The same with the code run on this number of processes, and how many states and registers there
/// were.
#[doc(hidden)]
pub fn bounds_with(subject: &Subject, processes: usize) -> Option<(PerModel<u64>, usize, usize)> {
    let search = PathSearch::of(subject, [0; 4], processes).ok()?;
    Some((search.passage, search.longest.len(), search.cells.len()))
}

/// The number of processes of the lock that the code is run on. There must be an object left that a
/// process does not know; apart from that it makes no difference.
#[doc(hidden)]
pub const PROCESSES: usize = 5;
/// The limits of the search: values of a register, states of a passage, accesses of a passage.
const MOST_VALUES: usize = 16;
const MOST_STATES: usize = 200_000;
const MOST_ACCESSES: usize = 200;

/// There is no bound, or none that is proven like this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unproven;

/// Registers that may hold the same values: one that lies in no object, or one place in all objects
/// of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RegisterKind {
    Global(usize),
    Field(usize, usize),
}

/// What a register may hold. A pointer is [`Val::stranger`] here, whatever object it points to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Contents {
    all: BTreeSet<Val>,
    /// What processes write that do not own the object. [`Val::UNDEF`] represents any
    /// compare-and-swap.
    by_others: BTreeSet<Val>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct KnownObject {
    class: usize,
    own: bool,
}

/// A process somewhere in its passage.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PassageState {
    local: LocalId,
    known: Vec<KnownObject>,
    /// The registers that it has accessed in this passage, and whether the last access was a read.
    touched: BTreeMap<Target, bool>,
}

impl PassageState {
    fn cell(&self, target: Target) -> RegisterKind {
        match target {
            Target::Global(register) => RegisterKind::Global(register),
            Target::Field(object, field) => RegisterKind::Field(self.known[object].class, field),
        }
    }

    fn is_own(&self, target: Target) -> bool {
        matches!(target, Target::Field(object, _) if self.known[object].own)
    }

    /// The value, as it is in [`Contents`].
    fn told(&self, value: Val) -> Val {
        value.as_object().map_or(value, |object| Val::stranger(self.known[object].class))
    }

    /// What this process may observe if the register holds `told`.
    fn seen(&self, told: Val) -> impl Iterator<Item = Val> {
        let class = told.as_stranger();
        let alike = (0..self.known.len()).filter(move |&o| Some(self.known[o].class) == class);
        std::iter::once(told).chain(alike.map(Val::object))
    }

    /// Where `obs` leads over `edge`.
    fn after(&self, obs: Obs, edge: &Edge) -> Self {
        let mut known = self.known.clone();
        known.extend(obs.stranger().map(|class| KnownObject { class, own: false }));
        let mut touched = BTreeMap::new();
        for (&target, &read) in &self.touched {
            let Target::Field(object, field) = target else {
                touched.insert(target, read);
                continue;
            };
            if let Some(new) = edge.env.iter().position(|&old| usize::from(old) == object) {
                touched.insert(Target::Field(new, field), read);
            }
        }
        let known = edge.env.iter().map(|&old| known[usize::from(old)]).collect();
        PassageState { local: edge.target, known, touched }
    }
}

struct PathSearch {
    automaton: Automaton,
    /// The cost of a passage through the ideal lock.
    inner: PerModel<u64>,
    cells: BTreeMap<RegisterKind, Contents>,
    /// The longest path from a state to the end of the passage; none during its computation.
    longest: FxHashMap<PassageState, Option<PerModel<u64>>>,
    /// Where passages begin.
    idle: Vec<PassageState>,
    /// The accesses on the present path.
    accesses: usize,
    passage: PerModel<u64>,
}

impl PathSearch {
    fn of(
        subject: &Subject,
        inner: PerModel<u64>,
        processes: usize,
    ) -> Result<PathSearch, Unproven> {
        // Sessions that index an array are not only compared.
        let indexed = matches!(subject.claims.sessions, Limit::Fixed(_));
        // An ideal latch is no lock whose cost could be added.
        if subject.claims.processes != Limit::None || indexed || subject.dies {
            return Err(Unproven);
        }
        let (automaton, first) = Automaton::new(subject, processes);
        let layout = &automaton.layout;
        let known_to = |p: usize| {
            let objects = first[p].1.iter();
            objects.map(|&object| at_first(object, p, layout)).collect::<Vec<_>>()
        };
        // The first process stands for all, so the same must be in the memory of each.
        let (local, known) = (&first[0].0, known_to(0));
        if (0..first.len()).any(|p| first[p].0 != *local || known_to(p) != known) {
            return Err(Unproven);
        }
        let start = PassageState { local: *local, known, touched: BTreeMap::new() };
        let mut search = PathSearch {
            inner,
            cells: initial(layout),
            automaton,
            longest: FxHashMap::default(),
            idle: Vec::new(),
            accesses: 0,
            passage: [0; 4],
        };
        let sessions = if subject.claims.kind == Kind::Mutual { 1 } else { 2 };
        while !search.settles(&start, sessions)? {}
        Ok(search)
    }

    /// Looks at all passages. Returns whether no register can hold anything new.
    fn settles(&mut self, start: &PassageState, sessions: u64) -> Result<bool, Unproven> {
        let before = self.cells.clone();
        self.longest.clear();
        self.idle = vec![start.clone()];
        let mut next = 0;
        while let Some(idle) = self.idle.get(next).cloned() {
            next += 1;
            for session in 1..=sessions {
                let begun = self.follow(&idle, Obs::Request(session))?.ok_or(Unproven)?;
                self.passage = most(self.passage, self.longest(begun)?);
            }
        }
        Ok(self.cells == before)
    }

    /// Where `obs` leads; `None` if the code panics.
    fn follow(&mut self, state: &PassageState, obs: Obs) -> Result<Option<PassageState>, Unproven> {
        let edge = self.automaton.edge(state.local, obs).map_err(|_| Unproven)?;
        Ok(edge.panic.is_none().then(|| state.after(obs, &edge)))
    }

    /// The longest path from `state` to the end of the passage.
    fn longest(&mut self, mut state: PassageState) -> Result<PerModel<u64>, Unproven> {
        let node = self.automaton.node(state.local);
        let Some((target, op)) = node.step.filter(|_| node.section != Section::Remainder) else {
            if node.section == Section::Inside {
                let left = self.follow(&state, Obs::Pass)?;
                return left.map_or(Ok([0; 4]), |left| self.longest(left));
            }
            state.touched.clear();
            if !self.idle.contains(&state) {
                self.idle.push(state);
            }
            return Ok([0; 4]);
        };
        match self.longest.get(&state) {
            Some(Some(longest)) => return Ok(*longest),
            // It is on the path already: a loop.
            Some(None) => return Err(Unproven),
            None => _ = self.longest.insert(state.clone(), None),
        }
        self.accesses += 1;
        if self.accesses > MOST_ACCESSES || self.longest.len() > MOST_STATES {
            return Err(Unproven);
        }
        let awaits = node.head == Some(state.local);
        let mut touching = state.clone();
        touching.touched.insert(target, op.only_reads());
        let (mut vain, mut longest) = ([0; 4], [0; 4]);
        // The largest first, pointers above all: a loop is found sooner.
        for (told, obs) in self.observed(&state, target, op)?.into_iter().rev() {
            let cost = self.cost(&state, target, op, told);
            let next = obs.map(|obs| self.follow(&touching, obs)).transpose()?.flatten();
            let is_back = next.as_ref().is_some_and(|next| next.local == state.local);
            if obs.is_none() || awaits && is_back {
                if self.may_come_from_others(&state, target, told) {
                    return Err(Unproven);
                }
                vain = most(vain, cost);
            } else {
                let rest = next.map_or(Ok([0; 4]), |next| self.longest(next))?;
                longest = most(longest, sum(cost, rest));
            }
        }
        self.accesses -= 1;
        let longest = sum(vain, longest);
        self.longest.insert(state, Some(longest));
        Ok(longest)
    }

    /// The values that the register may hold before `op`, and the observation of the process for
    /// each: none if it continues to wait. The values that `op` writes are noted.
    fn observed(
        &mut self,
        state: &PassageState,
        target: Target,
        op: Op,
    ) -> Result<Vec<(Val, Option<Obs>)>, Unproven> {
        let contents = self.cells.entry(state.cell(target)).or_default();
        if let Op::Write(value) | Op::Fas(value) | Op::Cas(_, value) | Op::AwaitCas(_, value) = op {
            let told = state.told(value);
            contents.all.insert(told);
            if !state.is_own(target) {
                contents.by_others.insert(told);
                contents.by_others.extend(matches!(op, Op::Cas(..)).then_some(Val::UNDEF));
            }
        }
        if contents.all.len() > MOST_VALUES {
            return Err(Unproven);
        }
        let all = contents.all.iter().copied();
        Ok(match op {
            Op::Read | Op::Fas(_) => {
                let seen = |told| state.seen(told).map(move |seen| (told, Some(Obs::Value(seen))));
                all.flat_map(seen).collect()
            }
            Op::WaitFor(value) => {
                let value = state.told(value);
                all.map(|told| (told, (told == value).then_some(Obs::Done))).collect()
            }
            Op::WaitUnless(value) => {
                let value = state.told(value);
                all.flat_map(|told| {
                    let waited = (told == value).then_some(Obs::Waited(true));
                    [(told, waited), (told, Some(Obs::Waited(false)))]
                })
                .collect()
            }
            Op::Write(_) | Op::AwaitCas(..) => vec![(Val::UNDEF, Some(Obs::Done))],
            Op::Cas(..) => {
                [true, false].map(|swaps| (Val::UNDEF, Some(Obs::Swapped(swaps)))).into()
            }
            // These are numbers without a bound, and a wait for more than one value.
            Op::Faa(..) | Op::WaitOther(_) => return Err(Unproven),
        })
    }

    /// Whether another process may have written this into the register since `state`'s process last
    /// accessed it.
    fn may_come_from_others(&self, state: &PassageState, target: Target, told: Val) -> bool {
        let by_others = &self.cells[&state.cell(target)].by_others;
        !state.is_own(target) || by_others.contains(&told) || by_others.contains(&Val::UNDEF)
    }

    /// The largest cost of an access; of a read, if the register holds `told`.
    fn cost(&self, state: &PassageState, target: Target, op: Op, told: Val) -> PerModel<u64> {
        let is_ideal =
            |register: usize| self.automaton.layout.registers[register].site.name == ideal::NAME;
        match (op, target) {
            (Op::AwaitCas(..), _) => return self.inner,
            (_, Target::Global(register)) if is_ideal(register) => return [0; 4],
            _ => {}
        }
        let is_current = op.only_reads() && !self.may_come_from_others(state, target, told);
        let copy = state.touched.get(&target).filter(|_| is_current);
        let [cached, read] = [copy.is_some(), copy == Some(&true)];
        [!cached, !cached, !read, !state.is_own(target)].map(u64::from)
    }
}

/// An object that process `p` knows when it has joined.
fn at_first(object: usize, p: usize, layout: &Layout) -> KnownObject {
    let object = &layout.objects[object];
    let is_home = |&register: &usize| layout.registers[register].site.home == Home::Process(p);
    KnownObject { class: object.class, own: object.registers.iter().all(is_home) }
}

fn initial(layout: &Layout) -> BTreeMap<RegisterKind, Contents> {
    let mut cells: BTreeMap<RegisterKind, Contents> = BTreeMap::new();
    for (number, register) in layout.registers.iter().enumerate() {
        let class = |object: usize| layout.objects[object].class;
        let cell = register.object.map_or(RegisterKind::Global(number), |(object, field)| {
            RegisterKind::Field(class(object), field)
        });
        let value = register.initial;
        let told = value.as_object().map_or(value, |object| Val::stranger(class(object)));
        cells.entry(cell).or_default().all.insert(told);
    }
    cells
}

fn most(a: PerModel<u64>, b: PerModel<u64>) -> PerModel<u64> {
    std::array::from_fn(|model| a[model].max(b[model]))
}

fn sum(a: PerModel<u64>, b: PerModel<u64>) -> PerModel<u64> {
    std::array::from_fn(|model| a[model] + b[model])
}
