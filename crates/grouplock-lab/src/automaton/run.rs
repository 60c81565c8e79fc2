//! One run of the real code: from joining, along a script, to the next thing it does.

use std::cell::Cell;
use std::convert::Infallible;
use std::panic::Location;

use crate::layout::{object_at, pack, try_pack, unpack};
use crate::memory::context::{self, Access, Cue, Halt, Operation, Plan, Remark, Run};
use crate::subject::Subject;
use crate::value::Val;

/// Where a process is in its passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// In its remainder section.
    Remainder,
    /// In its entry section.
    Entering,
    /// In its critical section: it has taken no step of its exit section yet.
    Inside,
    /// In its exit section.
    Exiting,
}

/// An operation on packed values. The objects are real ones in a run, placeholders in the automaton.
pub(crate) type Op = Operation<Val>;

impl Op {
    /// The same operation with its objects replaced.
    pub(crate) fn renamed(self, f: impl Fn(usize) -> usize) -> Self {
        let Ok(renamed) = self.try_map(|value| Ok::<_, Infallible>(value.map(&f)));
        renamed
    }

    /// Whether the operation writes a register that holds `old`.
    pub(crate) fn writes(self, old: Val) -> bool {
        match self {
            Op::Cas(expected, _) => expected == old,
            _ => !self.looks(),
        }
    }
}

/// A piece of a text that mentions objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Object(usize),
}

/// Why executions may be taken for one here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Merge {
    /// The remainder section: all that counts is what `inspect` tells.
    Remainder,
    /// The critical section's entry: all that counts is the process's handle.
    Inside,
    /// `Memory::live`: the handle, and the words that are told.
    Live { file: &'static str, line: u32, column: u32 },
}

/// Where a run stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Before an operation.
    Operation { register: usize, op: Op, at: &'static Location<'static> },
    /// At a merge point, and what counts there.
    Merge(Merge, Vec<Piece>),
    /// A round of an `await` has failed.
    RoundFailed,
    /// The algorithm panicked.
    Panic(String),
}

/// What a run showed.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) stop: Stop,
    /// In the remainder section: all of the handle.
    pub(crate) handle: Vec<Piece>,
    /// What the process said after the script's last entry.
    pub(crate) remarks: Vec<Remark>,
    pub(crate) phase: Phase,
    pub(crate) session: u64,
    /// The script's last entry ended an `await`.
    pub(crate) passed: bool,
    /// The stop is inside an `await`: how many entries of the script belong to its present round.
    pub(crate) round: Option<usize>,
}

/// Runs process `p` along `script`, on a lock made afresh.
pub(crate) fn execute(
    subject: &Subject,
    processes: usize,
    p: usize,
    script: &[Cue<Val>],
) -> Outcome {
    let (joined, plan) = context::set_up(|| (subject.make)(processes));
    let mut joined = joined.expect("the same lock was made before, to know its layout");
    let me = &mut joined[p];
    let script_here = script.iter().map(|&cue| unpacked(cue, &plan)).collect();
    let place = Cell::new((Phase::Remainder, 0));

    let (result, run) = context::run(Run::along(script_here, &plan), || {
        loop {
            place.set((Phase::Remainder, 0));
            let session = match context::with_run(Run::next) {
                Some(Cue::Request(session)) => session,
                Some(other) => unreachable!("{other:?} in the remainder section"),
                None => return,
            };
            place.set((Phase::Entering, session));
            me.enter(session);
            place.set((Phase::Inside, session));
            match context::with_run(Run::next) {
                Some(Cue::Pass) => context::with_run(|run| run.answered = 0),
                Some(other) => unreachable!("{other:?} on entry to the critical section"),
                None => return,
            }
            place.set((Phase::Exiting, session));
            me.exit();
        }
    });

    let (mut phase, session) = place.get();
    if phase == Phase::Exiting && run.answered == 0 {
        phase = Phase::Inside;
    }
    let handle = |pieces: &mut Vec<Piece>| mention(&me.handle(), &plan, pieces);
    let mut left = Vec::new();
    let stop = match (result, run.halt) {
        (Err(message), _) => Stop::Panic(message),
        (Ok(Some(())), _) if phase == Phase::Remainder => {
            let mut pieces = Vec::new();
            me.inspect(&mut |name, word| {
                pieces.push(Piece::Text(format!("{name}=")));
                pieces.push(piece(pack(word, &plan)));
            });
            handle(&mut left);
            Stop::Merge(Merge::Remainder, pieces)
        }
        (Ok(Some(())), _) => {
            let mut pieces = Vec::new();
            handle(&mut pieces);
            Stop::Merge(Merge::Inside, pieces)
        }
        (Ok(None), Some(Halt::Operation(Access { register, operation, at }))) => {
            match operation.try_map(|word| try_pack(word, &plan)) {
                Ok(op) => Stop::Operation { register, op, at },
                // As where the code itself checks its arithmetic.
                Err(why) => Stop::Panic(format!("{at}: {why}")),
            }
        }
        (Ok(None), Some(Halt::Live { words, at })) => {
            let mut pieces = words.iter().map(|&word| piece(pack(word, &plan))).collect();
            handle(&mut pieces);
            let (line, column) = (at.line(), at.column());
            Stop::Merge(Merge::Live { file: at.file(), line, column }, pieces)
        }
        (Ok(None), Some(Halt::RoundFailed)) => Stop::RoundFailed,
        (Ok(None), None) => unreachable!("a run that leaves says where"),
    };
    let round = run.round.map(|began| script.len() - began);
    let (remarks, passed) = (run.remarks, run.passed);
    Outcome { stop, handle: left, remarks, phase, session, passed, round }
}

/// The cue with its object where it lies in this run.
fn unpacked(cue: Cue<Val>, plan: &Plan) -> Cue {
    match cue {
        Cue::Value(value) => Cue::Value(unpack(value, plan)),
        Cue::Done => Cue::Done,
        Cue::Swapped(swapped) => Cue::Swapped(swapped),
        Cue::Pass => Cue::Pass,
        Cue::Request(session) => Cue::Request(session),
    }
}

fn piece(value: Val) -> Piece {
    value.as_object().map_or_else(|| Piece::Text(format!("{value:?},")), Piece::Object)
}

/// Cuts `text` at the addresses it mentions.
fn mention(text: &str, plan: &Plan, pieces: &mut Vec<Piece>) {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("0x") {
        let digits = rest[at + 2..].find(|c: char| !c.is_ascii_hexdigit());
        let end = digits.map_or(rest.len(), |digits| at + 2 + digits);
        let address = usize::from_str_radix(&rest[at + 2..end], 16).ok();
        if let Some(object) = address.and_then(|address| object_at(address, plan)) {
            plain.push_str(&rest[..at]);
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
            pieces.push(Piece::Object(object));
        } else {
            plain.push_str(&rest[..end]);
        }
        rest = &rest[end..];
    }
    plain.push_str(rest);
    pieces.push(Piece::Text(plain));
}
