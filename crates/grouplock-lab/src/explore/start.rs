//! Where an exploration, a sample or a repetition begins: the automaton, everybody idle, and who takes the steps.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::canon::{Renamed, canonical, may_swap};
use super::deaths::{Deaths, with_lives};
use super::state::State;
use super::stepper::Stepper;
use super::weak::Buffers;
use super::{Options, Outcome, Verdict, Violation, lock};
use crate::automaton::{Automaton, LocalId};
use crate::layout::Layout;
use crate::property::Properties;
use crate::subject::Subject;

pub(super) struct Start {
    began: Instant,
    pub(super) automaton: Arc<Mutex<Automaton>>,
    /// Each process's first local state, and the objects that it knows there.
    pub(super) first: Vec<(LocalId, Vec<usize>)>,
    /// With the reductions that fit the subject.
    pub(super) options: Options,
    /// What changes its name from state to state.
    pub(super) renamed: Renamed,
    /// Whether all processes differ in names only.
    pub(super) alike: bool,
    pub(super) initial: State,
    pub(super) steppers: Vec<Stepper>,
}

impl Start {
    pub(super) fn new(subject: &Subject, options: &Options) -> Self {
        let began = Instant::now();
        let mut options = options.clone();
        let (mut automaton, first) = Automaton::new(subject, options.processes);
        if let (true, Some(deaths)) = (subject.dies, options.deaths) {
            automaton.layout = Arc::new(with_lives(Layout::clone(&automaton.layout), deaths));
        }
        let layout = Arc::clone(&automaton.layout);
        // Processes whose first local states are the same differ in names only.
        let same = |p: usize| first[..p].iter().any(|(id, _)| *id == first[p].0);
        let symmetric = options.reductions.symmetry && !subject.dies && (0..first.len()).any(same);
        // Where processes change names, none of them owns a register by name.
        options.reductions.own &= !symmetric;
        let renamed = match (symmetric, layout.objects.is_empty()) {
            (true, _) => Renamed::All,
            (false, false) if options.reductions.symmetry => Renamed::Objects,
            (false, _) => Renamed::Nothing,
        };
        let mut initial = State::first(&layout, &first, options.reductions.forget);
        initial.buffers = Buffers::new(options.memory_model, options.processes);
        let automaton = Arc::new(Mutex::new(automaton));
        let mut steppers: Vec<Stepper> = (0..options.workers.max(1))
            .map(|_| {
                let mut stepper = Stepper::new(&automaton, subject, &options);
                stepper.deaths = subject.dies.then(|| Deaths::new(&layout, &first));
                stepper
            })
            .collect();
        // Nobody has moved: settling only blanks here. If that shows that the text's word is wrong, the first step shows it
        // again: the automaton does not forget.
        let _ = steppers[0].settle(&mut initial);
        let alike = symmetric
            && (1..first.len()).all(same)
            && (1..first.len()).all(|p| may_swap(&initial, &layout, 0, p));
        if renamed != Renamed::Nothing {
            initial = canonical(&initial, &layout, renamed).0;
        }
        Start { began, automaton, first, options, renamed, alike, initial, steppers }
    }

    /// The same for one who walks along a single execution: names stay as they are, so that the choices are a schedule.
    pub(super) fn of_a_walk(subject: &Subject, options: &Options) -> Self {
        let mut options = options.clone();
        (options.reductions.symmetry, options.reductions.own) = (false, false);
        options.workers = 1;
        Start::new(subject, &options)
    }

    /// What came of it. A sample and a repetition look at no property as a whole.
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
            looked_at: Properties::default(),
            in_part: Properties::default(),
            bounds: Vec::new(),
            buffer_full: self.steppers.iter().any(|stepper| stepper.buffer_full),
            local_states: local_states as u64,
            runs,
            elapsed: self.began.elapsed(),
        }
    }
}
