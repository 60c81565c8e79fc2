//! From the objects of one run to placeholders, and back.

use std::fmt::Write as _;
use std::panic::Location;

use super::run::{Merge, Op, Outcome, Phase, Piece, Stop};
use super::{Note, Target};
use crate::layout::Layout;
use crate::memory::context::{Cue, Remark};
use crate::value::{Obs, Val};

/// What a run showed, with placeholders for objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Symbolic {
    pub(super) stop: SymbolicStop,
    /// In the remainder section: all of the handle.
    pub(super) handle: String,
    pub(super) notes: Vec<Note>,
    pub(super) phase: Phase,
    pub(super) session: u64,
    pub(super) passed: bool,
    pub(super) in_round: Option<usize>,
}

impl Symbolic {
    /// Whether two runs that were taken for one so far may still be. What a merge point shows of a handle may
    /// differ: whether that makes a difference, the runs from there on tell.
    pub(super) fn agrees_with(&self, other: &Symbolic) -> bool {
        let mut other = Symbolic { handle: self.handle.clone(), ..other.clone() };
        if let (SymbolicStop::Merge(here, ..), SymbolicStop::Merge(there, ..)) =
            (&self.stop, &other.stop)
            && here == there
            && *here != Merge::Remainder
        {
            other.stop = self.stop.clone();
        }
        *self == other
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SymbolicStop {
    Operation {
        target: Target,
        op: Op,
        at: &'static Location<'static>,
    },
    /// The kind, what counts there (with its objects numbered anew), and which placeholders those were.
    Merge(Merge, String, Vec<u8>),
    RoundFailed,
    Panic(String),
}

/// The objects that a process knows, by placeholder.
pub(super) struct Known(Vec<usize>);

impl Known {
    pub(super) fn of(env: &[usize]) -> Self {
        Known(env.to_vec())
    }

    pub(super) fn everything(objects: usize) -> Self {
        Known((0..objects).collect())
    }

    pub(super) fn into_objects(self) -> Vec<usize> {
        self.0
    }

    fn placeholder(&self, object: usize) -> Option<usize> {
        self.0.iter().position(|&known| known == object)
    }

    /// The cue for `obs` in this run. A stranger becomes known.
    pub(super) fn cue(&mut self, obs: Obs, layout: &Layout) -> Result<Cue<Val>, String> {
        if let Some(session) = obs.as_request() {
            return Ok(Cue::Request(session));
        }
        if let Some(class) = obs.as_stranger() {
            let mut strangers = 0..layout.objects.len();
            let stranger = strangers
                .find(|&o| layout.objects[o].class == class && !self.0.contains(&o))
                .ok_or("a process knows more objects than there are")?;
            self.0.push(stranger);
            return Ok(Cue::Value(Val::object(stranger)));
        }
        Ok(match obs {
            Obs::DONE => Cue::Done,
            Obs::SWAPPED => Cue::Swapped(true),
            Obs::FAILED => Cue::Swapped(false),
            Obs::PASS => Cue::Pass,
            Obs(value) => Cue::Value(Val(value).map(|placeholder| self.0[placeholder])),
        })
    }

    /// The outcome with placeholders.
    ///
    /// # Errors
    /// If the process used an object that it should not know.
    pub(super) fn translate(&self, outcome: &Outcome, layout: &Layout) -> Result<Symbolic, String> {
        let register = |register: usize| {
            let Some((object, field)) = layout.registers[register].object else {
                return Ok(Target::Global(register));
            };
            self.placeholder(object).map(|p| Target::Field(p, field)).ok_or_else(|| {
                let name = layout.register_name(register);
                format!(
                    "{name} is used by a process that, by `inspect` or `live`, cannot know of it"
                )
            })
        };
        let notes = outcome.remarks.iter().map(|remark| match *remark {
            Remark::Forget(r) => register(r).map(Note::Forget),
            Remark::DoorwayEnd => Ok(Note::DoorwayEnd),
        });
        let stop = match &outcome.stop {
            Stop::Operation { register: r, op, at } => SymbolicStop::Operation {
                target: register(*r)?,
                op: op.try_map(|value| match value.as_object() {
                    None => Ok(value),
                    Some(object) => self.placeholder(object).map(Val::object).ok_or_else(|| {
                        format!(
                            "{at}: a pointer is used that, by `inspect` or `live`, is not known"
                        )
                    }),
                })?,
                at,
            },
            Stop::Merge(merge, pieces) => {
                let (text, placeholders, unknown) = self.renumber(pieces);
                if let (Merge::Remainder, Some(object)) = (merge, unknown) {
                    let name = &layout.objects[object].name;
                    return Err(format!(
                        "a passage ends with a pointer to {name} that, by `live`, was not needed any more"
                    ));
                }
                SymbolicStop::Merge(*merge, text, placeholders)
            }
            Stop::RoundFailed => SymbolicStop::RoundFailed,
            Stop::Panic(message) => SymbolicStop::Panic(message.clone()),
        };
        Ok(Symbolic {
            stop,
            handle: self.renumber(&outcome.handle).0,
            notes: notes.collect::<Result<_, _>>()?,
            phase: outcome.phase,
            session: outcome.session,
            passed: outcome.passed,
            in_round: outcome.round,
        })
    }

    /// The text with its objects numbered in the order in which they come up, their placeholders here, and an
    /// object that is not known, if there is one. Inside a passage that is a left-over of an earlier
    /// one in the handle, and dead: if it were used, that would be noticed.
    fn renumber(&self, pieces: &[Piece]) -> (String, Vec<u8>, Option<usize>) {
        let mut unknown = None;
        let mut text = String::new();
        let mut placeholders: Vec<u8> = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Object(object) => {
                    let Some(placeholder) = self.placeholder(*object) else {
                        unknown = Some(*object);
                        text.push_str("dead,");
                        continue;
                    };
                    let placeholder = placeholder as u8;
                    let known = placeholders.iter().position(|&p| p == placeholder);
                    let number = known.unwrap_or_else(|| {
                        placeholders.push(placeholder);
                        placeholders.len() - 1
                    });
                    let _ = write!(text, "@{number},");
                }
            }
        }
        (text, placeholders, unknown)
    }
}
