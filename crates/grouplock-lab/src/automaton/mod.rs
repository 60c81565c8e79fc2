//! The code of one process as an automaton, compiled as far as the exploration needs it.
//!
//! A *local state* represents all executions of a process that behave alike from here on. An
//! observation takes the process to the next local state. One run of the real code finds
//! such an *edge*; then the edge is remembered. So an exploration works on tables.
//!
//! # What a local state is
//! It is the sequence of observations since the last *merge point*. At a merge point only part of
//! the past counts:
//!
//! * in the remainder section: what `inspect` reports;
//! * at the entry to the critical section: the handle of the process, by its `Debug` form, which is
//!   derived and names every field;
//! * at `Memory::live`: the handle, and the words it is given;
//! * at the head of an `await`: a round that failed leads back to it, and a round that succeeded
//!   leaves nothing else behind.
//!
//! A process may read a pointer that it once knew, and that was dropped. It cannot tell that from
//! one it never knew. So such an edge is run with each of these objects.
//!
//! # Objects are placeholders
//! The code only compares pointers and follows them. So a local state names the objects that it
//! knows by placeholders 0, 1, 2 … in the order in which they appeared. A process in that state
//! says which object each placeholder represents (its *environment*). So one automaton serves all
//! processes whose code differs only in pointers.
//!
//! # Statements about dead contents are checked
//! The text may be wrong about what is dead. So a local state keeps several ways that led to it
//! (*witnesses*). Every edge from it is run along each of them, and all must show the same.
//!
//! A *merging* edge leads to a merge point, or out of an `await`: it drops earlier observations.
//! (Two ways over one edge may have handles that differ where the text says that this makes no
//! difference. Then they count as two edges here.) The automaton keeps these ways:
//!
//! * for each merging edge, one way over it;
//! * for each merging edge, and each later target of a merging edge in the same section (entry or
//!   exit) that some way reaches after it, one such way;
//! * for each process, one way at its start;
//! * for an edge that does not merge, all ways of the state before it.
//!
//! So one observation that was dropped wrongly is found wherever it makes a difference in its
//! section, however many merge points are between. Only the handle survives the end of a section,
//! and it counts as a whole there and at the merge points of the next section.
//!
//! Not checked: more than 16 handles with which passages end in one way, where `inspect` says that
//! they make no difference; two or more dropped observations that make a difference only together;
//! an `await` whose condition keeps something from one round to the next; a handle whose `Debug`
//! form omits something; code that orders pointers or reads their addresses.

mod run;

pub use run::{Obs, Op};

use std::panic::Location;
use std::sync::Arc;

use grouplock_algorithms::memory::Ordering;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::layout::Layout;
use crate::memory::context;
use crate::subject::Subject;
use crate::trace::Section;
use crate::value::Val;
use run::{Known, Merge, Shown, Stop, execute};

pub type LocalId = u32;

/// A register as a process names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// A register that lies in no object.
    Global(usize),
    /// A register in the object that a placeholder represents.
    Field(usize, usize),
}

/// What a process says without taking a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    Forget(Target),
    DoorwayEnd,
}

#[derive(Clone, Copy, Debug)]
pub struct Node {
    pub section: Section,
    /// The requested session; zero in the remainder section.
    pub session: u64,
    /// How many objects it knows.
    pub arity: usize,
    /// Its next step; none in the remainder section, inside if the exit section has no steps, and
    /// at other merge points, where no process stays.
    pub step: Option<(Target, Op)>,
    /// The ordering of that step in the text. Without a step, the strongest.
    pub order: Ordering,
    pub at: Option<&'static Location<'static>>,
    /// If it is in an `await`, the head of that `await`. This may be the same state.
    pub head: Option<LocalId>,
}

/// The target of an observation.
#[derive(Clone, Debug)]
pub struct Edge {
    pub target: LocalId,
    /// For each placeholder of the target, its placeholder in the source. An unknown object counts
    /// as the source's last.
    pub env: Box<[u8]>,
    /// In the placeholders of the source.
    pub notes: Box<[Note]>,
    pub panic: Option<String>,
}

/// A way to a local state: an earlier way with one more cue. The first ways have no cue.
#[derive(Clone, Debug)]
struct Witness {
    before: Option<(usize, Obs)>,
    process: usize,
    /// The object that each placeholder represents on this way.
    env: Vec<usize>,
    /// The merging edges that it took in the present section, in the order of their numbers.
    merged: Arc<[u32]>,
    /// If the last cue showed an object that the way knew before: which of these.
    again: Option<usize>,
}

type MergeKey = (Merge, Section, u64, String);

pub struct Automaton {
    subject: Subject,
    processes: usize,
    pub layout: Arc<Layout>,
    nodes: Vec<Node>,
    witnesses: Vec<Witness>,
    ways: Vec<Vec<usize>>,
    /// Edges as a run shows them. They may lead to merge points.
    raw: FxHashMap<(LocalId, Obs), (Edge, Shown)>,
    /// Edges to states where a process stays.
    edges: FxHashMap<(LocalId, Obs), Arc<Edge>>,
    outgoing: Vec<Vec<Obs>>,
    after_await: FxHashMap<LocalId, LocalId>,
    merges: FxHashMap<MergeKey, LocalId>,
    /// Numbers of the merging edges, and from which of them some way reaches which target of
    /// another.
    merging: FxHashMap<(LocalId, Obs, String), u32>,
    reaches: FxHashSet<(u32, LocalId)>,
    /// The number of handles with which passages end over an edge.
    handles: FxHashMap<(LocalId, Obs), usize>,
    /// The text's statement about dead values is false: how that shows.
    pub wrong_liveness: Option<String>,
    runs: u64,
    /// The length of all texts that distinguish merging edges and merge points.
    told: usize,
}

/// About how many bytes an edge takes in the table of a stepper.
pub const EDGE_BYTES: usize = size_of::<Edge>() + 100;

/// The largest number of handles with which one edge to the remainder section is followed: a text
/// may count without bound there.
const MOST_HANDLES: usize = 16;

impl Automaton {
    /// The automaton of `subject`, and each process's first local state and environment.
    pub fn new(subject: &Subject, processes: usize) -> (Self, Vec<(LocalId, Vec<usize>)>) {
        let (instance, blueprint) = context::set_up(|| (subject.make)(processes));
        drop(instance);
        let mut automaton = Automaton {
            subject: *subject,
            processes,
            layout: Arc::new(Layout::of(&blueprint)),
            nodes: Vec::new(),
            witnesses: Vec::new(),
            ways: Vec::new(),
            raw: FxHashMap::default(),
            edges: FxHashMap::default(),
            outgoing: Vec::new(),
            after_await: FxHashMap::default(),
            merges: FxHashMap::default(),
            merging: FxHashMap::default(),
            reaches: FxHashSet::default(),
            handles: FxHashMap::default(),
            wrong_liveness: None,
            runs: 0,
            told: 0,
        };
        let first = (0..processes).map(|p| automaton.first(p)).collect();
        (automaton, first)
    }

    /// The local state of a process that has just joined.
    fn first(&mut self, p: usize) -> (LocalId, Vec<usize>) {
        // All objects that `inspect` reports are known from now on.
        let known = Known((0..self.layout.objects.len()).collect());
        let shown = self.execute(p, &[], &known).expect("everything is known");
        let Stop::Merge(merge, text, placeholders) = shown.stop else {
            unreachable!("a process that has joined is in its remainder section")
        };
        let env: Vec<usize> = placeholders.iter().map(|&object| usize::from(object)).collect();
        let (merged, known) = (Arc::default(), env.clone());
        let witness = Witness { before: None, process: p, env: known, merged, again: None };
        let key = (merge, Section::Remainder, 0, text);
        let id = self.merge_point(key, env.len());
        self.add_way(id, witness);
        (id, env)
    }

    pub fn node(&self, id: LocalId) -> Node {
        self.nodes[id as usize]
    }

    /// How often the real code ran, and how many local states this gave.
    pub fn size(&self) -> (u64, usize) {
        (self.runs, self.nodes.len())
    }

    /// About how much memory it takes. A text whose numbers grow without bound has infinitely many
    /// local states.
    pub fn bytes(&self) -> u64 {
        let nodes = self.nodes.len() * (size_of::<Node>() + 160);
        let ways = self.witnesses.len() * (size_of::<Witness>() + 64);
        let edges = self.raw.len() * (size_of::<(Edge, Shown)>() + 2 * EDGE_BYTES);
        (nodes + ways + edges + self.told) as u64
    }

    /// # Errors
    /// If the text's statement about dead values is false: how that shows.
    pub fn edge(&mut self, source: LocalId, obs: Obs) -> Result<Arc<Edge>, String> {
        if let Some(edge) = self.edges.get(&(source, obs)) {
            return Ok(Arc::clone(edge));
        }
        if let Some(why) = &self.wrong_liveness {
            return Err(why.clone());
        }
        let mut edge = self
            .raw_edge(source, obs)
            .inspect_err(|why| self.wrong_liveness = Some(why.clone()))?;
        while edge.panic.is_none() {
            let target = self.node(edge.target);
            if target.step.is_some() || target.section == Section::Remainder {
                break;
            }
            let on = self.edge(edge.target, Obs::Pass)?;
            // An exit section without steps. The process must still be inside for one state.
            let unseen = self.node(on.target).section == Section::Remainder;
            if target.section == Section::Inside && unseen {
                break;
            }
            edge = compose(&edge, &on);
        }
        let edge = Arc::new(edge);
        self.edges.insert((source, obs), Arc::clone(&edge));
        Ok(edge)
    }

    /// The edges found so far that lead to states where a process stays, in order.
    pub fn edges(&self) -> Vec<(LocalId, Obs, Arc<Edge>)> {
        let all = self.edges.iter();
        let mut all: Vec<_> = all.map(|(&(from, obs), e)| (from, obs, Arc::clone(e))).collect();
        all.sort_unstable_by_key(|&(from, obs, _)| (from, obs));
        all
    }

    fn raw_edge(&mut self, source: LocalId, obs: Obs) -> Result<Edge, String> {
        if let Some((edge, _)) = self.raw.get(&(source, obs)) {
            return Ok(edge.clone());
        }
        let ways = self.ways[source as usize].clone();
        let mut runs = self.follow(ways[0], obs)?;
        let (shown, witness) = runs.remove(0);
        let (target, env) = self.target(source, obs, &shown)?;
        let notes = shown.notes.clone().into_boxed_slice();
        let panic = match &shown.stop {
            Stop::Panic(message) => Some(message.clone()),
            _ => None,
        };
        let edge = Edge { target, env, notes, panic };
        self.raw.insert((source, obs), (edge.clone(), shown.clone()));
        self.outgoing[source as usize].push(obs);
        // Ways with more to run.
        let mut due = Vec::new();
        due.extend(self.testify(source, obs, &shown, witness));
        self.confirm(runs, source, obs, &mut due)?;
        for &way in &ways[1..] {
            let runs = self.follow(way, obs)?;
            self.confirm(runs, source, obs, &mut due)?;
        }
        while let Some((at, way)) = due.pop() {
            for obs in self.outgoing[at as usize].clone() {
                let runs = self.follow(way, obs)?;
                self.confirm(runs, at, obs, &mut due)?;
            }
        }
        Ok(edge)
    }

    /// Checks that other runs over a known edge show the same. `due` gets the new ways.
    fn confirm(
        &mut self,
        runs: Vec<(Shown, Witness)>,
        source: LocalId,
        obs: Obs,
        due: &mut Vec<(LocalId, usize)>,
    ) -> Result<(), String> {
        for (other, witness) in runs {
            let (_, shown) = &self.raw[&(source, obs)];
            if !shown.agrees_with(&other) {
                let place = self.nodes[source as usize].at;
                return Err(format!(
                    "two executions that were taken for one at {} differ after observing {obs:?}: {:?} and {:?}",
                    place.map_or_else(|| "a merge point".to_owned(), ToString::to_string),
                    shown.stop,
                    other.stop
                ));
            }
            due.extend(self.testify(source, obs, &other, witness));
        }
        Ok(())
    }

    /// Adds the way over an edge to the edge's target, unless there are enough. (A failed round is
    /// not a way: scripts do not contain failed rounds.)
    fn testify(
        &mut self,
        source: LocalId,
        obs: Obs,
        shown: &Shown,
        mut witness: Witness,
    ) -> Option<(LocalId, usize)> {
        let (edge, _) = &self.raw[&(source, obs)];
        let target = edge.target;
        // What the run shows there counts too: handles can differ in parts that make no difference.
        let again = witness.again;
        let seen = match &shown.stop {
            Stop::Panic(_) | Stop::RoundFailed => return None,
            Stop::Merge(_, text, placeholders) => {
                Some(format!("{text}{placeholders:?}{}{again:?}", shown.handle))
            }
            Stop::Operation { .. } => shown.passed.then(|| format!("{again:?}")),
        };
        if let Some(seen) = seen {
            let next = self.merging.len() as u32;
            let length = seen.len();
            let ends = matches!(shown.stop, Stop::Merge(Merge::Remainder, ..));
            let key = (source, obs, seen);
            if ends && !self.merging.contains_key(&key) {
                let handles = self.handles.entry((source, obs)).or_insert(0);
                if *handles == MOST_HANDLES {
                    return None;
                }
                *handles += 1;
            }
            let number = *self.merging.entry(key).or_insert(next);
            self.told += if number == next { length + 100 } else { 0 };
            let mut merged = witness.merged.to_vec();
            if let Err(place) = merged.binary_search(&number) {
                merged.insert(place, number);
            }
            let mut new = false;
            for &earlier in &merged {
                new |= self.reaches.insert((earlier, target));
            }
            if !new {
                return None;
            }
            let section_ends =
                matches!(shown.stop, Stop::Merge(Merge::Remainder | Merge::Inside, ..));
            witness.merged = if section_ends { Arc::default() } else { merged.into() };
        }
        witness.env = edge.env.iter().map(|&from| witness.env[usize::from(from)]).collect();
        Some((target, self.add_way(target, witness)))
    }

    fn add_way(&mut self, to: LocalId, witness: Witness) -> usize {
        let way = self.witnesses.len();
        self.witnesses.push(witness);
        self.ways[to as usize].push(way);
        way
    }

    /// Runs the code along `way` and then `obs`. If `obs` is an object that the process does not
    /// know, there is a run with one that it never knew, and a run with each that it knew before.
    fn follow(&mut self, way: usize, obs: Obs) -> Result<Vec<(Shown, Witness)>, String> {
        let Witness { process, env, merged, .. } = self.witnesses[way].clone();
        let (mut script, mut at) = (Vec::new(), way);
        while let Some((before, cue)) = self.witnesses[at].before {
            script.push(cue);
            at = before;
        }
        script.reverse();
        let mut known_before = self.witnesses[at].env.clone();
        known_before.extend(script.iter().filter_map(|cue| cue.object()));
        let objects = match obs.stranger() {
            None => vec![None],
            Some(class) => {
                let unknown = self.layout.classes[class].iter().filter(|it| !env.contains(it));
                let (before, never): (Vec<usize>, _) =
                    unknown.partition(|it| known_before.contains(it));
                never.first().into_iter().chain(&before).map(|&object| Some(object)).collect()
            }
        };
        if objects.is_empty() {
            return Err("a process knows more objects than there are".to_owned());
        }
        let mut runs = Vec::new();
        for object in objects {
            let mut known = Known(env.clone());
            known.0.extend(object);
            let named = |placeholder: usize| known.0[placeholder];
            let cue = object.map_or_else(
                || obs.map(|value| value.map(named)),
                |object| Obs::Value(Val::object(object)),
            );
            script.push(cue);
            let mut shown = self.execute(process, &script, &known)?;
            script.pop();
            if obs == Obs::Pass || matches!(obs, Obs::Request(_)) {
                shown.passed = false;
            }
            let again = object.and_then(|it| known_before.iter().position(|&before| before == it));
            let (before, merged) = (Some((way, cue)), Arc::clone(&merged));
            runs.push((shown, Witness { before, process, env: known.0, merged, again }));
        }
        Ok(runs)
    }

    /// The local state that a run reached, and the source's placeholders of its objects.
    fn target(
        &mut self,
        source: LocalId,
        obs: Obs,
        shown: &Shown,
    ) -> Result<(LocalId, Box<[u8]>), String> {
        let from = self.node(source);
        let stranger = usize::from(obs.stranger().is_some());
        Ok(match &shown.stop {
            Stop::Panic(_) => (source, identity(from.arity)),
            Stop::RoundFailed => {
                let head = from.head.expect("a round has a head");
                (head, identity(self.nodes[head as usize].arity))
            }
            Stop::Merge(merge, text, placeholders) => {
                let key = (*merge, shown.section, shown.session, text.clone());
                let id = self.merge_point(key, placeholders.len());
                (id, placeholders.clone().into_boxed_slice())
            }
            Stop::Operation { target, op, order, at } => {
                let head = if shown.passed { from.head } else { None };
                let arity =
                    head.map_or(from.arity + stranger, |head| self.nodes[head as usize].arity);
                let drops = |object: usize| head.is_some() && object >= arity;
                let known = |value: Val| match value.as_object() {
                    Some(object) if drops(object) => Err(()),
                    _ => Ok(value),
                };
                if matches!(target, Target::Field(object, _) if drops(*object))
                    || op.try_map(known).is_err()
                {
                    return Err(format!("{at}: a pointer is used that the wait before it read"));
                }
                if let Some(&id) = head.and_then(|head| self.after_await.get(&head)) {
                    let (node, waits) = (self.node(id), shown.in_round == Some(0));
                    if node.step != Some((*target, *op))
                        || (node.order, node.head == Some(id)) != (*order, waits)
                    {
                        return Err(format!(
                            "{at}: this step depends on what the wait before it read"
                        ));
                    }
                    return Ok((id, identity(arity)));
                }
                let id = self.nodes.len() as LocalId;
                let id = self.add(Node {
                    section: shown.section,
                    session: shown.session,
                    arity,
                    step: Some((*target, *op)),
                    order: *order,
                    at: Some(at),
                    head: match shown.in_round {
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
        })
    }

    /// The local state for `key`, which knows `arity` objects.
    fn merge_point(&mut self, key: MergeKey, arity: usize) -> LocalId {
        if let Some(&id) = self.merges.get(&key) {
            return id;
        }
        let (_, section, session, _) = key;
        let order = Ordering::SeqCst;
        let id =
            self.add(Node { section, session, arity, step: None, order, at: None, head: None });
        self.told += key.3.len() + 100;
        self.merges.insert(key, id);
        id
    }

    fn add(&mut self, node: Node) -> LocalId {
        self.nodes.push(node);
        self.ways.push(Vec::new());
        self.outgoing.push(Vec::new());
        self.nodes.len() as LocalId - 1
    }

    fn execute(&mut self, p: usize, script: &[Obs], known: &Known) -> Result<Shown, String> {
        self.runs += 1;
        execute(&self.subject, &self.layout, (self.processes, p), script, known)
    }
}

fn identity(arity: usize) -> Box<[u8]> {
    (0..arity as u8).collect()
}

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
