//! A trace from the choices that made it.
//!
//! Choices are made in standard forms, where processes and objects change names from state to state. Here the
//! names are carried along, so that the trace tells of the same process by the same number throughout.

use std::sync::Arc;

use grouplock_algorithms::claims::{Kind, Text};

use super::Turn;
use super::canon::{Renamed, canonical};
use super::state::State;
use super::stepper::{Choice, Fault, Obstacle, Stepper};
use crate::automaton::Trouble;
use crate::automaton::run::Phase;
use crate::registry;
use crate::subject::Subject;
use crate::trace::{Event, Occupant, Section, Stage, Step, What, Whereabouts, tell};

/// Real names: of each process and each object of the present state.
struct Names {
    processes: Vec<usize>,
    objects: Vec<usize>,
}

/// An execution in real names.
pub(super) struct Told {
    pub(super) steps: Vec<Step>,
    pub(super) schedule: Vec<Turn>,
    /// What went wrong in its last step.
    pub(super) fault: Option<Fault>,
    /// Why its last step has no result.
    pub(super) trouble: Option<Trouble>,
    /// The state it comes to, in the names of that state.
    pub(super) state: State,
}

/// The execution that `choices` make.
pub(super) fn trace(
    stepper: &mut Stepper,
    subject: &Subject,
    initial: State,
    renamed: Renamed,
    choices: &[Choice],
) -> Told {
    let layout = Arc::clone(&stepper.layout);
    let texts: Vec<Text> = registry::texts(subject);
    let is_mutex = subject.claims.kind == Kind::Mutual;
    let mut names = Names {
        processes: (0..initial.procs.len()).collect(),
        objects: (0..layout.objects.len()).collect(),
    };
    let (steps, schedule) = (Vec::new(), Vec::new());
    let mut told = Told { steps, schedule, fault: None, trouble: None, state: initial };
    for &choice in choices {
        let mut log: Option<Vec<Event>> = Some(Vec::new());
        let before = whereabouts(stepper, &told.state, &names);
        let result = stepper.take(&mut told.state, choice, &mut log);
        let after = whereabouts(stepper, &told.state, &names);
        let events = log.unwrap_or_default();
        // The mover's own step is where somebody enters or leaves; what is run alone afterwards is neither.
        let turn = events.iter().position(|event| !matches!(event.what, What::Request(_)));
        for (i, event) in events.into_iter().enumerate() {
            let event = event.renamed(|p| names.processes[p], |o| names.objects[o], &layout);
            let mut at = if turn.is_some_and(|turn| i >= turn) { &after } else { &before }.clone();
            if let What::Request(session) = event.what {
                let section = if stepper.orders() { Section::Doorway } else { Section::Entering };
                at.stages[event.process] = Stage { section, session };
            }
            let number = told.steps.len() + 1;
            told.steps.push(tell(number, &event, at, &layout, &texts, is_mutex));
        }
        let process = names.processes[usize::from(choice.process)];
        told.schedule.push(Turn { process, session: u64::from(choice.session) });
        match result {
            Ok(_) => {}
            Err(Obstacle::Fault(fault)) => {
                let because = rename(&fault.because, &names);
                told.fault = Some(Fault { because, ..fault });
                break;
            }
            Err(Obstacle::Trouble(trouble)) => {
                told.trouble = Some(trouble);
                break;
            }
        }
        if renamed != Renamed::Nothing {
            let (state, renaming) = canonical(&told.state, &layout, renamed);
            told.state = state;
            names.processes = renaming.order.iter().map(|&p| names.processes[p]).collect();
            let mut objects = vec![0; names.objects.len()];
            for (object, &now) in renaming.objects.iter().enumerate() {
                objects[usize::from(now)] = names.objects[object];
            }
            names.objects = objects;
        }
    }
    told
}

fn whereabouts(stepper: &mut Stepper, state: &State, names: &Names) -> Whereabouts {
    let mut inside = Vec::new();
    let mut stages = vec![Stage { section: Section::Remainder, session: 0 }; state.procs.len()];
    for (p, proc) in state.procs.iter().enumerate() {
        let node = stepper.node(proc.local);
        let section = match node.phase {
            Phase::Remainder => Section::Remainder,
            Phase::Entering if !stepper.orders() => Section::Entering,
            Phase::Entering if proc.past_doorway => Section::Waiting,
            Phase::Entering => Section::Doorway,
            Phase::Inside => Section::Inside,
            Phase::Exiting => Section::Exit,
        };
        stages[names.processes[p]] = Stage { section, session: node.session };
        if section == Section::Inside {
            inside.push(Occupant { process: names.processes[p], session: node.session });
        }
    }
    inside.sort_by_key(|occupant| occupant.process);
    Whereabouts { inside, stages }
}

/// A fault's reason names processes by the numbers of its last state, always after the word "process" or in the
/// opening "processes 0 and 1".
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
