//! One run of the real code: from joining, along a script, to the next thing it does.

use std::cell::Cell;
use std::panic::Location;

use grouplock_algorithms::memory::Word;

use crate::layout::{object_at, pack, unpack};
use crate::memory::context::{self, Answer, Entry, Halt, Operation, Plan, Remark, Run};
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

/// An entry of a script, with objects by number: addresses change from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cue {
    Done,
    Value(Val),
    Swapped(bool),
    Pass,
    Request(u64),
}

/// An operation on packed values. The objects are real ones in a run, placeholders in the automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Read,
    Write(Val),
    Fas(Val),
    Cas(Val, Val),
    Faa(u64),
    WaitFor(Val),
    AwaitCas(Val, Val),
}

impl Op {
    /// The same operation with its objects replaced; `None` if `f` knows no replacement.
    pub(crate) fn try_map(self, mut f: impl FnMut(usize) -> Option<usize>) -> Option<Self> {
        let mut map = |value: Val| match value.as_object() {
            Some(object) => f(object).map(Val::object),
            None => Some(value),
        };
        Some(match self {
            Op::Read => Op::Read,
            Op::Write(value) => Op::Write(map(value)?),
            Op::Fas(value) => Op::Fas(map(value)?),
            Op::Cas(old, new) => Op::Cas(map(old)?, map(new)?),
            Op::Faa(delta) => Op::Faa(delta),
            Op::WaitFor(value) => Op::WaitFor(map(value)?),
            Op::AwaitCas(old, new) => Op::AwaitCas(map(old)?, map(new)?),
        })
    }

    /// Whether the operation writes a register that holds `old`.
    pub(crate) fn writes(self, old: Val) -> bool {
        match self {
            Op::Read | Op::WaitFor(_) => false,
            Op::Cas(expected, _) => expected == old,
            Op::Write(_) | Op::Fas(_) | Op::Faa(_) | Op::AwaitCas(..) => true,
        }
    }

    /// Whether the operation may have to wait.
    pub(crate) fn blocks(self) -> bool {
        matches!(self, Op::WaitFor(_) | Op::AwaitCas(..))
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
pub(crate) fn execute(subject: &Subject, processes: usize, p: usize, script: &[Cue]) -> Outcome {
    let (instance, plan) = context::set_up(|| (subject.make)(processes));
    let mut instance = instance.expect("the same lock was made before, to know its layout");
    let entries = script.iter().map(|&cue| entry(cue, &plan)).collect();
    let place = Cell::new((Phase::Remainder, 0));

    let (result, run) = context::run(Run::along(entries, &plan), || {
        loop {
            place.set((Phase::Remainder, 0));
            let session = match context::with_run(Run::next) {
                Some(Entry::Request(session)) => session,
                Some(other) => unreachable!("{other:?} in the remainder section"),
                None => return,
            };
            place.set((Phase::Entering, session));
            instance.enter(p, session);
            place.set((Phase::Inside, session));
            match context::with_run(Run::next) {
                Some(Entry::Pass) => context::with_run(|run| run.answered = 0),
                Some(other) => unreachable!("{other:?} on entry to the critical section"),
                None => return,
            }
            place.set((Phase::Exiting, session));
            instance.exit(p);
        }
    });

    let (mut phase, session) = place.get();
    if phase == Phase::Exiting && run.answered == 0 {
        phase = Phase::Inside;
    }
    let handle = |pieces: &mut Vec<Piece>| mention(&instance.handle(p), &plan, pieces);
    let mut left = Vec::new();
    let stop = match (result, run.halt) {
        (Err(message), _) => Stop::Panic(message),
        (Ok(Some(())), _) if phase == Phase::Remainder => {
            let mut pieces = Vec::new();
            instance.inspect(p, &mut |name, word| {
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
        (Ok(None), Some(Halt::Operation { register, operation, at })) => match too_large(operation)
        {
            // As where the code itself checks its arithmetic.
            Some(why) => Stop::Panic(format!("{at}: {why}")),
            None => Stop::Operation { register: register as usize, op: op(operation, &plan), at },
        },
        (Ok(None), Some(Halt::Live { words, at })) => {
            let mut pieces = words.iter().map(|&word| piece(pack(word, &plan))).collect();
            handle(&mut pieces);
            let (line, column) = (at.line(), at.column());
            Stop::Merge(Merge::Live { file: at.file(), line, column }, pieces)
        }
        (Ok(None), Some(Halt::RoundFailed)) => Stop::RoundFailed,
        (Ok(None), None) => unreachable!("a run that leaves says where"),
    };
    let round = run.round.map(|(began, _)| script.len() - began);
    let (remarks, passed) = (run.remarks, run.passed);
    Outcome { stop, handle: left, remarks, phase, session, passed, round }
}

fn entry(cue: Cue, plan: &Plan) -> Entry {
    match cue {
        Cue::Done => Entry::Answer(Answer::Unit),
        Cue::Value(value) => Entry::Answer(Answer::Value(unpack(value, plan))),
        Cue::Swapped(swapped) => Entry::Answer(Answer::Swapped(swapped)),
        Cue::Pass => Entry::Pass,
        Cue::Request(session) => Entry::Request(session),
    }
}

/// Why the operation cannot be explored, if its numbers are too large.
fn too_large(operation: Operation) -> Option<String> {
    let words = match operation {
        Operation::Read | Operation::Faa(_) => return None,
        Operation::Write(word) | Operation::Fas(word) | Operation::WaitFor(word) => [word, word],
        Operation::Cas(old, new) | Operation::AwaitCas(old, new) => [old, new],
    };
    words.into_iter().find_map(|word| match word {
        Word::Number(number) => Val::checked(number).err(),
        Word::Pointer(_) => None,
    })
}

fn op(operation: Operation, plan: &Plan) -> Op {
    match operation {
        Operation::Read => Op::Read,
        Operation::Write(word) => Op::Write(pack(word, plan)),
        Operation::Fas(word) => Op::Fas(pack(word, plan)),
        Operation::Cas(old, new) => Op::Cas(pack(old, plan), pack(new, plan)),
        // Not packed: what is subtracted is a very large number that is added.
        Operation::Faa(Word::Number(delta)) => Op::Faa(delta),
        Operation::Faa(Word::Pointer(_)) => unreachable!("only numbers are added to"),
        Operation::WaitFor(word) => Op::WaitFor(pack(word, plan)),
        Operation::AwaitCas(old, new) => Op::AwaitCas(pack(old, plan), pack(new, plan)),
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
