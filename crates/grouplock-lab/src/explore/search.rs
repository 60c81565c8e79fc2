//! Breadth first, level by level, on several threads.
//!
//! The search keeps only the fingerprint of a state, and the choice that first led to it with the
//! state before. It keeps the states of the present level whole. So no trace has fewer
//! choices than that of the first violation found (a choice may be several steps of one process),
//! and little memory is needed for each state.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustc_hash::FxHashMap;

use super::bounds::{NotedStep, longest};
use super::canon::standard;
use super::checks;
use super::fairness;
use super::start::{Compiled, Start};
use super::state::State;
use super::stepper::{Fault, Obstacle, Stepper};
use super::traces::Told;
use super::visited::{Visited, fingerprint};
use super::{Move, Options, Outcome, StepBound, Trespass, Verdict, attempt, lock};
use crate::property::{Properties, Property};
use crate::subject::Subject;

/// The place of a state in the logs of the workers: the worker is in the upper bits.
type LogPlace = u64;
const INDEX_BITS: u32 = 40;
const NOWHERE: LogPlace = (1 << 48) - 1;

/// A log entry: the place of the state before, and the choice, in one word.
#[derive(Clone, Copy)]
struct Link(u64);

impl Link {
    fn new(before: LogPlace, choice: Move) -> Self {
        Link(before | u64::from(choice.process) << 48 | u64::from(choice.session) << 56)
    }

    fn before(self) -> LogPlace {
        self.0 & NOWHERE
    }

    fn choice(self) -> Move {
        Move { process: (self.0 >> 48) as u8, session: (self.0 >> 56) as u8 }
    }
}

/// States in a row, each with its place.
#[derive(Default)]
struct Level {
    words: Vec<u32>,
    /// Where each state ends in `words`, and its place.
    states: Vec<(usize, LogPlace)>,
}

impl Level {
    fn push(&mut self, row: &[u32], place: LogPlace) {
        self.words.extend_from_slice(row);
        self.states.push((self.words.len(), place));
    }

    fn get(&self, i: usize) -> (&[u32], LogPlace) {
        let begin = if i == 0 { 0 } else { self.states[i - 1].0 };
        let (end, place) = self.states[i];
        (&self.words[begin..end], place)
    }

    fn bytes(&self) -> u64 {
        (self.words.capacity() * 4 + self.states.capacity() * 16) as u64
    }
}

enum End {
    /// In the state at this place, or in the step from it.
    Found(Obstacle, LogPlace, Option<Move>),
    Limit,
}

struct Search<'a> {
    options: &'a Options,
    visited: Visited,
    over: AtomicBool,
    end: Mutex<Option<End>>,
    /// The noted steps: when and where each was first taken.
    walked: Mutex<FxHashMap<NotedStep, (usize, LogPlace, Move)>>,
    /// The first panic. It ends one execution, not the search: a lock that panics has often
    /// violated another property before, which is a better report. So the search continues for a
    /// while.
    panic: Mutex<Option<(Fault, LogPlace, Move, u64)>>,
}

/// Explores, at first without the properties whose monitors multiply states: that finds other
/// violations sooner.
pub(super) fn run(subject: &Subject, options: &Options) -> Outcome {
    let began = Instant::now();
    let compiled = Compiled::new(subject, options);
    let order = options.properties.and(Properties::ORDER) != Properties::default();
    let mut held = Properties::default();
    if order && options.properties.contains(Property::MutualExclusion) {
        let mut first = options.clone();
        first.properties = Properties::basic().and(options.properties);
        let outcome = attempt(&first, |options| explore(subject, options, &compiled));
        if outcome.verdict != Verdict::Holds {
            return outcome;
        }
        held = held.with(Property::MutualExclusion);
    }
    let mut outcome = attempt(options, |options| explore(subject, options, &compiled));
    if outcome.verdict == Verdict::Holds {
        outcome = fairness::look(subject, options, &compiled, outcome);
    } else {
        outcome.checked = held;
    }
    Outcome { elapsed: began.elapsed(), ..outcome }
}

pub(super) fn explore(
    subject: &Subject,
    options: &Options,
    compiled: &Compiled,
) -> Result<Outcome, Trespass> {
    let began = Instant::now();
    let mut start = Start::new(subject, options, compiled);
    let mut steppers = std::mem::take(&mut start.steppers);
    for stepper in &mut steppers {
        stepper.notes_steps = true;
    }
    let search = Search {
        options,
        visited: Visited::default(),
        over: AtomicBool::new(false),
        end: Mutex::new(None),
        walked: Mutex::default(),
        panic: Mutex::new(None),
    };
    let mut logs: Vec<Vec<Link>> = vec![Vec::new(); steppers.len()];
    let mut row = Vec::new();
    start.initial.pack(&mut row);
    search.visited.insert(fingerprint(&row));
    logs[0].push(Link::new(NOWHERE, Move { process: 0, session: 0 }));
    let mut level = Level::default();
    level.push(&row, 0);
    let mut levels = vec![level];
    let mut depth = 0;
    let mut measured = (0, Vec::new());

    loop {
        let frontier: usize = levels.iter().map(|level| level.states.len()).sum();
        let (states, seconds) = (search.visited.count(), began.elapsed().as_secs_f64().max(0.001));
        let speed = states as f64 / seconds;
        (options.progress)(&format!(
            "{states} states, {speed:.0}/s, frontier {frontier}, depth {depth}"
        ));
        levels = search.level(&mut steppers, &mut logs, &levels);
        search.measure(&mut steppers[0], &mut measured);
        if search.over.load(Ordering::Relaxed) || levels.iter().all(|l| l.states.is_empty()) {
            break;
        }
        depth += 1;
    }

    let states = search.visited.count();
    let panic = lock(&search.panic).take();
    let mut end = lock(&search.end).take();
    if let (None | Some(End::Limit), Some((fault, place, choice, _))) = (&end, panic) {
        end = Some(End::Found(Obstacle::Fault(fault), place, Some(choice)));
    }
    let (fault, place, last) = match end {
        None | Some(End::Limit) => {
            let buffer_full = steppers.iter().any(|stepper| stepper.buffer_full);
            let all_seen = end.is_none() && !buffer_full;
            let verdict = if all_seen { Verdict::Holds } else { Verdict::Limit };
            let mut outcome = start.outcome(verdict, states, depth, None);
            outcome.buffer_full = buffer_full;
            if verdict == Verdict::Holds {
                (outcome.checked, outcome.bounds) = (options.properties, measured.1);
                // Without the end of a doorway, or without a range, nothing was checked.
                if !steppers.iter().any(|stepper| stepper.saw_doorway) {
                    outcome.checked = outcome.checked.minus(Properties::ORDER);
                }
                if options.passages.is_some() && !steppers[0].knows_a_range() {
                    outcome.checked = outcome.checked.without(Property::BoundedRegisters);
                }
                outcome.bounds.retain(|bound| outcome.checked.contains(bound.property));
            }
            return Ok(outcome);
        }
        Some(End::Found(obstacle, place, last)) => match obstacle {
            Obstacle::Trespass => return Err(Trespass),
            Obstacle::Liveness(because) => {
                (Fault { property: Property::DeadPrivate, because }, place, last)
            }
            Obstacle::Fault(fault) => (fault, place, last),
        },
    };
    let mut choices: Vec<Move> = last.into_iter().collect();
    let mut at = place;
    loop {
        let link = logs[(at >> INDEX_BITS) as usize][(at & ((1 << INDEX_BITS) - 1)) as usize];
        if link.before() == NOWHERE {
            break;
        }
        choices.push(link.choice());
        at = link.before();
    }
    choices.reverse();
    let told = Told::new(&steppers[0], start.initial.clone());
    let violation = told.violation(&mut steppers[0], &choices, fault);
    Ok(start.outcome(Verdict::Violated, states, depth, Some(violation)))
}

/// After a panic the search continues until it has this many times as many states.
const LOOK_ON: u64 = 4;

const CHUNK: usize = 128;

impl Search<'_> {
    /// Expands every state of `levels` (one part per worker), and returns the next level likewise.
    fn level(
        &self,
        steppers: &mut [Stepper],
        logs: &mut [Vec<Link>],
        levels: &[Level],
    ) -> Vec<Level> {
        let total: usize = levels.iter().map(|level| level.states.len()).sum();
        let logged: u64 = logs.iter().map(|log| log.capacity() as u64 * 8).sum();
        let held: u64 = levels.iter().map(Level::bytes).sum::<u64>() + logged;
        let taken = AtomicUsize::new(0);
        let work = |worker: usize, stepper: &mut Stepper, log: &mut Vec<Link>| {
            let mut next = Level::default();
            loop {
                let from = taken.fetch_add(CHUNK, Ordering::Relaxed);
                if from >= total || self.over.load(Ordering::Relaxed) {
                    return next;
                }
                let workers = self.options.workers;
                self.watch(held + next.bytes() * workers as u64 + stepper.bytes(workers));
                for i in from..(from + CHUNK).min(total) {
                    let (row, place) = nth(levels, i);
                    if let Err(end) = self.expand(stepper, worker, log, &mut next, row, place) {
                        self.finish(end);
                        return next;
                    }
                }
            }
        };
        // A second thread does not pay for a small level.
        if steppers.len() == 1 || total < 2 * CHUNK {
            return vec![work(0, &mut steppers[0], &mut logs[0])];
        }
        std::thread::scope(|scope| {
            let work = &work;
            let workers: Vec<_> = steppers
                .iter_mut()
                .zip(logs)
                .enumerate()
                .map(|(worker, (stepper, log))| scope.spawn(move || work(worker, stepper, log)))
                .collect();
            workers.into_iter().map(|w| w.join().expect("a worker panicked")).collect()
        })
    }

    /// Ends the search if it takes too much memory, is stopped from outside, or has continued long
    /// enough since a panic.
    fn watch(&self, held: u64) {
        let panic = lock(&self.panic);
        if held + self.visited.bytes() > self.options.memory_limit
            || self.options.stop.load(Ordering::Relaxed)
            || panic.as_ref().is_some_and(|(.., at)| self.visited.count() > at * LOOK_ON)
        {
            self.finish(End::Limit);
        }
    }

    /// Updates the bounds if there are new steps. A circle ends the search: the step that closes it
    /// is the last of its steps that was found.
    fn measure(&self, stepper: &mut Stepper, measured: &mut (usize, Vec<StepBound>)) {
        let walked = lock(&self.walked);
        if self.over.load(Ordering::Relaxed) || walked.len() == measured.0 {
            return;
        }
        *measured = (walked.len(), Vec::new());
        for property in self.options.properties.and(Properties::BOUNDING).iter() {
            let of = walked.keys().filter(|step| step.0 == property);
            let steps: Vec<_> = of.map(|&(_, from, to)| (from, to)).collect();
            match longest(&steps) {
                Ok(steps) => measured.1.push(StepBound { property, steps: steps as u64 }),
                Err(circle) => {
                    let steps = circle.windows(2);
                    let steps = steps.filter_map(|step| walked.get(&(property, step[0], step[1])));
                    let last = steps.max_by_key(|step| step.0);
                    let &(_, place, choice) = last.expect("a circle has steps");
                    let fault = stepper.tell_circle(property, &circle);
                    return self.finish(End::Found(Obstacle::Fault(fault), place, Some(choice)));
                }
            }
        }
    }

    /// A fault replaces a limit, and the first fault counts.
    fn finish(&self, end: End) {
        let mut slot = lock(&self.end);
        if slot.is_none() || matches!(*slot, Some(End::Limit)) {
            *slot = Some(end);
        }
        self.over.store(true, Ordering::Relaxed);
    }

    fn expand(
        &self,
        stepper: &mut Stepper,
        worker: usize,
        log: &mut Vec<Link>,
        next: &mut Level,
        row: &[u32],
        place: LogPlace,
    ) -> Result<(), End> {
        let layout = Arc::clone(&stepper.layout);
        let state = State::unpack(row, layout.registers.len());
        checks::check(stepper, &state).map_err(|obstacle| End::Found(obstacle, place, None))?;
        let mut choices = Vec::with_capacity(16);
        stepper.choices(&state, &mut choices);
        let mut after = Vec::with_capacity(row.len() + 8);
        let mut successor = state.clone();
        for choice in choices {
            successor.clone_from(&state);
            let moved = match stepper.take(&mut successor, choice) {
                Ok(moved) => moved,
                // If nothing is checked, it ends one execution and no more.
                Err(Obstacle::Fault(_)) if self.options.properties == Properties::default() => {
                    continue;
                }
                Err(Obstacle::Fault(fault)) if fault.property == Property::NoPanic => {
                    let mut panic = lock(&self.panic);
                    panic.get_or_insert_with(|| (fault, place, choice, self.visited.count()));
                    continue;
                }
                Err(obstacle) => return Err(End::Found(obstacle, place, Some(choice))),
            };
            if !stepper.newly_noted.is_empty() {
                let mut walked = lock(&self.walked);
                for step in stepper.newly_noted.drain(..) {
                    let found = (walked.len(), place, choice);
                    walked.entry(step).or_insert(found);
                }
            }
            if !moved || successor == state {
                continue;
            }
            successor = standard(successor, &layout, stepper.renamed);
            successor.pack(&mut after);
            if self.visited.insert(fingerprint(&after)) {
                let here = (worker as u64) << INDEX_BITS | log.len() as u64;
                log.push(Link::new(place, choice));
                next.push(&after, here);
            }
        }
        Ok(())
    }
}

/// State number `i` of a level in parts.
fn nth(levels: &[Level], mut i: usize) -> (&[u32], LogPlace) {
    for level in levels {
        if i < level.states.len() {
            return level.get(i);
        }
        i -= level.states.len();
    }
    unreachable!("states are numbered below the total")
}
