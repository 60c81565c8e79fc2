//! An execution, described for readers.

use std::fmt::Write as _;
use std::panic::Location;

use grouplock_algorithms::claims::Text;
use serde::{Deserialize, Serialize};

use crate::automaton::Op;
use crate::layout::Layout;
use crate::value::Val;

/// An event, in real names.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) process: usize,
    pub(crate) what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Request(u64),
    Withdraw,
    /// A write, or the data written inside, reaches memory.
    Reaches {
        register: Option<usize>,
        old: Val,
        new: Val,
    },
    /// It learns of a death.
    Told,
    Die,
    Step {
        register: usize,
        op: Op,
        old: Val,
        new: Val,
        /// It writes, and the write has not reached memory.
        buffered: bool,
        at: Option<&'static Location<'static>>,
        leaves: bool,
    },
}

/// One line of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Counted from one.
    pub step: usize,
    /// The process that moves.
    pub process: usize,
    /// The paper's number for the line, if it has one.
    pub paper_line: Option<String>,
    /// The line in our source.
    pub source: Option<String>,
    /// The operation, with the names of the variables.
    pub operation: String,
    /// The same, for programs; `None` if no register is accessed.
    pub access: Option<Access>,
    /// The holders afterwards, and their sessions.
    pub inside: Vec<Occupant>,
    /// The section of each process afterwards.
    #[serde(rename = "stages")]
    pub processes: Vec<ProcessAt>,
}

/// The effect of a step on the one register that it accesses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// The register's name.
    pub register: String,
    /// The previous value.
    pub before: String,
    /// The new value.
    pub after: String,
    /// Whether the step may write, and did.
    pub writes: bool,
}

/// The section of a process, and its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessAt {
    /// The section of its code.
    pub section: Section,
    /// The session that it requested; zero in the remainder section.
    pub session: u64,
}

/// The section of its code in which a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Section {
    /// The remainder section: the process is idle.
    Remainder,
    /// The entry section. A trace divides it into `Doorway` and `Waiting` if an order of service is
    /// checked.
    Entering,
    /// The wait-free part of the entry section, which decides the order of service.
    Doorway,
    /// The entry section after the doorway.
    Waiting,
    /// The process withdraws: it is neither inside nor idle yet.
    Withdrawing,
    /// The critical section: the process has taken no step of its exit section yet.
    Inside,
    /// The exit section.
    Exit,
}

/// A process in its critical section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occupant {
    /// The process.
    pub process: usize,
    /// The session that it requested.
    pub session: u64,
}

/// Describes `event`. `processes` says where they are after it.
pub(crate) fn tell(
    number: usize,
    event: &Event,
    processes: Vec<ProcessAt>,
    layout: &Layout,
    texts: &[Text],
    is_mutex: bool,
) -> Step {
    let (operation, at, access) = match &event.what {
        What::Request(_) if is_mutex => ("asks to enter".to_owned(), None, None),
        What::Request(session) => (format!("asks for session {session}"), None, None),
        What::Withdraw => ("withdraws".to_owned(), None, None),
        What::Told => ("learns of a death".to_owned(), None, None),
        What::Die => ("dies".to_owned(), None, None),
        What::Reaches { register: None, .. } => {
            ("what it wrote inside reaches memory".to_owned(), None, None)
        }
        What::Reaches { register: Some(register), old, new } => {
            let register = layout.register_name(*register);
            let [before, after] = [*old, *new].map(|value| layout.value_name(value));
            let told = format!("{register} := {after} reaches memory");
            (told, None, Some(Access { register, before, after, writes: true }))
        }
        What::Step { register, op, old, new, buffered, at, leaves } => {
            let register = layout.register_name(*register);
            let [before, after] = [*old, *new].map(|value| layout.value_name(value));
            let told = match op {
                Op::Read => format!("{register} is {before}"),
                Op::Write(_) if *buffered => format!("{register} := {after}, on its way"),
                Op::Write(_) => format!("{register} := {after}"),
                Op::Fas(_) => format!("{register} := {after}, was {before}"),
                Op::Cas(expected, _) if expected == old => {
                    format!("{register} := {after}, as it was {before}")
                }
                Op::Cas(expected, wanted) => {
                    let [not, so_not] = [expected, wanted].map(|&v| layout.value_name(v));
                    format!("{register} stays {before}: not {not}, so not := {so_not}")
                }
                Op::Faa(delta, _) if delta.cast_signed() < 0 => {
                    format!("{register} := {after}, {} less", delta.wrapping_neg())
                }
                Op::Faa(delta, _) => format!("{register} := {after}, {delta} more"),
                Op::WaitFor(_) | Op::WaitUnless(_) | Op::WaitOther(_) => {
                    format!("{register} is {before}: waited for that")
                }
                Op::AwaitCas(..) => format!("{register} := {after}, waited until it was {before}"),
            };
            let told = if *leaves { format!("leaves; {told}") } else { told };
            let writes = op.writes(*old) && !buffered;
            let after = if writes { after } else { before.clone() };
            (told, *at, Some(Access { register, before, after, writes }))
        }
    };
    let paper_line = at.and_then(|at| {
        let text = texts.iter().find(|text| text.file == at.file())?;
        text.paper_line(at.line()).map(str::to_owned)
    });
    let source = at.map(place);
    let process = event.process;
    let is_inside = |&(_, process): &(usize, &ProcessAt)| process.section == Section::Inside;
    let inside = processes.iter().enumerate().filter(is_inside);
    let inside = inside.map(|(process, &ProcessAt { session, .. })| Occupant { process, session });
    let inside = inside.collect();
    Step { step: number, process, paper_line, source, operation, access, inside, processes }
}

/// The file, without its folders, and the line.
pub(crate) fn place(at: &Location<'_>) -> String {
    let file = at.file().rsplit(['/', '\\']).next().unwrap_or(at.file());
    format!("{file}:{}", at.line())
}

impl Step {
    /// The holders afterwards, with `sign` before the number of each process.
    pub(crate) fn inside(&self, is_mutex: bool, sign: &str) -> String {
        let told = self.inside.iter().map(|&Occupant { process, session }| {
            let session = if is_mutex { String::new() } else { format!(":s{session}") };
            format!("{sign}{process}{session}")
        });
        told.collect::<Vec<_>>().join(" ")
    }
}

/// The trace as a table.
pub fn table(steps: &[Step], is_mutex: bool) -> String {
    let head = ["step", "process", "line", "source", "what", "inside"].map(str::to_owned);
    let rows = steps.iter().map(|step| {
        [
            step.step.to_string(),
            step.process.to_string(),
            step.paper_line.clone().unwrap_or_default(),
            step.source.clone().unwrap_or_default(),
            step.operation.clone(),
            step.inside(is_mutex, ""),
        ]
    });
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(rows).collect();
    let widths = widths(&rows);
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            _ = match column {
                0..=2 => write!(line, "{cell:>width$}  "),
                _ => write!(line, "{cell:<width$}  "),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

pub(crate) fn widths(rows: &[impl AsRef<[String]>]) -> Vec<usize> {
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(row.as_ref().len(), 0);
        for (width, cell) in widths.iter_mut().zip(row.as_ref()) {
            *width = cell.chars().count().max(*width);
        }
    }
    widths
}
