//! The code of one process as an automaton, compiled as far as exploration needs it.
//!
//! A *local state* stands for all executions of a process that cannot be told apart from here on. What a
//! process observes takes it to the next one. Each such *edge* is found by one [run](run) of the real code
//! and then remembered, so that exploration works on tables.
//!
//! # What a local state is
//! The sequence of what was observed since the last *merge point*, where less than the whole past counts:
//!
//! * the remainder section: what `inspect` tells;
//! * entry to the critical section: the process's handle, by its `Debug` form, which is derived and names every field;
//! * `Memory::live`: the handle, and the words told;
//! * the head of an `await`: a round that failed leads back to it, and one that succeeded is forgotten but for
//!   that.
//!
//! # Objects are placeholders
//! The code only compares pointers and follows them. So a local state names the objects it knows by
//! placeholders 0, 1, 2 … in the order in which they came up, and whoever is in that state says which object
//! each stands for (its *environment*). One automaton then serves all processes whose code differs in
//! nothing but pointers.
//!
//! # Trust, but verify
//! A local state keeps two ways that led to it (*witnesses*), if there are two. Every edge is computed
//! along both, and they must agree: so a statement about dead values that is wrong is found out instead of
//! believed. In the same way the value that made a compare-and-swap fail is taken for dead until two
//! values are seen to make a difference; then [`Trouble::Refine`] asks to start again and keep it.

pub(crate) mod run;
mod symbols;

use std::panic::Location;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::layout::Layout;
use crate::memory::context;
use crate::subject::Subject;
use crate::value::{Obs, Val};
use run::{Cue, Merge, Op, Outcome, Phase, execute};
use symbols::{Known, Symbolic, SymbolicStop};

/// The number of a local state.
pub(crate) type LocalId = u32;

/// A register as a process names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Target {
    /// A register that lies in no object.
    Global(usize),
    /// A place in the object a placeholder stands for.
    Field(usize, usize),
}

/// What a process says without taking a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    Forget(Target),
    DoorwayEnd,
}

/// A local state.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) phase: Phase,
    /// The session asked for in this passage; zero in the remainder section.
    pub(crate) session: u64,
    /// How many objects it knows.
    pub(crate) arity: usize,
    /// What it does next; nothing in the remainder section and at merge points, where nobody stays.
    pub(crate) step: Option<(Target, Op)>,
    /// The line where it does that.
    pub(crate) at: Option<&'static Location<'static>>,
    /// If it is in an `await`, the head of that: perhaps this very state.
    pub(crate) head: Option<LocalId>,
}

/// What an observation leads to.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub(crate) target: LocalId,
    /// For each placeholder of the target, the source's that it was; a stranger counts as the source's last.
    pub(crate) env: Box<[u8]>,
    /// In the source's placeholders.
    pub(crate) notes: Box<[Note]>,
    /// The algorithm panicked instead.
    pub(crate) panic: Option<String>,
}

/// Why the automaton cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Some values of failed compare-and-swaps matter after all. Start again.
    Refine,
    /// A process wrote what was taken for another's own. Start again without that guess.
    Trespass,
    /// The text's word on what is dead is wrong.
    Liveness(String),
}

/// A place in a program text, as a key.
type Line = (&'static str, u32, u32);

fn line(at: &Location<'static>) -> Line {
    (at.file(), at.line(), at.column())
}

/// A way to a local state: one more cue than an earlier one. The first have none.
#[derive(Clone, Debug)]
struct Witness {
    before: Option<(usize, Cue)>,
    process: usize,
    /// The object each placeholder stands for on this way.
    env: Vec<usize>,
}

type MergeKey = (Merge, Phase, u64, String);

/// The automaton.
pub(crate) struct Automaton {
    subject: Subject,
    processes: usize,
    pub(crate) layout: Arc<Layout>,
    nodes: Vec<Arc<Node>>,
    witnesses: Vec<Witness>,
    witnessed_by: Vec<Vec<usize>>,
    /// Edges as a run shows them: they may lead to merge points.
    raw: FxHashMap<(LocalId, Obs), Edge>,
    /// Edges that lead to where a process stays.
    edges: FxHashMap<(LocalId, Obs), Arc<Edge>>,
    outgoing: Vec<Vec<(Obs, Val)>>,
    after_await: FxHashMap<LocalId, LocalId>,
    merges: FxHashMap<MergeKey, LocalId>,
    /// Lines whose failed compare-and-swaps tell a value that matters.
    telling: FxHashSet<Line>,
    /// Lines whose failed compare-and-swaps were taken not to.
    hushed: FxHashSet<Line>,
    runs: u64,
}

impl Automaton {
    /// The automaton of `subject`, and each process's first local state and environment. `telling` are the lines
    /// that an earlier attempt learnt of.
    pub(crate) fn new(
        subject: &Subject,
        processes: usize,
        telling: FxHashSet<Line>,
    ) -> (Self, Vec<(LocalId, Vec<usize>)>) {
        let (instance, plan) = context::set_up(|| (subject.make)(processes));
        drop(instance);
        let mut automaton = Automaton {
            subject: *subject,
            processes,
            layout: Arc::new(Layout::of(&plan)),
            nodes: Vec::new(),
            witnesses: Vec::new(),
            witnessed_by: Vec::new(),
            raw: FxHashMap::default(),
            edges: FxHashMap::default(),
            outgoing: Vec::new(),
            after_await: FxHashMap::default(),
            merges: FxHashMap::default(),
            telling,
            hushed: FxHashSet::default(),
            runs: 0,
        };
        let first = (0..processes).map(|p| automaton.first(p)).collect();
        (automaton, first)
    }

    /// The local state of a process that has just joined.
    fn first(&mut self, p: usize) -> (LocalId, Vec<usize>) {
        let outcome = self.execute(p, &[]);
        // Every object that `inspect` tells is known from now on.
        let known = Known::everything(self.layout.objects.len());
        let symbolic = known.translate(&outcome, &self.layout).expect("everything is known");
        let SymbolicStop::Merge(merge, text, placeholders) = symbolic.stop else {
            unreachable!("a process that has joined is in its remainder section")
        };
        let env: Vec<usize> = placeholders.iter().map(|&object| usize::from(object)).collect();
        let witness = Witness { before: None, process: p, env: env.clone() };
        let key = (merge, Phase::Remainder, 0, text);
        let id = self.merge_point(key, env.len());
        if self.witnessed_by[id as usize].len() < 2 {
            self.witnesses.push(witness);
            self.witnessed_by[id as usize].push(self.witnesses.len() - 1);
        }
        (id, env)
    }

    /// A local state.
    pub(crate) fn node(&self, id: LocalId) -> Arc<Node> {
        Arc::clone(&self.nodes[id as usize])
    }

    /// How often the real code was run, and how many local states that gave.
    pub(crate) fn size(&self) -> (u64, usize) {
        (self.runs, self.nodes.len())
    }

    /// The lines whose failed compare-and-swaps tell a value that matters, so far as is known.
    pub(crate) fn telling(&self) -> &FxHashSet<Line> {
        &self.telling
    }

    /// Whether a failed compare-and-swap in the local state `id` is to be observed as [`Obs::FAILED`].
    pub(crate) fn hushes_failure(&self, id: LocalId) -> bool {
        self.nodes[id as usize].at.is_some_and(|at| !self.telling.contains(&line(at)))
    }

    /// Where `obs` leads to from `source`. `hint` is a value that may stand behind an [`Obs::FAILED`], in the
    /// source's placeholders.
    pub(crate) fn edge(
        &mut self,
        source: LocalId,
        obs: Obs,
        hint: Val,
    ) -> Result<Arc<Edge>, Trouble> {
        if let Some(edge) = self.edges.get(&(source, obs)) {
            return Ok(Arc::clone(edge));
        }
        let mut edge = self.raw_edge(source, obs, hint)?;
        while edge.panic.is_none() {
            let target = self.node(edge.target);
            if target.step.is_some() || target.phase == Phase::Remainder {
                break;
            }
            let on = self.raw_edge(edge.target, Obs::PASS, Val::UNDEF)?;
            edge = compose(&edge, &on);
        }
        let edge = Arc::new(edge);
        self.edges.insert((source, obs), Arc::clone(&edge));
        Ok(edge)
    }

    /// The edge as a run shows it.
    fn raw_edge(&mut self, source: LocalId, obs: Obs, hint: Val) -> Result<Edge, Trouble> {
        if let Some(edge) = self.raw.get(&(source, obs)) {
            return Ok(edge.clone());
        }
        if obs == Obs::FAILED
            && let Some(at) = self.nodes[source as usize].at
        {
            self.hushed.insert(line(at));
        }
        let ways = self.witnessed_by[source as usize].clone();
        let first = self.follow(ways[0], source, obs, hint);
        let (symbolic, witness) = first.map_err(|why| self.trouble(why))?;
        let (target, env) = self.target(source, obs, &symbolic);
        let notes = symbolic.notes.clone().into_boxed_slice();
        let panic = match &symbolic.stop {
            SymbolicStop::Panic(message) => Some(message.clone()),
            _ => None,
        };
        let edge = Edge { target, env, notes, panic };
        self.raw.insert((source, obs), edge.clone());
        self.outgoing[source as usize].push((obs, hint));
        self.testify(&symbolic, &edge, witness)?;
        // The same along another way: one that is known, or the same with another failed value.
        let second = ways.get(1).copied().unwrap_or(ways[0]);
        let other_hint = if obs == Obs::FAILED { self.another(source, hint) } else { hint };
        if second != ways[0] || other_hint != hint {
            self.confirm(second, source, obs, other_hint, &symbolic, &edge)?;
        }
        Ok(edge)
    }

    /// Follows `obs` along another way, and checks that it shows the same as `symbolic`.
    fn confirm(
        &mut self,
        way: usize,
        source: LocalId,
        obs: Obs,
        hint: Val,
        symbolic: &Symbolic,
        edge: &Edge,
    ) -> Result<(), Trouble> {
        let (other, witness) =
            self.follow(way, source, obs, hint).map_err(|why| self.trouble(why))?;
        if other != *symbolic {
            let place = self.nodes[source as usize].at;
            let why = format!(
                "two executions that were taken for one at {} differ after observing {obs:?}: {:?} and {:?}",
                place.map_or_else(|| "a merge point".to_owned(), ToString::to_string),
                symbolic.stop,
                other.stop
            );
            return Err(self.trouble(why));
        }
        self.testify(symbolic, edge, witness)
    }

    /// Failed compare-and-swaps may be at fault as long as any value of theirs was dropped.
    fn trouble(&mut self, why: String) -> Trouble {
        if self.hushed.is_empty() {
            Trouble::Liveness(why)
        } else {
            self.telling.extend(self.hushed.drain());
            Trouble::Refine
        }
    }

    /// Runs the code along `way` and then `obs`.
    fn follow(
        &mut self,
        way: usize,
        source: LocalId,
        obs: Obs,
        hint: Val,
    ) -> Result<(Symbolic, Witness), String> {
        let witness = &self.witnesses[way];
        let mut known = Known::of(&witness.env);
        let cue = known.cue(obs, hint, &self.layout)?;
        let process = witness.process;
        let mut script = vec![cue];
        let mut at = way;
        while let Some((before, cue)) = self.witnesses[at].before {
            script.push(cue);
            at = before;
        }
        script.reverse();
        let outcome = self.execute(process, &script);
        let mut symbolic = known.translate(&outcome, &self.layout)?;
        if symbolic.in_round.is_some_and(|entries| entries > 0)
            || symbolic.stop == SymbolicStop::RoundFailed
        {
            debug_assert!(self.nodes[source as usize].head.is_some(), "a round has a head");
        }
        if obs == Obs::PASS || obs.as_request().is_some() {
            symbolic.passed = false;
        }
        Ok((symbolic, Witness { before: Some((way, cue)), process, env: known.into_objects() }))
    }

    /// The local state that a run came to, and what its placeholders were in the source.
    fn target(&mut self, source: LocalId, obs: Obs, symbolic: &Symbolic) -> (LocalId, Box<[u8]>) {
        let from = self.node(source);
        let stranger = usize::from(obs.as_stranger().is_some());
        match &symbolic.stop {
            SymbolicStop::Panic(_) => (source, identity(from.arity)),
            SymbolicStop::RoundFailed => {
                let head = from.head.expect("a round has a head");
                (head, identity(self.nodes[head as usize].arity))
            }
            SymbolicStop::Merge(merge, text, placeholders) => {
                let key = (*merge, symbolic.phase, symbolic.session, text.clone());
                let id = self.merge_point(key, placeholders.len());
                (id, placeholders.clone().into_boxed_slice())
            }
            SymbolicStop::Operation { target, op, at } => {
                let head = if symbolic.passed { from.head } else { None };
                if let Some(&id) = head.and_then(|head| self.after_await.get(&head)) {
                    return (id, identity(self.nodes[id as usize].arity));
                }
                let arity =
                    head.map_or(from.arity + stranger, |head| self.nodes[head as usize].arity);
                let id = self.nodes.len() as LocalId;
                let id = self.add(Node {
                    phase: symbolic.phase,
                    session: symbolic.session,
                    arity,
                    step: Some((*target, *op)),
                    at: Some(at),
                    head: match symbolic.in_round {
                        Some(0) => Some(id),
                        Some(_) => from.head,
                        None => None,
                    },
                });
                if let Some(head) = head {
                    self.after_await.insert(head, id);
                }
                (id, identity(arity))
            }
        }
    }

    /// The local state for `key`, which knows `arity` objects.
    fn merge_point(&mut self, key: MergeKey, arity: usize) -> LocalId {
        if let Some(&id) = self.merges.get(&key) {
            return id;
        }
        let (_, phase, session, _) = key;
        let id = self.add(Node { phase, session, arity, step: None, at: None, head: None });
        self.merges.insert(key, id);
        id
    }

    /// Adds a way to the edge's target, unless that has two. What is known to follow from there must follow on
    /// this way too. (A failed round is no way: scripts are kept free of them.)
    fn testify(
        &mut self,
        symbolic: &Symbolic,
        edge: &Edge,
        witness: Witness,
    ) -> Result<(), Trouble> {
        let target = edge.target;
        if matches!(symbolic.stop, SymbolicStop::Panic(_) | SymbolicStop::RoundFailed)
            || self.witnessed_by[target as usize].len() >= 2
        {
            return Ok(());
        }
        let mut witness = witness;
        witness.env = edge.env.iter().map(|&from| witness.env[usize::from(from)]).collect();
        self.witnesses.push(witness);
        let way = self.witnesses.len() - 1;
        self.witnessed_by[target as usize].push(way);
        if self.witnessed_by[target as usize].len() < 2 {
            return Ok(());
        }
        for (obs, hint) in self.outgoing[target as usize].clone() {
            let first = self.witnessed_by[target as usize][0];
            let (symbolic, _) =
                self.follow(first, target, obs, hint).map_err(|why| self.trouble(why))?;
            let edge = self.raw[&(target, obs)].clone();
            self.confirm(way, target, obs, hint, &symbolic, &edge)?;
        }
        Ok(())
    }

    /// Another value than `hint` that may make the pending compare-and-swap fail, if one is sure to be harmless:
    /// an object must be of the same kind, as it may be followed.
    fn another(&self, source: LocalId, hint: Val) -> Val {
        let node = &self.nodes[source as usize];
        let Some((_, Op::Cas(old, new))) = node.step else { return hint };
        let env = &self.witnesses[self.witnessed_by[source as usize][0]].env;
        let class = |value: Val| {
            let placeholder = value.as_object()?;
            let known = env.get(placeholder).map(|&object| self.layout.objects[object].class);
            Some(known.unwrap_or_else(|| placeholder - env.len()))
        };
        let kind = |value: Val| (value.as_number().is_some(), class(value));
        let objects = (0..node.arity).map(Val::object);
        [new]
            .into_iter()
            .chain(objects)
            .find(|&value| value != old && value != hint && kind(value) == kind(hint))
            .unwrap_or(hint)
    }

    fn add(&mut self, node: Node) -> LocalId {
        self.nodes.push(Arc::new(node));
        self.witnessed_by.push(Vec::new());
        self.outgoing.push(Vec::new());
        self.nodes.len() as LocalId - 1
    }

    fn execute(&mut self, p: usize, script: &[Cue]) -> Outcome {
        self.runs += 1;
        execute(&self.subject, self.processes, p, script)
    }
}

fn identity(arity: usize) -> Box<[u8]> {
    (0..arity as u8).collect()
}

/// One edge and then another.
fn compose(first: &Edge, second: &Edge) -> Edge {
    let through = |placeholder: usize| usize::from(first.env[placeholder]);
    let target = |target: Target| match target {
        Target::Global(register) => Target::Global(register),
        Target::Field(placeholder, field) => Target::Field(through(placeholder), field),
    };
    let notes = second.notes.iter().map(|note| match *note {
        Note::Forget(register) => Note::Forget(target(register)),
        Note::DoorwayEnd => Note::DoorwayEnd,
    });
    Edge {
        target: second.target,
        env: second.env.iter().map(|&p| first.env[usize::from(p)]).collect(),
        notes: first.notes.iter().copied().chain(notes).collect(),
        panic: second.panic.clone(),
    }
}
