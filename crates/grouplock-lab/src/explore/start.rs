//! The start of an exploration, a sample or a replay: the automaton, the initial state, the
//! steppers.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use grouplock_algorithms::claims::Kind;

use super::canon::{Renamed, may_swap, standard};
use super::deaths::with_lives;
use super::state::State;
use super::stepper::Stepper;
use super::weak::Buffers;
use super::{Options, Outcome, Verdict, Violation, lock};
use crate::automaton::{Automaton, LocalId};
use crate::layout::Layout;
use crate::property::Properties;
use crate::subject::Subject;

/// The automaton of an algorithm. The explorations that share it run the code only for the edges
/// that none of them has met before.
#[derive(Clone)]
pub(crate) struct Compiled {
    pub(crate) automaton: Arc<Mutex<Automaton>>,
    /// Each process's first local state, and the objects that it knows there.
    pub(crate) first: Vec<(LocalId, Vec<usize>)>,
}

impl Compiled {
    pub(super) fn new(subject: &Subject, options: &Options) -> Self {
        let (mut automaton, first) = Automaton::new(subject, options.processes);
        if let (true, Some(deaths)) = (subject.dies, options.deaths) {
            automaton.layout = Arc::new(with_lives(Layout::clone(&automaton.layout), deaths));
        }
        Compiled { automaton: Arc::new(Mutex::new(automaton)), first }
    }
}

pub(super) struct Start {
    began: Instant,
    automaton: Arc<Mutex<Automaton>>,
    /// Whether all processes differ only in names.
    pub(super) alike: bool,
    pub(super) initial: State,
    pub(super) steppers: Vec<Stepper>,
}

impl Start {
    pub(super) fn new(subject: &Subject, options: &Options, compiled: &Compiled) -> Self {
        let began = Instant::now();
        let Compiled { automaton, first } = compiled.clone();
        let mut options = options.clone();
        if subject.claims.kind == Kind::Mutual {
            options.sessions = 1;
        }
        let layout = Arc::clone(&lock(&automaton).layout);
        // Processes with the same first local state differ only in names.
        let same = |p: usize| first[..p].iter().any(|(id, _)| *id == first[p].0);
        let symmetric = options.reductions.symmetry && !subject.dies && (0..first.len()).any(same);
        // If processes change names, none owns a register by name.
        options.reductions.own &= !symmetric;
        // A process may die between two steps that no other process notices.
        options.reductions.alone &= !subject.dies;
        let renamed = match (symmetric, layout.objects.is_empty()) {
            (true, _) => Renamed::All,
            (false, false) if options.reductions.symmetry => Renamed::Objects,
            (false, _) => Renamed::Nothing,
        };
        let mut initial = State::first(&layout, &first, options.reductions.forget);
        initial.buffers = Buffers::new(options.memory_model, options.processes);
        let mut steppers: Vec<Stepper> = (0..options.workers.max(1))
            .map(|_| Stepper::new(compiled, subject, &options, renamed))
            .collect();
        // No process has moved, so this only blanks. If it shows that the text is wrong, the first
        // step shows that again, because the automaton keeps the fault.
        _ = steppers[0].settle(&mut initial);
        let alike = symmetric
            && (1..first.len()).all(same)
            && (1..first.len()).all(|p| may_swap(&initial, &layout, 0, p));
        let initial = standard(initial, &layout, renamed);
        Start { began, automaton, alike, initial, steppers }
    }

    /// The start of a single execution: names stay, so that the choices are a schedule.
    pub(super) fn of_a_walk(subject: &Subject, options: &Options) -> Self {
        let mut options = options.clone();
        (options.reductions.symmetry, options.reductions.own) = (false, false);
        options.workers = 1;
        Start::new(subject, &options, &Compiled::new(subject, &options))
    }

    /// The outcome. A sample or a replay checks no property completely.
    pub(super) fn outcome(
        &self,
        verdict: Verdict,
        states: u64,
        depth: u64,
        violation: Option<Violation>,
    ) -> Outcome {
        let automaton = lock(&self.automaton);
        let (runs, local_states) = automaton.size();
        Outcome {
            verdict,
            states,
            depth,
            violation,
            checked: Properties::default(),
            in_part: Properties::default(),
            bounds: Vec::new(),
            buffer_full: self.steppers.iter().any(|stepper| stepper.buffer_full),
            local_states: local_states as u64,
            runs,
            elapsed: self.began.elapsed(),
        }
    }
}
