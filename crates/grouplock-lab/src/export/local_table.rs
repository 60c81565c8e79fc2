//! The local automaton as plain tables, with its local states numbered by section.

use std::sync::Arc;

use grouplock_algorithms::claims::Kind;
use rustc_hash::FxHashMap;

use crate::automaton::{Edge, LocalId, Node, Note, Obs, Op};
use crate::explore::start::Compiled;
use crate::explore::{Options, lock};
use crate::layout::Layout;
use crate::subject::Subject;
use crate::trace::Section;

pub(super) struct Local {
    pub(super) node: Node,
    /// By observation. The targets are numbers of this table.
    pub(super) edges: Vec<(Obs, Edge)>,
}

impl Local {
    pub(super) fn edge(&self, obs: Obs) -> Option<&Edge> {
        self.edges.iter().find(|(known, _)| *known == obs).map(|(_, edge)| edge)
    }
}

pub(super) struct LocalTable {
    pub(super) subject: Subject,
    /// The size, in words.
    pub(super) size: String,
    pub(super) processes: usize,
    pub(super) sessions: u64,
    pub(super) passages: Option<u8>,
    pub(super) layout: Arc<Layout>,
    pub(super) locals: Vec<Local>,
    /// Each process's first local state, and the objects that it knows there.
    pub(super) first: Vec<(usize, Vec<usize>)>,
}

impl LocalTable {
    pub(super) fn of(subject: &Subject, options: &Options, compiled: &Compiled) -> Self {
        let automaton = lock(&compiled.automaton);
        let mut outgoing: FxHashMap<LocalId, Vec<(Obs, Arc<Edge>)>> = FxHashMap::default();
        for (from, obs, edge) in automaton.edges() {
            outgoing.entry(from).or_default().push((obs, edge));
        }
        // Merge points where no process stays are omitted: no edge leads there.
        let mut reached: Vec<LocalId> = Vec::new();
        let mut due: Vec<LocalId> = compiled.first.iter().map(|(local, _)| *local).collect();
        while let Some(local) = due.pop() {
            if !reached.contains(&local) {
                reached.push(local);
                due.extend(outgoing.get(&local).into_iter().flatten().map(|(_, e)| e.target));
            }
        }
        reached.sort_unstable_by_key(|&id| (automaton.node(id).section, id));
        let numbers: FxHashMap<LocalId, usize> =
            reached.iter().enumerate().map(|(number, &id)| (id, number)).collect();
        let locals = reached.iter().map(|id| {
            let edges = outgoing.get(id).into_iter().flatten().map(|(obs, edge)| {
                (*obs, Edge { target: numbers[&edge.target] as LocalId, ..Edge::clone(edge) })
            });
            Local { node: automaton.node(*id), edges: edges.collect() }
        });
        let first = compiled.first.iter().map(|(id, known)| (numbers[id], known.clone()));
        LocalTable {
            subject: *subject,
            size: options.size(subject),
            processes: options.processes,
            sessions: if subject.claims.kind == Kind::Mutual { 1 } else { options.sessions },
            passages: options.passages,
            layout: Arc::clone(&automaton.layout),
            locals: locals.collect(),
            first: first.collect(),
        }
    }

    pub(super) fn section(&self, local: usize) -> Section {
        self.locals[local].node.section
    }

    /// The first local state of a section, and the first state after the section.
    pub(super) fn range(&self, section: Section) -> (usize, usize) {
        let is = |local: &Local| local.node.section == section;
        let from = self.locals.iter().position(is).unwrap_or(0);
        (from, from + self.locals.iter().filter(|local| is(local)).count())
    }

    pub(super) fn has_doorway(&self) -> bool {
        let mut edges = self.locals.iter().flat_map(|local| &local.edges);
        edges.any(|(_, edge)| edge.notes.contains(&Note::DoorwayEnd))
    }

    /// Whether an entry or exit section uses an ideal lock.
    pub(super) fn has_ideal(&self) -> bool {
        self.locals.iter().any(|local| matches!(local.node.step, Some((_, Op::AwaitCas(..)))))
    }

    /// The largest number of objects that a process knows at a time, with the object that it may
    /// have just learned.
    pub(super) fn most_known(&self) -> usize {
        let known = self.locals.iter().map(|local| local.node.arity);
        known.max().unwrap_or(0)
    }
}
