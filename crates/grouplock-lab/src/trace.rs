//! An execution, told so that a person can follow it.

use std::fmt::Write as _;
use std::panic::Location;

use grouplock_algorithms::claims::Text;
use serde::{Deserialize, Serialize};

use crate::automaton::Node;
use crate::automaton::run::{Op, Phase};
use crate::layout::Layout;
use crate::value::Val;

/// Something that happened, in the names of the state it happened in.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) process: usize,
    pub(crate) what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Request(u64),
    Step {
        register: usize,
        op: Op,
        old: Val,
        new: Val,
        at: Option<&'static Location<'static>>,
        leaves: bool,
    },
}

impl Event {
    pub(crate) fn request(process: usize, session: u64) -> Self {
        Event { process, what: What::Request(session) }
    }

    pub(crate) fn step(
        process: usize,
        node: &Node,
        register: usize,
        op: Op,
        old: Val,
        new: Val,
    ) -> Self {
        let leaves = node.phase == Phase::Inside;
        Event { process, what: What::Step { register, op, old, new, at: node.at, leaves } }
    }

    /// The event in other names.
    pub(crate) fn renamed(
        self,
        process: impl Fn(usize) -> usize,
        object: impl Fn(usize) -> usize,
        layout: &Layout,
    ) -> Self {
        let what = match self.what {
            What::Request(session) => What::Request(session),
            What::Step { register, op, old, new, at, leaves } => What::Step {
                register: match layout.registers[register].object {
                    Some((o, field)) => layout.objects[object(o)].registers[field],
                    None => register,
                },
                op: op.renamed(&object),
                old: old.map(&object),
                new: new.map(&object),
                at,
                leaves,
            },
        };
        Event { process: process(self.process), what }
    }
}

/// One line of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Counted from one.
    pub step: usize,
    /// Who moves.
    pub process: usize,
    /// The paper's number for the line, if it has one.
    pub paper_line: Option<String>,
    /// The line in our source.
    pub source: Option<String>,
    /// What is done, by the variables' names.
    pub operation: String,
    /// The same, for programs; nothing if no register is touched.
    pub access: Option<Access>,
    /// Who is inside afterwards, and in which session.
    pub inside: Vec<Occupant>,
    /// Where each process is afterwards.
    pub stages: Vec<Stage>,
}

/// What a step does to the one register that it touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// The register's name.
    pub register: String,
    /// What it held.
    pub before: String,
    /// What it holds now.
    pub after: String,
    /// Whether the step may write, and did.
    pub writes: bool,
}

/// Where a process is, and for which session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// The section of its code.
    pub section: Section,
    /// The session it asked for; zero in the remainder section.
    pub session: u64,
}

/// The sections of a passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Section {
    /// It wants nothing.
    Remainder,
    /// On the way in; where the doorway ends is kept only if an order of service is checked.
    Entering,
    /// In the wait-free part of its entry section, which decides the order of service.
    Doorway,
    /// In its entry section, past the doorway.
    Waiting,
    /// In its critical section.
    Inside,
    /// In its exit section.
    Exit,
}

/// A process in its critical section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occupant {
    /// The process.
    pub process: usize,
    /// The session it asked for.
    pub session: u64,
}

/// Who is where in a state, in real names.
#[derive(Clone, Debug)]
pub(crate) struct Whereabouts {
    pub(crate) inside: Vec<Occupant>,
    pub(crate) stages: Vec<Stage>,
}

/// Tells `event`.
pub(crate) fn tell(
    number: usize,
    event: &Event,
    Whereabouts { inside, stages }: Whereabouts,
    layout: &Layout,
    texts: &[Text],
    is_mutex: bool,
) -> Step {
    let (operation, at) = match &event.what {
        What::Request(_) if is_mutex => ("asks to enter".to_owned(), None),
        What::Request(session) => (format!("asks for session {session}"), None),
        What::Step { register, op, old, new, at, leaves } => {
            let name = layout.register_name(*register);
            let value = |value: Val| layout.value_name(value);
            let told = match op {
                Op::Read => format!("{name} is {}", value(*old)),
                Op::Write(_) => format!("{name} := {}", value(*new)),
                Op::Fas(_) => format!("{name} := {}, was {}", value(*new), value(*old)),
                Op::Cas(expected, _) if expected == old => {
                    format!("{name} := {}, as it was {}", value(*new), value(*old))
                }
                Op::Cas(expected, wanted) => format!(
                    "{name} stays {}: not {}, so not := {}",
                    value(*old),
                    value(*expected),
                    value(*wanted)
                ),
                Op::Faa(delta, _) if delta.cast_signed() < 0 => {
                    format!("{name} := {}, {} less", value(*new), delta.wrapping_neg())
                }
                Op::Faa(delta, _) => format!("{name} := {}, {delta} more", value(*new)),
                Op::WaitFor(_) => format!("{name} is {}: waited for that", value(*old)),
                Op::AwaitCas(..) => {
                    format!("{name} := {}, waited until it was {}", value(*new), value(*old))
                }
            };
            (if *leaves { format!("leaves; {told}") } else { told }, *at)
        }
    };
    let paper_line = at.and_then(|at| {
        let text = texts.iter().find(|text| text.file == at.file())?;
        text.paper_line(at.line()).map(str::to_owned)
    });
    let source = at.map(|at| {
        let file = at.file().rsplit(['/', '\\']).next().unwrap_or(at.file());
        format!("{file}:{}", at.line())
    });
    let access = match &event.what {
        What::Request(_) => None,
        What::Step { register, op, old, new, .. } => Some(Access {
            register: layout.register_name(*register),
            before: layout.value_name(*old),
            after: layout.value_name(if op.writes(*old) { *new } else { *old }),
            writes: op.writes(*old),
        }),
    };
    let process = event.process;
    Step { step: number, process, paper_line, source, operation, access, inside, stages }
}

impl Step {
    /// Who is inside afterwards, with `sign` before the number of each process.
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
    let rows: Vec<[String; 6]> = steps
        .iter()
        .map(|step| {
            [
                step.step.to_string(),
                step.process.to_string(),
                step.paper_line.clone().unwrap_or_default(),
                step.source.clone().unwrap_or_default(),
                step.operation.clone(),
                step.inside(is_mutex, ""),
            ]
        })
        .collect();
    let head = ["step", "process", "line", "source", "what", "inside"].map(str::to_owned);
    let width = |column: usize| {
        let cells = rows.iter().chain([&head]).map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut text = String::new();
    for row in [&head].into_iter().chain(&rows) {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let _ = match column {
                0..=2 => write!(line, "{cell:>width$}  "),
                _ => write!(line, "{cell:<width$}  "),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
