//! One step of one process: memory, local state and monitors.

use std::sync::{Arc, Mutex};

use rustc_hash::{FxHashMap, FxHashSet};

use super::bounds::NotedStep;
use super::canon::Renamed;
use super::deaths::Deaths;
use super::start::Compiled;
use super::state::{Env, State};
use super::traces::Names;
use super::{Move, Options, lock};
use crate::automaton::{Automaton, EDGE_BYTES, Edge, LocalId, Node, Note, Obs, Op, Target};
use crate::layout::Layout;
use crate::memory::context::sum;
use crate::property::{Properties, Property};
use crate::subject::Subject;
use crate::trace::{Event, Section, What};
use crate::value::Val;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) property: Property,
    pub(crate) because: String,
}

/// Why a step has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    Fault(Fault),
    /// The text's statement about dead values is false.
    Liveness(String),
    /// A process wrote a register that another process was assumed to own. Start again without that
    /// assumption.
    Trespass,
}

fn fault(property: Property, because: String) -> Obstacle {
    Obstacle::Fault(Fault { property, because })
}

/// Takes steps, for one worker. It keeps a copy of the part of the automaton that it has used.
pub(crate) struct Stepper {
    automaton: Arc<Mutex<Automaton>>,
    pub(crate) layout: Arc<Layout>,
    nodes: Vec<Option<Node>>,
    edges: FxHashMap<(LocalId, Obs), Arc<Edge>>,
    /// For each local state of the remainder section, the registers that the next passage writes
    /// first.
    pub(super) overwritten: FxHashMap<LocalId, Arc<[Target]>>,
    pub(super) subject: Subject,
    /// With the reductions that fit the subject.
    pub(super) options: Options,
    /// What may change its name from state to state.
    pub(super) renamed: Renamed,
    /// The checked properties that bound own steps.
    pub(super) bounding: Vec<Property>,
    /// Whether steps are noted for them; the noted steps, and those that the search has not taken
    /// yet.
    pub(super) notes_steps: bool,
    pub(super) noted: FxHashSet<NotedStep>,
    pub(super) newly_noted: Vec<NotedStep>,
    /// The events, if they are recorded.
    pub(super) log: Option<Vec<Event>>,
    /// For events and faults. A search does not follow real names.
    pub(super) names: Names,
    /// Whether any process has finished a doorway, if an order of service is checked.
    pub(super) saw_doorway: bool,
    /// Whether a process could not write because its buffer was full.
    pub(super) buffer_full: bool,
    pub(super) deaths: Deaths,
}

impl Stepper {
    pub(super) fn new(
        Compiled { automaton, first }: &Compiled,
        subject: &Subject,
        options: &Options,
        renamed: Renamed,
    ) -> Self {
        let layout = Arc::clone(&lock(automaton).layout);
        let processes = (0..options.processes).collect();
        let names = Names { processes, objects: (0..layout.objects.len()).collect() };
        Stepper {
            automaton: Arc::clone(automaton),
            nodes: Vec::new(),
            edges: FxHashMap::default(),
            overwritten: FxHashMap::default(),
            subject: *subject,
            options: options.clone(),
            renamed,
            bounding: options.properties.and(Properties::BOUNDING).iter().collect(),
            notes_steps: false,
            noted: FxHashSet::default(),
            newly_noted: Vec::new(),
            log: None,
            names,
            saw_doorway: false,
            buffer_full: false,
            deaths: if subject.dies { Deaths::new(&layout, first) } else { Deaths::default() },
            layout,
        }
    }

    /// What the text says wrongly about private variables, if that is known.
    pub(super) fn wrong_liveness(&self) -> Option<String> {
        lock(&self.automaton).wrong_liveness.clone()
    }

    /// The memory of the automaton and of the copies of `workers` steppers.
    pub(super) fn bytes(&self, workers: usize) -> u64 {
        let here = self.edges.len() * EDGE_BYTES + self.nodes.len() * (size_of::<Node>() + 24);
        lock(&self.automaton).bytes() + (here * workers) as u64
    }

    pub(crate) fn node(&mut self, id: LocalId) -> Node {
        let index = id as usize;
        if let Some(&Some(node)) = self.nodes.get(index) {
            return node;
        }
        if self.nodes.len() <= index {
            self.nodes.resize(index + 1, None);
        }
        *self.nodes[index].insert(lock(&self.automaton).node(id))
    }

    pub(super) fn edge(&mut self, source: LocalId, obs: Obs) -> Result<Arc<Edge>, Obstacle> {
        if let Some(edge) = self.edges.get(&(source, obs)) {
            return Ok(Arc::clone(edge));
        }
        let edge = lock(&self.automaton).edge(source, obs).map_err(Obstacle::Liveness)?;
        // A copy, because a reference count shared by workers would be contended.
        let edge = Arc::new(Edge::clone(&edge));
        self.edges.insert((source, obs), Arc::clone(&edge));
        Ok(edge)
    }

    /// The section of process `p`. A dead process counts as idle.
    pub(crate) fn section(&mut self, state: &State, p: usize) -> Section {
        if self.deaths.is_dead(state, p) {
            return Section::Remainder;
        }
        self.node(state.procs[p].local).section
    }

    /// Whether the algorithm states a range for any register.
    pub(super) fn knows_a_range(&self) -> bool {
        let processes = 2;
        let names = self.layout.registers.iter().map(|register| register.site.name);
        names.into_iter().any(|name| !(self.subject.in_range)(name, u64::MAX, processes))
    }

    pub(crate) fn choices(&mut self, state: &State, choices: &mut Vec<Move>) {
        choices.clear();
        for (p, proc) in state.procs.iter().enumerate() {
            self.arrivals(state, p, choices);
            let node = self.node(proc.local);
            if self.deaths.is_dead(state, p) {
                continue;
            }
            if node.section != Section::Remainder {
                choices.push(Move { process: p as u8, session: 0 });
                if self.may_die(state) {
                    choices.push(Move { process: p as u8, session: Move::DIE });
                }
                let may_withdraw = node.step.is_some_and(|(target, op)| match op {
                    Op::WaitUnless(_) => !self.subject.dies || self.deaths.has_death(state),
                    // After a read that did not end the wait, as on real memory.
                    Op::WaitOther(value) => {
                        state.seen(p, state.register(&self.layout, p, target))
                            == state.value(p, value)
                    }
                    _ => false,
                });
                if may_withdraw && (self.subject.withdraws || self.subject.dies) {
                    choices.push(Move { process: p as u8, session: Move::WITHDRAW });
                }
            } else if self.options.passages.is_none_or(|most| proc.passages < most) {
                let sessions = 1..=self.options.sessions as u8;
                choices.extend(sessions.map(|session| Move { process: p as u8, session }));
            }
        }
    }

    /// Makes `choice` in `state`, and then the steps that no other process can notice. Returns
    /// whether the process could move.
    pub(crate) fn take(&mut self, state: &mut State, choice: Move) -> Result<bool, Obstacle> {
        let p = usize::from(choice.process);
        let moved = if choice.session == 0 {
            self.step(state, p)?
        } else if choice.session == Move::WITHDRAW {
            self.withdraw(state, p)?;
            true
        } else if choice.session == Move::DIE {
            self.die(state, p);
            true
        } else if let Some(place) = choice.reaches() {
            self.reach(state, p, place);
            true
        } else {
            self.request(state, p, choice.session.into())?;
            // A request accesses nothing. So it goes together with the first step, unless that may
            // have to wait, comes after the doorway, or belongs to the exit section.
            let node = self.node(state.procs[p].local);
            if node.section == Section::Entering
                && node.step.is_some_and(|(_, op)| !op.blocks())
                && !state.procs[p].past_doorway
            {
                self.step(state, p)?;
            }
            true
        };
        if moved {
            self.after(state);
            self.settle(state)?;
        }
        Ok(moved)
    }

    fn request(&mut self, state: &mut State, p: usize, session: u64) -> Result<(), Obstacle> {
        let (conflicting, same) = self.waiting(state, p, session);
        let mut before = 0;
        if self.checks(Property::Fcfs) || self.checks(Property::StrongConcurrentEntering) {
            before |= conflicting;
        }
        if self.checks(Property::Fife) {
            before |= same;
        }
        state.procs[p].before = before;
        if self.options.passages.is_some() {
            state.procs[p].passages += 1;
        }
        self.record(p, What::Request(session));
        let edge = self.edge(state.procs[p].local, Obs::Request(session))?;
        self.arrive(state, p, &edge, None)
    }

    fn withdraw(&mut self, state: &mut State, p: usize) -> Result<(), Obstacle> {
        self.record(p, if self.subject.dies { What::Told } else { What::Withdraw });
        let edge = self.edge(state.procs[p].local, Obs::Waited(false))?;
        self.arrive(state, p, &edge, None)
    }

    /// Process `p` takes its pending step. Returns whether it could.
    pub(crate) fn step(&mut self, state: &mut State, p: usize) -> Result<bool, Obstacle> {
        let local = state.procs[p].local;
        let node = self.node(local);
        let Some((target, op)) = node.step else {
            if node.section != Section::Inside {
                return Ok(false);
            }
            let edge = self.edge(local, Obs::Pass)?;
            self.arrive(state, p, &edge, None)?;
            return Ok(true);
        };
        let register = state.register(&self.layout, p, target);
        let (writes, buffered) = (!op.only_reads(), self.is_buffered(&node));
        if writes && !self.may_write(state, p, &node, register) {
            return Ok(false);
        }
        let old = state.seen(p, register);
        if old == Val::UNDEF && !matches!(op, Op::Write(_)) {
            self.tell(state, p, register, old);
            let (p, name) = (self.name(p), self.register_name(register));
            let because = format!("process {p} reads {name}, whose contents were said to be dead");
            return Err(fault(Property::DeadRead, because));
        }
        let info = &self.layout.registers[register];
        if writes && self.options.reductions.own && info.owner().is_some_and(|owner| owner != p) {
            return Err(Obstacle::Trespass);
        }
        let op = state.operation(p, op);
        if op.waits_on(&old) {
            return Ok(false);
        }
        let add = |delta, bits| {
            let before = old.as_number().expect("only numbers are added to");
            Val::number(sum(before, delta, bits)).map_err(|why| self.panics(p, &why))
        };
        let new = op.try_written(&old, add)?.unwrap_or(old);
        self.tell(state, p, register, new);
        let (obs, stranger) = self.observe(state, p, op, old);
        let edge = self.edge(local, obs)?;
        self.note_step(state, p, edge.target)?;
        if buffered {
            self.buffer(state, p, (register, new), node.order);
        } else if writes {
            state.memory[register] = new;
        }
        if writes
            && self.checks(Property::BoundedRegisters)
            && let Some(number) = new.as_number()
        {
            let name = self.layout.registers[register].site.name;
            if !(self.subject.in_range)(name, number, state.procs.len()) {
                let (p, name) = (self.name(p), self.register_name(register));
                let because = format!("process {p} writes {number} to {name}, out of its range");
                return Err(fault(Property::BoundedRegisters, because));
            }
        }
        self.arrive(state, p, &edge, stranger)?;
        Ok(true)
    }

    fn panics(&self, p: usize, message: &str) -> Obstacle {
        fault(Property::NoPanic, format!("process {} panics: {message}", self.name(p)))
    }

    /// What process `p` observes if its register held `old`: in its placeholders, with the object
    /// that it did not know.
    pub(super) fn observe(&self, state: &State, p: usize, op: Op, old: Val) -> (Obs, Option<u8>) {
        let answer = op.answer(old);
        let object = if let Obs::Value(value) = answer { value.as_object() } else { None };
        let Some(object) = object else { return (answer, None) };
        let known = state.procs[p].env.placeholder(object).map(Val::object);
        let seen = known.unwrap_or_else(|| Val::stranger(self.layout.objects[object].class));
        (Obs::Value(seen), known.is_none().then_some(object as u8))
    }

    /// Process `p` arrives at the end of `edge`.
    fn arrive(
        &mut self,
        state: &mut State,
        p: usize,
        edge: &Edge,
        stranger: Option<u8>,
    ) -> Result<(), Obstacle> {
        if let Some(message) = &edge.panic {
            return Err(self.panics(p, message));
        }
        if let Some(stranger) = stranger {
            state.procs[p].env.push(stranger);
        }
        let was = self.node(state.procs[p].local).section;
        // Inner locks have doorways too. Only the first doorway of a passage counts.
        let counts = self.checks_order() && matches!(was, Section::Remainder | Section::Entering);
        let mut ends_doorway = false;
        for note in &edge.notes {
            match *note {
                Note::Forget(target) if self.options.reductions.forget => {
                    let register = state.register(&self.layout, p, target);
                    state.memory[register] = Val::UNDEF;
                }
                Note::DoorwayEnd if counts && !state.procs[p].past_doorway => {
                    state.procs[p].past_doorway = true;
                    ends_doorway = true;
                    self.saw_doorway = true;
                }
                Note::Forget(_) | Note::DoorwayEnd => {}
            }
        }
        let proc = &mut state.procs[p];
        let env = proc.env;
        proc.env =
            Env::from_objects(edge.env.iter().map(|&from| env.as_slice()[usize::from(from)]));
        proc.local = edge.target;
        let is = self.node(edge.target).section;
        if ends_doorway
            && self.checks(Property::StrongGroupConcurrentEntering)
            && !self.is_disturbed(state, p)
        {
            state.procs[p].undisturbed = true;
        }
        if ends_doorway && self.checks(Property::StrongFifo) {
            let session = self.node(edge.target).session;
            state.procs[p].before |= self.waiting(state, p, session).0;
        }
        if is == Section::Remainder {
            state.procs[p].before = 0;
        }
        // It withdrew, with steps of its own or without.
        if is == Section::Remainder && !matches!(was, Section::Inside | Section::Exit) {
            state.cancel_request(p);
        }
        if is == Section::Inside && was != Section::Inside {
            self.entered(state, p)?;
        }
        Ok(())
    }

    /// Whether an order of service is checked, so that doorways matter.
    pub(super) fn checks_order(&self) -> bool {
        self.options.properties.and(Properties::ORDER) != Properties::default()
    }

    pub(super) fn checks(&self, property: Property) -> bool {
        self.options.properties.contains(property)
    }

    /// The other processes that have finished their doorways and wait, as sets: those in conflict
    /// with `session`, and the rest.
    fn waiting(&mut self, state: &State, p: usize, session: u64) -> (u8, u8) {
        let (mut conflicting, mut same) = (0, 0);
        for q in (0..state.procs.len()).filter(|&q| q != p && state.procs[q].past_doorway) {
            let theirs = self.node(state.procs[q].local).session;
            *(if (self.subject.conflict)(session, theirs) {
                &mut conflicting
            } else {
                &mut same
            }) |= 1 << q;
        }
        (conflicting, same)
    }

    /// Whether process `q` requests, holds or leaves a session that conflicts with that of process
    /// `p`.
    pub(super) fn disturbs(&mut self, state: &State, p: usize, q: usize) -> bool {
        let mine = self.node(state.procs[p].local).session;
        let node = self.node(state.procs[q].local);
        node.section != Section::Remainder && (self.subject.conflict)(mine, node.session)
    }

    pub(super) fn is_disturbed(&mut self, state: &State, p: usize) -> bool {
        (0..state.procs.len()).any(|q| q != p && self.disturbs(state, p, q))
    }

    fn entered(&mut self, state: &mut State, p: usize) -> Result<(), Obstacle> {
        let mine = self.node(state.procs[p].local).session;
        let mut before = state.procs[p].before;
        if self.checks(Property::StrongFifo) && !state.procs[p].past_doorway {
            before |= self.waiting(state, p, mine).0;
        }
        let proc = &mut state.procs[p];
        (proc.past_doorway, proc.undisturbed, proc.enabled) = (false, false, false);
        if std::mem::take(&mut proc.overtaken) {
            let because =
                format!("process {} did not withdraw after all, and was overtaken", self.name(p));
            return Err(fault(Property::Fcfs, because));
        }
        // It may still hinder processes that arrived before it.
        if !self.checks(Property::StrongConcurrentEntering) {
            state.procs[p].before = 0;
        }
        if self.checks(Property::MutualExclusion) {
            self.write_data(state, p, mine);
        }
        let mut inside = 1;
        let who = self.name(p);
        for q in 0..state.procs.len() {
            state.procs[q].before &= !(1 << p);
            let node = self.node(state.procs[q].local);
            let conflict = q != p
                && node.section == Section::Inside
                && (self.subject.conflict)(mine, node.session);
            if conflict && self.checks(Property::MutualExclusion) {
                let because =
                    format!("processes {} and {who} are inside, in conflict", self.name(q));
                return Err(fault(Property::MutualExclusion, because));
            }
            if q != p && self.has_unseen_data(state, q, mine) {
                let because = format!(
                    "process {who} enters, and what process {} wrote inside has not reached memory",
                    self.name(q)
                );
                return Err(fault(Property::MutualExclusion, because));
            }
            let together = node.section == Section::Inside && node.session == mine;
            inside += usize::from(q != p && together);
        }
        if inside > (self.subject.most)(mine) && self.checks(Property::MutualExclusion) {
            let because = format!("{inside} processes are inside, more than session {mine} takes");
            return Err(fault(Property::MutualExclusion, because));
        }
        for q in (0..state.procs.len()).filter(|&q| before >> q & 1 == 1) {
            let node = self.node(state.procs[q].local);
            if !(self.subject.conflict)(mine, node.session) {
                state.procs[q].enabled = true;
            } else if node.section == Section::Withdrawing {
                state.procs[q].overtaken = self.checks(Property::Fcfs);
            } else if self.checks(Property::StrongFifo) {
                let because = format!(
                    "process {who} enters before process {}, whose doorway ended before its own",
                    self.name(q)
                );
                return Err(fault(Property::StrongFifo, because));
            } else if self.checks(Property::Fcfs) {
                let q = self.name(q);
                let because =
                    format!("process {who} enters before process {q}, which asked before it");
                return Err(fault(Property::Fcfs, because));
            }
        }
        Ok(())
    }
}
