//! The code of one process alone: its next access, and the effect of an answer.
//!
//! The answers need not occur in an execution: a local state says what the code does after any
//! answer.

use grouplock_lab::Subject;
use grouplock_lab::automaton::{Automaton, LocalId, Obs, Op, Target};
use grouplock_lab::trace::Section;
use grouplock_lab::value::Val;

/// The position of a process, and the objects that it knows there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Point {
    local: LocalId,
    known: Vec<usize>,
}

impl Point {
    /// Whether the code continues in the same way from both, except for the names of objects.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.local == other.local
    }
}

/// The code of a lock's processes.
pub(crate) struct Code(Automaton);

impl Code {
    /// The code of `subject` with this number of processes, and the first position of each.
    pub(crate) fn of(subject: &Subject, processes: usize) -> (Self, Vec<Point>) {
        let (automaton, first) = Automaton::new(subject, processes);
        let first = first.into_iter().map(|(local, known)| Point { local, known });
        (Code(automaton), first.collect())
    }

    /// The names of the objects, such as `Node0a`.
    pub(crate) fn objects(&self) -> Vec<String> {
        self.0.layout.objects.iter().map(|object| object.name.clone()).collect()
    }

    /// The object of a register, if it lies in one, and its name there.
    pub(crate) fn register(&self, register: usize) -> (Option<usize>, &'static str) {
        let register = &self.0.layout.registers[register];
        (register.object.map(|(object, _)| object), register.site.name)
    }

    /// Whether the process is in its remainder section.
    pub(crate) fn is_idle(&self, place: &Point) -> bool {
        self.0.node(place.local).section == Section::Remainder
    }

    /// Whether the process is in its critical section.
    pub(crate) fn is_inside(&self, place: &Point) -> bool {
        self.0.node(place.local).section == Section::Inside
    }

    /// The next access of the process: the register and the operation.
    pub(crate) fn next(&self, place: &Point) -> Option<(usize, Op)> {
        let (target, operation) = self.0.node(place.local).step?;
        let register = match target {
            Target::Global(register) => register,
            Target::Field(placeholder, field) => {
                self.0.layout.objects[place.known[placeholder]].registers[field]
            }
        };
        Some((register, operation.renamed(|placeholder| place.known[placeholder])))
    }

    /// The position of a process after this answer, which names real objects; or why the code
    /// panics.
    pub(crate) fn answer(&mut self, place: &Point, answer: Obs) -> Result<Point, String> {
        let mut known = place.known.clone();
        let obs = match answer {
            Obs::Value(value) => Obs::Value(self.observed(&mut known, value)),
            other => other,
        };
        let edge = self.0.edge(place.local, obs)?;
        if let Some(message) = &edge.panic {
            return Err(message.clone());
        }
        let known = edge.env.iter().map(|&from| known[usize::from(from)]);
        Ok(Point { local: edge.target, known: known.collect() })
    }

    /// The value as a process sees it that knows these objects. A new object becomes known.
    fn observed(&self, known: &mut Vec<usize>, value: Val) -> Val {
        let Some(object) = value.as_object() else { return value };
        if let Some(placeholder) = known.iter().position(|&known| known == object) {
            return Val::object(placeholder);
        }
        known.push(object);
        Val::stranger(self.0.layout.objects[object].class)
    }
}
