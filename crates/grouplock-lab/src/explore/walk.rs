//! Single executions: drawn at random, for sizes that cannot be exhausted, or repeated from a
//! schedule.
//!
//! A sample never shows that a property holds. It finds violations at sizes that cannot be
//! exhausted, and the same seed finds the same violation again. Processes keep their names here: a
//! standard form depends on the order in which local states were found, which differs between
//! explorations.

use std::sync::atomic::Ordering;
use std::time::Instant;

use fastrand::Rng;

use super::start::Start;
use super::state::State;
use super::stepper::{Obstacle, Stepper};
use super::traces::Told;
use super::{CheckError, Move, Options, Outcome, Verdict, Violation, checks, fits};
use crate::subject::Subject;
use crate::trace::Section;

/// How the next process is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Any process that can move. In each run processes have different weights, so that some stay
    /// inside for long and others pass often.
    Random,
    /// Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi and Nagarakatte, ASPLOS
    /// 2010): processes have random priorities, and the highest moves. At some random steps the
    /// process that moves gets the lowest priority. A violation that needs no more such changes is
    /// found with a known probability.
    Pct {
        /// How many changes.
        changes: usize,
    },
}

/// How much is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// How processes are chosen.
    pub schedule: Schedule,
    /// How many executions.
    pub runs: u64,
    /// How many steps each of them takes at most.
    pub steps: usize,
    /// The seed of the draws.
    pub seed: u64,
}

/// Draws executions of `subject` until one violates a property or there are enough. The verdict is
/// [`Violated`](super::Verdict::Violated) or [`Limit`](super::Verdict::Limit), never that a
/// property holds; `states` counts steps.
///
/// # Errors
/// As [`check`](super::check).
pub fn sample(
    subject: &Subject,
    options: &Options,
    sampling: &Sampling,
) -> Result<Outcome, CheckError> {
    let options = &fits(subject, options)?;
    let mut start = Start::of_a_walk(subject, options);
    let began = Instant::now();
    let (mut steps, mut wrong) = (0, None);
    for run in 0..sampling.runs {
        if options.stop.load(Ordering::Relaxed) {
            break;
        }
        if run % 64 == 0 {
            (options.progress)(&format!("{run} of {} executions, {steps} steps", sampling.runs));
        }
        let seed = sampling.seed ^ run.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let (state, mut choices) = (start.initial.clone(), Vec::new());
        let stepper = &mut start.steppers[0];
        let drawn = draw(stepper, state, sampling, seed, &mut choices);
        steps += choices.len() as u64;
        if drawn.is_err() {
            wrong = Some(choices);
            break;
        }
    }
    let Some(schedule) = wrong else { return Ok(start.outcome(Verdict::Limit, steps, 0, None)) };
    if let Some(because) = start.steppers[0].wrong_liveness() {
        let violation = Violation::wrong_liveness(because, &schedule);
        return Ok(start.outcome(Verdict::Violated, steps, 0, Some(violation)));
    }
    let repeated = replay(subject, options, &schedule)?;
    Ok(Outcome { states: steps, elapsed: began.elapsed(), ..repeated })
}

/// Repeats one execution. The verdict is `Violated` if it ends in a violation; otherwise `Limit`,
/// because that proves nothing.
///
/// # Errors
/// If the sizes are out of range or a move of the schedule is not possible.
pub fn replay(
    subject: &Subject,
    options: &Options,
    schedule: &[Move],
) -> Result<Outcome, CheckError> {
    let options = &fits(subject, options)?;
    let mut start = Start::of_a_walk(subject, options);
    let (stepper, initial) = (&mut start.steppers[0], start.initial.clone());
    let mut told = Told::new(stepper, initial);
    let mut offered = Vec::new();
    let mut obstacle = None;
    for (i, &turn) in schedule.iter().enumerate() {
        let misfit = CheckError::Schedule(i + 1, turn.process.into());
        stepper.choices(&told.state, &mut offered);
        if !offered.contains(&turn) {
            return Err(misfit);
        }
        match told.take(stepper, turn) {
            Ok(true) => {}
            Ok(false) => return Err(misfit),
            Err(found) => {
                obstacle = Some(found);
                break;
            }
        }
    }
    let obstacle = obstacle.or_else(|| checks::check(stepper, &told.state).err());
    let violation = obstacle.map(|obstacle| match obstacle {
        Obstacle::Fault(fault) => told.violation(stepper, &[], fault),
        Obstacle::Liveness(because) => Violation::wrong_liveness(because, schedule),
        Obstacle::Trespass => unreachable!("nobody owns a register in a walk"),
    });
    let verdict = if violation.is_some() { Verdict::Violated } else { Verdict::Limit };
    let moves = schedule.len() as u64;
    Ok(start.outcome(verdict, moves + 1, moves, violation))
}

/// Draws one execution and keeps its choices. A violation is an obstacle.
fn draw(
    stepper: &mut Stepper,
    mut state: State,
    sampling: &Sampling,
    seed: u64,
    choices: &mut Vec<Move>,
) -> Result<(), Obstacle> {
    let random = &mut Rng::with_seed(seed);
    let mut picker = Picker::new(sampling, state.procs.len(), random);
    let mut able = Vec::new();
    for step in 0..sampling.steps {
        checks::check(stepper, &state)?;
        stepper.choices(&state, &mut able);
        let mut stuck = 0_u64;
        for p in 0..state.procs.len() {
            let idle = stepper.section(&state, p) == Section::Remainder;
            if !idle && stepper.is_stuck(&state, p)? {
                stuck |= 1 << p;
            }
        }
        // Deaths are rare.
        let dies = random.u32(0..32) == 0;
        able.retain(|choice| match choice.session {
            Move::DIE => dies,
            0 => stuck >> choice.process & 1 == 0,
            _ => true,
        });
        let Some(choice) = picker.pick(&able, step, random) else { return Ok(()) };
        choices.push(choice);
        stepper.take(&mut state, choice)?;
    }
    Ok(())
}

struct Picker {
    /// For PCT, the priorities; otherwise the weights of the draw.
    weights: Vec<i64>,
    changes: Vec<usize>,
    pct: bool,
    lowest: i64,
}

impl Picker {
    fn new(sampling: &Sampling, processes: usize, random: &mut Rng) -> Self {
        let (pct, changes) = match sampling.schedule {
            Schedule::Random => (false, 0),
            Schedule::Pct { changes } => (true, changes),
        };
        let mut weights: Vec<i64> = if pct {
            (1..).take(processes).collect()
        } else {
            // From one to a thousand, evenly on a logarithmic scale.
            (0..processes).map(|_| 1 << random.u32(0..=10)).collect()
        };
        random.shuffle(&mut weights);
        // Early changes are as likely as late ones: most executions end long before the last step.
        let steps = 1 << random.u32(4..=sampling.steps.max(32).ilog2());
        let changes = (0..changes).map(|_| random.usize(0..steps)).collect();
        Picker { weights, changes, pct, lowest: 0 }
    }

    fn pick(&mut self, able: &[Move], step: usize, random: &mut Rng) -> Option<Move> {
        if able.is_empty() {
            return None;
        }
        let weight = |choice: &Move| self.weights[usize::from(choice.process)];
        let process = if self.pct {
            able.iter().max_by_key(|choice| weight(choice))?.process
        } else {
            // Each process counts once, however many sessions it may request.
            let mut last = None;
            let of_each = able.iter().filter(|c| last.replace(c.process) != Some(c.process));
            let of_each: Vec<&Move> = of_each.collect();
            let mut drawn = random.i64(0..of_each.iter().map(|choice| weight(choice)).sum());
            let drawn = of_each.iter().find(|choice| {
                drawn -= weight(choice);
                drawn < 0
            });
            drawn?.process
        };
        if self.pct && self.changes.contains(&step) {
            self.lowest -= 1;
            self.weights[usize::from(process)] = self.lowest;
        } else if !self.pct && random.u32(0..64) == 0 {
            // Weights change sometimes.
            self.weights[usize::from(process)] = 1 << random.u32(0..=10);
        }
        let theirs: Vec<&Move> = able.iter().filter(|c| c.process == process).collect();
        random.choice(theirs).copied()
    }
}
