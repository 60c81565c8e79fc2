//! One run of the real code: from joining, along a script, to the next step.
//!
//! Its result names objects by placeholders.

use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::panic::Location;
use std::rc::Rc;

use grouplock_algorithms::memory::Ordering;

use super::{Note, Target};
use crate::layout::{Layout, object_at, pack, try_pack, unpack};
use crate::memory::context::{self, Access, Blueprint, Cue, Operation, Suspension};
use crate::memory::running::{Running, recycle, start};
use crate::subject::Subject;
use crate::trace::Section;
use crate::value::Val;

/// An operation on packed values. Objects are real objects in a state, and placeholders in the
/// automaton.
pub type Op = Operation<Val>;

/// What a process observes in a local state, with placeholders for the objects that it knows.
pub type Obs = Cue<Val>;

impl Obs {
    /// The kind of the observed object, if the process does not know it.
    pub(crate) fn stranger(self) -> Option<usize> {
        match self {
            Cue::Value(value) => value.as_stranger(),
            _ => None,
        }
    }

    /// The observed object, in a script.
    pub(super) fn object(self) -> Option<usize> {
        match self {
            Cue::Value(value) => value.as_object(),
            _ => None,
        }
    }
}

impl Op {
    /// The operation with other objects.
    #[must_use]
    pub fn renamed(self, f: impl Fn(usize) -> usize) -> Self {
        let Ok(renamed) = self.try_map(|value| Ok::<_, Infallible>(value.map(&f)));
        renamed
    }

    /// Whether the operation writes a register that holds `old`.
    pub(crate) fn writes(self, old: Val) -> bool {
        match self {
            Op::Cas(expected, _) => expected == old,
            _ => !self.only_reads(),
        }
    }
}

/// Why executions may be merged here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Merge {
    /// The remainder section: only what `inspect` reports counts.
    Remainder,
    /// The entry to the critical section: only the handle of the process counts.
    Inside,
    /// `Memory::live`: the handle and the given words count.
    Live { file: &'static str, line: u32, column: u32 },
}

/// Where a run stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Operation {
        target: Target,
        op: Op,
        order: Ordering,
        at: &'static Location<'static>,
    },
    /// At a merge point: what counts there (with renumbered objects), and the placeholders of these
    /// objects.
    Merge(Merge, String, Vec<u8>),
    RoundFailed,
    Panic(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown<S = Stop> {
    pub(super) stop: S,
    /// In the remainder section: the whole handle.
    pub(super) handle: String,
    /// The notes of the process after the script's last entry.
    pub(super) notes: Vec<Note>,
    pub(super) section: Section,
    pub(super) session: u64,
    /// The script's last entry ended an `await`.
    pub(super) passed: bool,
    /// The stop is inside an `await`. This is the number of script entries in its present round.
    pub(super) in_round: Option<usize>,
}

impl Shown {
    /// Whether two runs that were merged so far may stay merged. The handles that a merge point
    /// shows may differ. The runs from there on show whether that makes a difference.
    pub(super) fn agrees_with(&self, other: &Shown) -> bool {
        let mut other = Shown { handle: self.handle.clone(), ..other.clone() };
        if let (Stop::Merge(here, ..), Stop::Merge(there, ..)) = (&self.stop, &other.stop)
            && here == there
            && *here != Merge::Remainder
        {
            other.stop = self.stop.clone();
        }
        *self == other
    }
}

/// Runs process `p`, which knows `known`, along `script`, on a new lock.
///
/// # Errors
/// If the process used an object that it should not know.
pub(super) fn execute(
    subject: &Subject,
    layout: &Layout,
    (processes, p): (usize, usize),
    script: &[Obs],
    known: &Known,
) -> Result<Shown, String> {
    let (joined, blueprint) = context::set_up(|| (subject.make)(processes));
    let mut joined = joined.expect("the same lock was made before, to know its layout");
    let me = Rc::new(RefCell::new(joined.swap_remove(p)));
    let mut running =
        start(Rc::clone(&me), Some(blueprint.objects.iter().map(|o| o.place).collect()));
    let mut driven = drive(&mut running, layout, script, known, &blueprint)?;
    // A process that learns of a death continues to wait.
    if subject.dies && driven.section == Section::Withdrawing {
        driven.section = Section::Entering;
    }
    context::end();
    recycle(running);
    let me = me.borrow();
    let mut handle = Telling::new(known);
    let mut told = Telling::new(known);
    let merge = match driven.stop {
        Err(stop) => Err(stop),
        Ok(Suspension::Access(Access { register, operation, order, at })) => {
            Err(match operation.try_map(|word| try_pack(word, &blueprint)) {
                Ok(op) => Stop::Operation {
                    target: known.target(register, layout)?,
                    op: op.try_map(|value| known.value(value, at))?,
                    order,
                    at,
                },
                // As if the code itself checked its arithmetic.
                Err(why) => Stop::Panic(format!("{at}: {why}")),
            })
        }
        Ok(Suspension::Live(words, at)) => {
            for word in words {
                told.value(pack(word, &blueprint));
            }
            Ok(Merge::Live { file: at.file(), line: at.line(), column: at.column() })
        }
        Ok(Suspension::Remainder) => {
            me.inspect(&mut |name, word| {
                _ = write!(told.text, "{name}=");
                told.value(pack(word, &blueprint));
            });
            Ok(Merge::Remainder)
        }
        Ok(_) => Ok(Merge::Inside),
    };
    let stop = match merge {
        Err(stop) => stop,
        Ok(merge) => {
            let whole = if merge == Merge::Remainder { &mut handle } else { &mut told };
            whole.mention(&me.handle(), &blueprint);
            if let (Merge::Remainder, Some(object)) = (merge, told.unknown) {
                let name = &layout.objects[object].name;
                return Err(format!(
                    "a passage ends with a pointer to {name} that, by `live`, was not needed any more"
                ));
            }
            Stop::Merge(merge, told.text, told.placeholders)
        }
    };
    let Shown { notes, section, session, passed, in_round, .. } = driven;
    Ok(Shown { stop, handle: handle.text, notes, section, session, passed, in_round })
}

/// Lets a process run along `script`. It stops with what the process wants at the end of the
/// script, or why it did not reach the end.
fn drive(
    running: &mut Running,
    layout: &Layout,
    script: &[Obs],
    known: &Known,
    blueprint: &Blueprint,
) -> Result<Shown<Result<Suspension, Stop>>, String> {
    let (mut section, mut session, mut answered) = (Section::Remainder, 0, 0);
    let (mut round, mut passed, mut notes) = (None, false, Vec::new());
    let (mut position, mut cue) = (0, None);
    let stop = loop {
        let suspension = match context::catch_quietly(|| running.resume(cue.take())) {
            Ok(resumed) => resumed.as_yield().expect("it was not told to stop"),
            Err(payload) => break Err(Stop::Panic(context::message(&*payload))),
        };
        let is_over = position == script.len();
        match &suspension {
            Suspension::RoundBegins(at) if round.is_some() => {
                let why = "an `await` in the condition of an `await`, which may only read";
                break Err(Stop::Panic(format!("{at}: {why}")));
            }
            // A failed round leaves no mark, so it cannot be divided.
            Suspension::Live(_, at) if round.is_some() => {
                let why = "`live` in the condition of an `await`, which may only read";
                break Err(Stop::Panic(format!("{at}: {why}")));
            }
            Suspension::RoundBegins(_) => round = Some(position),
            Suspension::RoundEnds(holds) => {
                // True exactly if the last entry of the script decided this round.
                passed = round.take() != Some(position) && is_over;
                if !holds && !passed {
                    let why = "an await that reads nothing can never end".to_owned();
                    break Err(Stop::Panic(why));
                } else if !holds {
                    break Err(Stop::RoundFailed);
                }
            }
            Suspension::MayWithdraw => unreachable!("where code is explored, waiting is one step"),
            Suspension::DoorwayEnd => notes.extend(is_over.then_some(Note::DoorwayEnd)),
            Suspension::Forget(_) if !is_over => {}
            Suspension::Forget(register) => {
                notes.push(Note::Forget(known.target(*register, layout)?));
            }
            Suspension::Remainder
            | Suspension::Inside
            | Suspension::Access(_)
            | Suspension::Live(..) => {
                match &suspension {
                    Suspension::Remainder => (section, session) = (Section::Remainder, 0),
                    Suspension::Inside => (section, answered) = (Section::Inside, 0),
                    _ => {
                        answered +=
                            usize::from(!is_over && matches!(suspension, Suspension::Access(_)));
                    }
                }
                let Some(&next) = script.get(position) else { break Ok(suspension) };
                position += 1;
                match next {
                    Cue::Request(asked) => (section, session) = (Section::Entering, asked),
                    Cue::Pass if section == Section::Inside => section = Section::Exit,
                    Cue::Waited(false) => section = Section::Withdrawing,
                    _ => {}
                }
                cue = Some(next.map(|value| unpack(value, blueprint)));
            }
        }
    };
    // It has taken no step of its exit section yet.
    if section == Section::Exit && answered == 0 {
        section = Section::Inside;
    }
    let in_round = round.map(|began| script.len() - began);
    Ok(Shown { stop, handle: String::new(), notes, section, session, passed, in_round })
}

/// The objects that a process knows, by placeholder.
pub(super) struct Known(pub(super) Vec<usize>);

impl Known {
    fn placeholder(&self, object: usize) -> Option<usize> {
        self.0.iter().position(|&known| known == object)
    }

    fn target(&self, register: usize, layout: &Layout) -> Result<Target, String> {
        let Some((object, field)) = layout.registers[register].object else {
            return Ok(Target::Global(register));
        };
        self.placeholder(object).map(|p| Target::Field(p, field)).ok_or_else(|| {
            let name = layout.register_name(register);
            format!("{name} is used by a process that, by `inspect` or `live`, cannot know of it")
        })
    }

    fn value(&self, value: Val, at: &Location<'_>) -> Result<Val, String> {
        let Some(object) = value.as_object() else { return Ok(value) };
        self.placeholder(object).map(Val::object).ok_or_else(|| {
            format!("{at}: a pointer is used that, by `inspect` or `live`, is not known")
        })
    }
}

/// A text whose objects are numbered in the order of their appearance, and their placeholders.
struct Telling<'a> {
    known: &'a Known,
    text: String,
    placeholders: Vec<u8>,
    /// An unknown object, if there is one. Inside a passage it is in the handle since an earlier
    /// passage, and dead. A use of it would be noticed.
    unknown: Option<usize>,
}

impl<'a> Telling<'a> {
    fn new(known: &'a Known) -> Self {
        Telling { known, text: String::new(), placeholders: Vec::new(), unknown: None }
    }

    fn value(&mut self, value: Val) {
        match value.as_object() {
            Some(object) => self.object(object),
            None => _ = write!(self.text, "{value:?},"),
        }
    }

    fn object(&mut self, object: usize) {
        let Some(placeholder) = self.known.placeholder(object) else {
            self.unknown = Some(object);
            self.text.push_str("dead,");
            return;
        };
        let placeholder = placeholder as u8;
        let told = self.placeholders.iter().position(|&p| p == placeholder);
        let number = told.unwrap_or_else(|| {
            self.placeholders.push(placeholder);
            self.placeholders.len() - 1
        });
        _ = write!(self.text, "@{number},");
    }

    /// Writes `text`, which contains addresses of objects.
    fn mention(&mut self, text: &str, blueprint: &Blueprint) {
        let mut rest = text;
        while let Some(at) = rest.find("0x") {
            let digits = rest[at + 2..].find(|c: char| !c.is_ascii_hexdigit());
            let end = digits.map_or(rest.len(), |digits| at + 2 + digits);
            let address = usize::from_str_radix(&rest[at + 2..end], 16).ok();
            if let Some(object) = address.and_then(|address| object_at(address, blueprint)) {
                self.text.push_str(&rest[..at]);
                self.object(object);
            } else {
                self.text.push_str(&rest[..end]);
            }
            rest = &rest[end..];
        }
        self.text.push_str(rest);
    }
}
