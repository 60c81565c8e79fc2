//! The code of one process alone: its next access, and the effect of an answer.
//!
//! This is for a test that compares a model of an algorithm with its shipped text. The answers need
//! not occur in an execution: a local state says what the code does after any answer.

use crate::automaton::{Automaton, LocalId, Target};
use crate::subject::Subject;
use crate::trace::Section;
use crate::value::{Obs, Val};

pub use crate::memory::context::Operation;

/// The position of a process, and the objects that it knows there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    local: LocalId,
    known: Vec<usize>,
}

impl Point {
    /// Whether the code continues in the same way from both, except for the names of objects.
    pub fn is_like(&self, other: &Self) -> bool {
        self.local == other.local
    }
}

/// The answer to an operation of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// It is done.
    Done,
    /// The previous value of the register.
    Value(Val),
    /// Whether a compare-and-swap succeeded.
    Swapped(bool),
}

/// The code of a lock's processes.
pub struct Code(Automaton);

impl Code {
    /// The code of `subject` with this number of processes, and the first position of each.
    pub fn of(subject: &Subject, processes: usize) -> (Self, Vec<Point>) {
        let (automaton, first) = Automaton::new(subject, processes);
        let first = first.into_iter().map(|(local, known)| Point { local, known });
        (Code(automaton), first.collect())
    }

    /// The names of the objects, such as `Node0a`.
    pub fn objects(&self) -> Vec<String> {
        self.0.layout.objects.iter().map(|object| object.name.clone()).collect()
    }

    /// The object of a register, if it lies in one, and its name there.
    pub fn register(&self, register: usize) -> (Option<usize>, &'static str) {
        let register = &self.0.layout.registers[register];
        (register.object.map(|(object, _)| object), register.site.name)
    }

    /// Whether the process is in its remainder section.
    pub fn is_idle(&self, place: &Point) -> bool {
        self.0.node(place.local).section == Section::Remainder
    }

    /// Whether the process is in its critical section.
    pub fn is_inside(&self, place: &Point) -> bool {
        self.0.node(place.local).section == Section::Inside
    }

    /// The next access of the process: the register and the operation.
    pub fn next(&self, place: &Point) -> Option<(usize, Operation<Val>)> {
        let (target, operation) = self.0.node(place.local).step?;
        let register = match target {
            Target::Global(register) => register,
            Target::Field(placeholder, field) => {
                self.0.layout.objects[place.known[placeholder]].registers[field]
            }
        };
        Some((register, operation.renamed(|placeholder| place.known[placeholder])))
    }

    /// The position of an idle process after it requests `session`.
    ///
    /// # Errors
    /// If the code panics.
    pub fn request(&mut self, place: &Point, session: u64) -> Result<Point, String> {
        self.follow(place, Obs::request(session))
    }

    /// The position of a process after this answer to its operation.
    ///
    /// # Errors
    /// If the code panics.
    pub fn answer(&mut self, place: &Point, answer: Answer) -> Result<Point, String> {
        let mut place = place.clone();
        let obs = match answer {
            Answer::Done => Obs::DONE,
            Answer::Swapped(true) => Obs::SWAPPED,
            Answer::Swapped(false) => Obs::FAILED,
            Answer::Value(value) => self.observed(&mut place, value),
        };
        self.follow(&place, obs)
    }

    /// The value as the process sees it there. An object that it did not know becomes known.
    fn observed(&self, place: &mut Point, value: Val) -> Obs {
        let Some(object) = value.as_object() else { return Obs::value(value) };
        if let Some(placeholder) = place.known.iter().position(|&known| known == object) {
            return Obs::value(Val::object(placeholder));
        }
        place.known.push(object);
        Obs::stranger(self.0.layout.objects[object].class)
    }

    fn follow(&mut self, place: &Point, obs: Obs) -> Result<Point, String> {
        let edge = self.0.edge(place.local, obs).map_err(|trouble| format!("{trouble:?}"))?;
        if let Some(message) = &edge.panic {
            return Err(message.clone());
        }
        let known = edge.env.iter().map(|&from| place.known[usize::from(from)]);
        Ok(Point { local: edge.target, known: known.collect() })
    }
}
