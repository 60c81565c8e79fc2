//! A trace, made from the choices of an execution.
//!
//! Choices are made in standard forms, where processes and objects change names from state to
//! state. This module tracks the names, so that a trace gives each process one number throughout.

use std::sync::Arc;

use grouplock_algorithms::claims::{Kind, Text};

use super::canon::{Renamed, canonical};
use super::state::State;
use super::stepper::{Fault, Obstacle, Stepper};
use super::{Move, Violation};
use crate::registry;
use crate::subject::Subject;
use crate::trace::{ProcessAt, Section, Step, What, tell};

/// The real names of the processes and objects of the present state.
struct Names {
    processes: Vec<usize>,
    objects: Vec<usize>,
}

/// The beginning of an execution, in real names.
pub(super) struct Told {
    steps: Vec<Step>,
    schedule: Vec<Move>,
    /// The last state, in the names of that state.
    pub(super) state: State,
    names: Names,
    renamed: Renamed,
    texts: Vec<Text>,
    is_mutex: bool,
}

impl Told {
    pub(super) fn new(
        stepper: &Stepper,
        subject: &Subject,
        state: State,
        renamed: Renamed,
    ) -> Self {
        let processes = (0..state.procs.len()).collect();
        let names = Names { processes, objects: (0..stepper.layout.objects.len()).collect() };
        let (texts, is_mutex) = (registry::texts(subject), subject.claims.kind == Kind::Mutual);
        Told { steps: Vec::new(), schedule: Vec::new(), state, names, renamed, texts, is_mutex }
    }

    /// Continues with `choice`. Returns whether that was possible. A fault has real names.
    pub(super) fn take(&mut self, stepper: &mut Stepper, choice: Move) -> Result<bool, Obstacle> {
        let layout = Arc::clone(&stepper.layout);
        let names = &mut self.names;
        let before = processes(stepper, &self.state, names);
        stepper.log = Some(Vec::new());
        let result = stepper.take(&mut self.state, choice);
        let events = stepper.log.take().unwrap_or_default();
        let after = processes(stepper, &self.state, names);
        // A process enters or leaves in the step of the mover, not in the steps taken at once after
        // it.
        let turn = events.iter().position(|event| matches!(event.what, What::Step { .. }));
        for (i, event) in events.into_iter().enumerate() {
            let event = event.renamed(|p| names.processes[p], |o| names.objects[o], &layout);
            let mut at = if turn.is_some_and(|turn| i >= turn) { &after } else { &before }.clone();
            if let What::Request(session) = event.what {
                let section =
                    if stepper.checks_order() { Section::Doorway } else { Section::Entering };
                at[event.process] = ProcessAt { section, session };
            }
            let number = self.steps.len() + 1;
            self.steps.push(tell(number, &event, at, &layout, &self.texts, self.is_mutex));
        }
        let process = names.processes[usize::from(choice.process)];
        self.schedule.push(Move { process: process as u8, ..choice });
        let moved = result.map_err(|obstacle| match obstacle {
            Obstacle::Fault(fault) => {
                Obstacle::Fault(Fault { because: rename(&fault.because, names), ..fault })
            }
            trouble @ Obstacle::Trouble(_) => trouble,
        })?;
        if self.renamed != Renamed::Nothing {
            let (state, renaming) = canonical(&self.state, &layout, self.renamed);
            self.state = state;
            names.processes = renaming.order.iter().map(|&p| names.processes[p]).collect();
            let mut objects = vec![0; names.objects.len()];
            for (&name, &now) in names.objects.iter().zip(&renaming.objects) {
                objects[usize::from(now)] = name;
            }
            names.objects = objects;
        }
        Ok(moved)
    }

    /// Continues with `choices`, and returns the violation at the end: `fault`, or what the last
    /// choice shows.
    pub(super) fn violation(
        mut self,
        stepper: &mut Stepper,
        choices: &[Move],
        mut fault: Fault,
    ) -> Violation {
        for &choice in choices {
            if let Err(obstacle) = self.take(stepper, choice) {
                if let Obstacle::Fault(shown) = obstacle {
                    fault.because = shown.because;
                }
                break;
            }
        }
        let Fault { property, because } = fault;
        Violation { property, because, trace: self.steps, schedule: self.schedule }
    }
}

/// The section of each process, by its real name.
fn processes(stepper: &mut Stepper, state: &State, names: &Names) -> Vec<ProcessAt> {
    let mut processes =
        vec![ProcessAt { section: Section::Remainder, session: 0 }; state.procs.len()];
    for (proc, &name) in state.procs.iter().zip(&names.processes) {
        let node = stepper.node(proc.local);
        let section = match node.section {
            Section::Entering if stepper.checks_order() && proc.past_doorway => Section::Waiting,
            Section::Entering if stepper.checks_order() => Section::Doorway,
            section => section,
        };
        processes[name] = ProcessAt { section, session: node.session };
    }
    processes
}

/// A fault's reason names processes by the numbers of its last state, always after the word
/// "process" or in the opening "processes 0 and 1".
fn rename(because: &str, names: &Names) -> String {
    let mut words: Vec<String> = because.split(' ').map(str::to_owned).collect();
    for i in 1..words.len() {
        let named = matches!(words[i - 1].as_str(), "process" | "processes")
            || i > 2 && words[i - 1] == "and" && words[i - 3] == "processes";
        let (digits, tail) = words[i].split_at(words[i].trim_end_matches(',').len());
        if named && let Ok(p) = digits.parse::<usize>() {
            let tail = tail.to_owned();
            words[i] = format!("{}{tail}", names.processes.get(p).copied().unwrap_or(p));
        }
    }
    words.join(" ")
}
