//! One step of one process: memory, local state and monitors.

use std::sync::{Arc, Mutex};

use rustc_hash::{FxHashMap, FxHashSet};

use super::bounds::Tread;
use super::deaths::Deaths;
use super::state::{Env, State};
use super::{MemoryModel, Options, Reductions, Turn, lock};
use crate::automaton::run::{Op, Phase};
use crate::automaton::{Automaton, EDGE_BYTES, Edge, LocalId, Node, Note, Target, Trouble};
use crate::layout::Layout;
use crate::memory::context::sum;
use crate::property::{Properties, Property};
use crate::subject::Subject;
use crate::trace::{Event, What};
use crate::value::{Obs, Val};
use grouplock_algorithms::claims::Kind;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) property: Property,
    pub(crate) because: String,
}

/// Why a step has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    Fault(Fault),
    Trouble(Trouble),
}

impl From<Trouble> for Obstacle {
    fn from(trouble: Trouble) -> Self {
        Obstacle::Trouble(trouble)
    }
}

fn fault(property: Property, because: String) -> Obstacle {
    Obstacle::Fault(Fault { property, because })
}

fn panics(p: usize, message: &str) -> Obstacle {
    fault(Property::NoPanic, format!("process {p} panics: {message}"))
}

/// Takes steps, for one worker. What it knows of the automaton it keeps at hand.
pub(crate) struct Stepper {
    automaton: Arc<Mutex<Automaton>>,
    pub(crate) layout: Arc<Layout>,
    nodes: Vec<Option<Arc<Node>>>,
    edges: FxHashMap<(LocalId, Obs), Arc<Edge>>,
    /// For each remainder state, the registers that its next passage begins by writing.
    pub(super) overwritten: FxHashMap<LocalId, Arc<[Target]>>,
    in_range: fn(&str, u64, usize) -> bool,
    pub(super) conflict: fn(u64, u64) -> bool,
    most: fn(u64) -> usize,
    properties: Properties,
    /// Those of the properties that bound own steps.
    pub(super) bounding: Vec<Property>,
    /// Whether steps are noted for them; those that were, and those of them that nobody has asked for yet.
    pub(super) watching: bool,
    pub(super) trod: FxHashSet<Tread>,
    pub(super) fresh: Vec<Tread>,
    /// What happens, where somebody listens.
    pub(super) log: Option<Vec<Event>>,
    /// Whether anybody has finished a doorway, where that matters.
    pub(super) saw_doorway: bool,
    pub(super) reductions: Reductions,
    pub(super) memory_model: MemoryModel,
    /// Whether somebody could not write because its buffer was full.
    pub(super) buffer_full: bool,
    /// Where processes may die.
    pub(super) deaths: Option<Deaths>,
    pub(crate) sessions: u64,
    passages: Option<u8>,
}

impl Stepper {
    pub(crate) fn new(
        automaton: &Arc<Mutex<Automaton>>,
        subject: &Subject,
        options: &Options,
    ) -> Self {
        let kind = subject.claims.kind;
        let layout = Arc::clone(&lock(automaton).layout);
        Stepper {
            automaton: Arc::clone(automaton),
            layout,
            nodes: Vec::new(),
            edges: FxHashMap::default(),
            overwritten: FxHashMap::default(),
            conflict: subject.conflict,
            most: subject.most,
            in_range: subject.in_range,
            properties: options.properties,
            bounding: options.properties.and(Properties::BOUNDING).iter().collect(),
            watching: false,
            trod: FxHashSet::default(),
            fresh: Vec::new(),
            log: None,
            saw_doorway: false,
            reductions: options.reductions,
            memory_model: options.memory_model,
            buffer_full: false,
            deaths: None,
            sessions: if kind == Kind::Mutual { 1 } else { options.sessions },
            passages: options.passages,
        }
    }

    /// What the text says of private variables and is wrong, if that is known by now.
    pub(super) fn lie(&self) -> Option<String> {
        match &lock(&self.automaton).trouble {
            Some(Trouble::Liveness(because)) => Some(because.clone()),
            Some(Trouble::Trespass) | None => None,
        }
    }

    /// The memory that the automaton takes, and what `workers` steppers keep of it at hand.
    pub(super) fn bytes(&self, workers: usize) -> u64 {
        let here = self.edges.len() * EDGE_BYTES + self.nodes.len() * (size_of::<Node>() + 24);
        lock(&self.automaton).bytes() + (here * workers) as u64
    }

    pub(crate) fn node(&mut self, id: LocalId) -> Arc<Node> {
        let index = id as usize;
        if let Some(Some(node)) = self.nodes.get(index) {
            return Arc::clone(node);
        }
        let automaton = lock(&self.automaton);
        // A copy: workers that count references to one node would wait for each other's caches.
        let node = Arc::new(Node::clone(&automaton.node(id)));
        if self.nodes.len() <= index {
            self.nodes.resize(index + 1, None);
        }
        self.nodes[index] = Some(Arc::clone(&node));
        node
    }

    pub(super) fn edge(&mut self, source: LocalId, obs: Obs) -> Result<Arc<Edge>, Obstacle> {
        if let Some(edge) = self.edges.get(&(source, obs)) {
            return Ok(Arc::clone(edge));
        }
        let mut automaton = lock(&self.automaton);
        let edge = Arc::new(Edge::clone(&*automaton.edge(source, obs)?));
        self.edges.insert((source, obs), Arc::clone(&edge));
        Ok(edge)
    }

    /// Where process `p` is. The dead want nothing.
    pub(crate) fn phase(&mut self, state: &State, p: usize) -> Phase {
        if self.is_dead(state, p) {
            return Phase::Remainder;
        }
        self.node(state.procs[p].local).phase
    }

    /// Whether the algorithm tells a range for any register.
    pub(super) fn knows_a_range(&self) -> bool {
        let processes = 2;
        let names = self.layout.registers.iter().map(|register| register.site.name);
        names.into_iter().any(|name| !(self.in_range)(name, u64::MAX, processes))
    }

    pub(crate) fn choices(&mut self, state: &State, choices: &mut Vec<Turn>) {
        choices.clear();
        for (p, proc) in state.procs.iter().enumerate() {
            self.arrivals(state, p, choices);
            let node = self.node(proc.local);
            if self.is_dead(state, p) {
                continue;
            }
            if node.phase != Phase::Remainder {
                choices.push(Turn { process: p as u8, session: 0 });
                if self.may_die(state) {
                    choices.push(Turn { process: p as u8, session: Turn::DIE });
                }
                let may_give_up = node.step.is_some_and(|(target, op)| match op {
                    Op::WaitUnless(_) => self.is_told(state),
                    // After a look in vain, as on real memory: nothing else looks again at what it waits for.
                    Op::WaitOther(value) => {
                        state.seen(p, state.register(&self.layout, p, target))
                            == state.value(p, value)
                    }
                    _ => false,
                });
                if may_give_up {
                    choices.push(Turn { process: p as u8, session: Turn::GIVE_UP });
                }
            } else if self.passages.is_none_or(|most| proc.passages < most) {
                let sessions = 1..=self.sessions as u8;
                choices.extend(sessions.map(|session| Turn { process: p as u8, session }));
            }
        }
    }

    /// Makes `choice` in `state`, and then whatever steps may be run alone. Returns whether anything could be
    /// done.
    pub(crate) fn take(&mut self, state: &mut State, choice: Turn) -> Result<bool, Obstacle> {
        let p = usize::from(choice.process);
        let moved = if choice.session == 0 {
            self.step(state, p)?
        } else if choice.session == Turn::GIVE_UP {
            self.give_up(state, p)?;
            true
        } else if choice.session == Turn::DIE {
            self.die(state, p);
            true
        } else if let Some(place) = choice.reaches() {
            self.reach(state, p, place);
            true
        } else {
            self.request(state, p, choice.session.into())?;
            // Asking touches nothing: it goes with the first step, unless that may have to wait or is one of the exit section.
            let node = self.node(state.procs[p].local);
            if node.phase == Phase::Entering && node.step.is_some_and(|(_, op)| !op.blocks()) {
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

    /// Process `p` leaves its remainder section and asks for `session`.
    fn request(&mut self, state: &mut State, p: usize, session: u64) -> Result<(), Obstacle> {
        let (conflicting, same) = self.waiting(state, p, session);
        let mut before = 0;
        if self.watches(Property::Fcfs) || self.watches(Property::StrongConcurrentEntering) {
            before |= conflicting;
        }
        if self.watches(Property::Fife) {
            before |= same;
        }
        state.procs[p].before = before;
        if self.passages.is_some() {
            state.procs[p].passages += 1;
        }
        if let Some(log) = &mut self.log {
            log.push(Event { process: p, what: What::Request(session) });
        }
        let edge = self.edge(state.procs[p].local, Obs::request(session))?;
        self.arrive(state, p, &edge, None)
    }

    /// Process `p`, which waits, gives up.
    fn give_up(&mut self, state: &mut State, p: usize) -> Result<(), Obstacle> {
        if let Some(log) = &mut self.log {
            let told = self.deaths.is_some();
            log.push(Event { process: p, what: if told { What::Told } else { What::GiveUp } });
        }
        let edge = self.edge(state.procs[p].local, Obs::GIVES_UP)?;
        self.arrive(state, p, &edge, None)
    }

    /// Process `p` takes its pending step. Returns whether it could.
    pub(crate) fn step(&mut self, state: &mut State, p: usize) -> Result<bool, Obstacle> {
        let local = state.procs[p].local;
        let node = self.node(local);
        let Some((target, op)) = node.step else {
            if node.phase != Phase::Inside {
                return Ok(false);
            }
            let edge = self.edge(local, Obs::PASS)?;
            self.arrive(state, p, &edge, None)?;
            return Ok(true);
        };
        let register = state.register(&self.layout, p, target);
        let (writes, buffered) = (!op.looks(), self.is_buffered(&node));
        if writes && !self.may_write(state, p, &node, register) {
            return Ok(false);
        }
        let old = state.seen(p, register);
        if old == Val::UNDEF && !matches!(op, Op::Write(_)) {
            self.tell(state, p, register, old);
            let name = self.layout.register_name(register);
            let because = format!("process {p} reads {name}, whose contents were said to be dead");
            return Err(fault(Property::DeadRead, because));
        }
        let info = &self.layout.registers[register];
        if writes && self.reductions.own && info.owner().is_some_and(|owner| owner != p) {
            return Err(Trouble::Trespass.into());
        }
        let (new, seen) = match op {
            Op::Write(value) => (state.value(p, value), None),
            Op::Fas(value) => (state.value(p, value), Some(old)),
            Op::Cas(expected, value) if state.value(p, expected) == old => {
                (state.value(p, value), None)
            }
            Op::Read | Op::Cas(..) => (old, Some(old)),
            Op::Faa(delta, bits) => {
                let before = old.as_number().expect("only numbers are added to");
                let after = Val::number(sum(before, delta, bits));
                (after.map_err(|why| panics(p, &why))?, Some(old))
            }
            Op::WaitFor(value) | Op::WaitUnless(value) if value == old => (old, None),
            Op::WaitOther(value) if state.value(p, value) != old => (old, Some(old)),
            Op::AwaitCas(expected, value) if expected == old => (value, None),
            Op::WaitFor(_) | Op::WaitUnless(_) | Op::WaitOther(_) | Op::AwaitCas(..) => {
                return Ok(false);
            }
        };
        self.tell(state, p, register, new);
        let (obs, stranger) = self.observe(state, p, op, seen);
        let edge = self.edge(local, obs)?;
        self.tread(state, p, edge.target)?;
        if buffered {
            self.buffer(state, p, (register, new), node.order);
        } else if writes {
            state.memory[register] = new;
        }
        if writes
            && self.properties.contains(Property::BoundedRegisters)
            && let Some(number) = new.as_number()
        {
            let name = self.layout.registers[register].site.name;
            if !(self.in_range)(name, number, state.procs.len()) {
                let name = self.layout.register_name(register);
                let because = format!("process {p} writes {number} to {name}, out of its range");
                return Err(fault(Property::BoundedRegisters, because));
            }
        }
        self.arrive(state, p, &edge, stranger)?;
        Ok(true)
    }

    /// Tells, if somebody listens, of the step that makes `register` hold `new`.
    fn tell(&mut self, state: &State, process: usize, register: usize, new: Val) {
        let node = self.node(state.procs[process].local);
        let buffered = self.is_buffered(&node);
        if let (Some(log), Some((_, op))) = (&mut self.log, node.step) {
            let known = state.procs[process].env.as_slice();
            let op = op.renamed(|placeholder| usize::from(known[placeholder]));
            let (old, leaves) = (state.seen(process, register), node.phase == Phase::Inside);
            let what = What::Step { register, op, old, new, buffered, at: node.at, leaves };
            log.push(Event { process, what });
        }
    }

    /// What process `p` observes if it learns the value `seen`: in its placeholders, and the object that it did not know.
    pub(super) fn observe(
        &self,
        state: &State,
        p: usize,
        op: Op,
        seen: Option<Val>,
    ) -> (Obs, Option<u8>) {
        let seen = match (op, seen) {
            (Op::Cas(..), seen) => {
                return (if seen.is_none() { Obs::SWAPPED } else { Obs::FAILED }, None);
            }
            (Op::WaitUnless(_), _) => return (Obs::WAITED, None),
            (_, None) => return (Obs::DONE, None),
            (_, Some(seen)) => seen,
        };
        let Some(object) = seen.as_object() else { return (Obs::value(seen), None) };
        match state.procs[p].env.placeholder(object) {
            Some(placeholder) => (Obs::value(Val::object(placeholder)), None),
            None => (Obs::stranger(self.layout.objects[object].class), Some(object as u8)),
        }
    }

    /// Process `p` comes to the end of `edge`.
    fn arrive(
        &mut self,
        state: &mut State,
        p: usize,
        edge: &Edge,
        stranger: Option<u8>,
    ) -> Result<(), Obstacle> {
        if let Some(message) = &edge.panic {
            return Err(panics(p, message));
        }
        if let Some(stranger) = stranger {
            state.procs[p].env.push(stranger);
        }
        let was = self.node(state.procs[p].local).phase;
        // Locks inside the lock have doorways too: only the first one of a passage counts.
        let counts = self.orders() && matches!(was, Phase::Remainder | Phase::Entering);
        let mut ends_doorway = false;
        for note in &edge.notes {
            match *note {
                Note::Forget(target) if self.reductions.forget => {
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
        let is = self.node(edge.target).phase;
        if ends_doorway
            && self.watches(Property::StrongGroupConcurrentEntering)
            && !self.is_disturbed(state, p)
        {
            state.procs[p].undisturbed = true;
        }
        if ends_doorway && self.watches(Property::StrongFifo) {
            let session = self.node(edge.target).session;
            state.procs[p].before |= self.waiting(state, p, session).0;
        }
        if is == Phase::Remainder {
            state.procs[p].before = 0;
        }
        if is == Phase::Remainder && was == Phase::Withdrawing {
            self.gave_up(state, p);
        }
        if is == Phase::Inside && was != Phase::Inside {
            self.entered(state, p)?;
        }
        Ok(())
    }

    /// Whether an order of service is checked, so that doorways matter.
    pub(super) fn orders(&self) -> bool {
        self.properties.and(Properties::ORDER) != Properties::default()
    }

    fn watches(&self, property: Property) -> bool {
        self.properties.contains(property)
    }

    /// Those but `p` who have finished their doorway and wait, as sets: in conflict with `session`, and not.
    fn waiting(&mut self, state: &State, p: usize, session: u64) -> (u8, u8) {
        let (mut conflicting, mut same) = (0, 0);
        for q in (0..state.procs.len()).filter(|&q| q != p && state.procs[q].past_doorway) {
            let theirs = self.node(state.procs[q].local).session;
            *(if (self.conflict)(session, theirs) { &mut conflicting } else { &mut same }) |=
                1 << q;
        }
        (conflicting, same)
    }

    /// Whether process `q` asks for another session than process `p` does, is there or leaves it.
    pub(super) fn disturbs(&mut self, state: &State, p: usize, q: usize) -> bool {
        let mine = self.node(state.procs[p].local).session;
        let node = self.node(state.procs[q].local);
        node.phase != Phase::Remainder && (self.conflict)(mine, node.session)
    }

    pub(super) fn is_disturbed(&mut self, state: &State, p: usize) -> bool {
        (0..state.procs.len()).any(|q| q != p && self.disturbs(state, p, q))
    }

    /// The request of process `p` is as if it had not been made.
    fn gave_up(&mut self, state: &mut State, p: usize) {
        let proc = &mut state.procs[p];
        (proc.past_doorway, proc.undisturbed) = (false, false);
        (proc.enabled, proc.overtaken) = (false, false);
        for proc in &mut state.procs {
            proc.before &= !(1 << p);
        }
    }

    fn entered(&mut self, state: &mut State, p: usize) -> Result<(), Obstacle> {
        let mine = self.node(state.procs[p].local).session;
        let mut before = state.procs[p].before;
        if self.watches(Property::StrongFifo) && !state.procs[p].past_doorway {
            before |= self.waiting(state, p, mine).0;
        }
        let proc = &mut state.procs[p];
        (proc.past_doorway, proc.undisturbed, proc.enabled) = (false, false, false);
        if std::mem::take(&mut proc.overtaken) {
            let because = format!("process {p} did not give up after all, and was overtaken");
            return Err(fault(Property::Fcfs, because));
        }
        // Whoever came before it may yet be hindered by it.
        if !self.watches(Property::StrongConcurrentEntering) {
            state.procs[p].before = 0;
        }
        if self.properties.contains(Property::MutualExclusion) {
            self.write_data(state, p, mine);
        }
        let mut inside = 1;
        for q in 0..state.procs.len() {
            state.procs[q].before &= !(1 << p);
            let node = self.node(state.procs[q].local);
            let conflict =
                q != p && node.phase == Phase::Inside && (self.conflict)(mine, node.session);
            if conflict && self.properties.contains(Property::MutualExclusion) {
                let because = format!("processes {q} and {p} are inside, in conflict");
                return Err(fault(Property::MutualExclusion, because));
            }
            if q != p && self.has_unseen_data(state, q, mine) {
                let because = format!(
                    "process {p} enters, and what process {q} wrote inside has not reached memory"
                );
                return Err(fault(Property::MutualExclusion, because));
            }
            inside += usize::from(q != p && node.phase == Phase::Inside);
        }
        if inside > (self.most)(mine) && self.properties.contains(Property::MutualExclusion) {
            let because = format!("{inside} processes are inside, more than session {mine} takes");
            return Err(fault(Property::MutualExclusion, because));
        }
        for q in (0..state.procs.len()).filter(|&q| before >> q & 1 == 1) {
            let node = self.node(state.procs[q].local);
            if !(self.conflict)(mine, node.session) {
                state.procs[q].enabled = true;
            } else if node.phase == Phase::Withdrawing {
                state.procs[q].overtaken = self.watches(Property::Fcfs);
            } else if self.watches(Property::StrongFifo) {
                let because = format!(
                    "process {p} enters before process {q}, whose doorway ended before its own"
                );
                return Err(fault(Property::StrongFifo, because));
            } else if self.watches(Property::Fcfs) {
                let because =
                    format!("process {p} enters before process {q}, which asked before it");
                return Err(fault(Property::Fcfs, because));
            }
        }
        Ok(())
    }
}
