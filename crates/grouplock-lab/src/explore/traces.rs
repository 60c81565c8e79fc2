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
use crate::trace::{Event, ProcessAt, Section, Step, What, tell};
use crate::value::Val;

/// The real names of the processes and objects of a state. Other names may change from state to
/// state.
pub(super) struct Names {
    pub(super) processes: Vec<usize>,
    pub(super) objects: Vec<usize>,
}

/// The beginning of an execution, in real names.
pub(super) struct Told {
    steps: Vec<Step>,
    schedule: Vec<Move>,
    /// The last state, in the names of that state.
    pub(super) state: State,
    texts: Vec<Text>,
}

impl Told {
    /// `stepper` has told no other execution: its names are those of `state`.
    pub(super) fn new(stepper: &Stepper, state: State) -> Self {
        let texts = registry::texts(&stepper.subject);
        Told { steps: Vec::new(), schedule: Vec::new(), state, texts }
    }

    /// Continues with `choice`. Returns whether that was possible.
    pub(super) fn take(&mut self, stepper: &mut Stepper, choice: Move) -> Result<bool, Obstacle> {
        let layout = Arc::clone(&stepper.layout);
        let is_mutex = stepper.subject.claims.kind == Kind::Mutual;
        let before = processes(stepper, &self.state);
        stepper.log = Some(Vec::new());
        let moved = stepper.take(&mut self.state, choice);
        let events = stepper.log.take().unwrap_or_default();
        let after = processes(stepper, &self.state);
        // A process enters or leaves in the step of the mover, not in the steps taken at once after
        // it.
        let turn = events.iter().position(|event| matches!(event.what, What::Step { .. }));
        for (i, event) in events.into_iter().enumerate() {
            let mut at = if turn.is_some_and(|turn| i >= turn) { &after } else { &before }.clone();
            if let What::Request(session) = event.what {
                let section =
                    if stepper.checks_order() { Section::Doorway } else { Section::Entering };
                at[event.process] = ProcessAt { section, session };
            }
            let number = self.steps.len() + 1;
            self.steps.push(tell(number, &event, at, &layout, &self.texts, is_mutex));
        }
        let names = &mut stepper.names;
        let process = names.processes[usize::from(choice.process)];
        self.schedule.push(Move { process: process as u8, ..choice });
        let moved = moved?;
        if stepper.renamed != Renamed::Nothing {
            let (state, renaming) = canonical(&self.state, &layout, stepper.renamed);
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
fn processes(stepper: &mut Stepper, state: &State) -> Vec<ProcessAt> {
    let mut processes =
        vec![ProcessAt { section: Section::Remainder, session: 0 }; state.procs.len()];
    for (p, proc) in state.procs.iter().enumerate() {
        let node = stepper.node(proc.local);
        let section = match node.section {
            Section::Entering if stepper.checks_order() && proc.past_doorway => Section::Waiting,
            Section::Entering if stepper.checks_order() => Section::Doorway,
            section => section,
        };
        processes[stepper.names.processes[p]] = ProcessAt { section, session: node.session };
    }
    processes
}

impl Stepper {
    /// The real name of process `p`.
    pub(super) fn name(&self, p: usize) -> usize {
        self.names.processes[p]
    }

    /// The real name of `register`.
    pub(super) fn register_name(&self, register: usize) -> String {
        let register = self.layout.renamed(register, |object| self.names.objects[object]);
        self.layout.register_name(register)
    }

    /// Records an event of process `p`, if events are recorded.
    pub(super) fn record(&mut self, p: usize, what: What) {
        if let Some(log) = &mut self.log {
            log.push(Event { process: self.names.processes[p], what });
        }
    }

    /// Records the step that makes `register` hold `new`.
    pub(super) fn tell(&mut self, state: &State, process: usize, register: usize, new: Val) {
        let node = self.node(state.procs[process].local);
        if let (Some(_), Some((_, op))) = (&self.log, node.step) {
            let object = |object: usize| self.names.objects[object];
            let what = What::Step {
                register: self.layout.renamed(register, object),
                op: state.operation(process, op).renamed(object),
                old: state.seen(process, register).map(object),
                new: new.map(object),
                buffered: self.is_buffered(&node),
                at: node.at,
                leaves: node.section == Section::Inside,
            };
            self.record(process, what);
        }
    }
}
