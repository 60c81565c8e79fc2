//! Single executions: drawn at random, for sizes that cannot be exhausted, or repeated from the record of who moved when.
//!
//! A sample never says that something holds. It finds violations where exhaustion does not reach, and the same seed
//! finds the same one again. Processes keep their names here: a standard form depends on the order in which local states
//! were found, and that differs from one exploration to the next.

use std::sync::atomic::Ordering;
use std::time::Instant;

use fastrand::Rng;

use super::canon::Renamed;
use super::start::Start;
use super::state::State;
use super::stepper::{Obstacle, Stepper};
use super::traces::Told;
use super::{CheckError, Options, Outcome, Turn, Verdict, Violation, checks, fits};
use crate::automaton::Trouble;
use crate::automaton::run::Phase;
use crate::subject::Subject;

/// How the next process is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Any that can move. In each run processes are more or less inclined to go on, so that some stay
    /// inside for long and others are lapped.
    Random,
    /// Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi and Nagarakatte, ASPLOS 2010): processes have random
    /// priorities, the highest moves, and at so many random steps the one that moves falls to the lowest. A
    /// violation that needs no more such changes is found with a known probability.
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
    /// What the draws depend on.
    pub seed: u64,
}

/// Draws executions of `subject` until one violates a property or there have been enough. The verdict is
/// [`Violated`](super::Verdict::Violated) or [`Limit`](super::Verdict::Limit), never that anything holds; `states` counts steps.
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
        let drawn = draw(stepper, state, options, sampling, seed, &mut choices);
        steps += choices.len() as u64;
        if drawn.is_err() {
            wrong = Some(choices);
            break;
        }
    }
    let Some(schedule) = wrong else { return Ok(start.outcome(Verdict::Limit, steps, 0, None)) };
    if let Some(because) = start.steppers[0].lie() {
        let violation = Violation::lie(because, &schedule);
        return Ok(start.outcome(Verdict::Violated, steps, 0, Some(violation)));
    }
    let repeated = replay(subject, options, &schedule)?;
    Ok(Outcome { states: steps, elapsed: began.elapsed(), ..repeated })
}

/// Repeats one execution: the verdict is `Violated` if it ends as a violation, else `Limit`, for nothing is
/// proved by that.
///
/// # Errors
/// If the sizes are out of range or the schedule asks for what cannot be done.
pub fn replay(
    subject: &Subject,
    options: &Options,
    schedule: &[Turn],
) -> Result<Outcome, CheckError> {
    let options = &fits(subject, options)?;
    let mut start = Start::of_a_walk(subject, options);
    let (stepper, initial) = (&mut start.steppers[0], start.initial.clone());
    let mut told = Told::new(stepper, subject, initial, Renamed::Nothing);
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
    let properties = start.options.properties;
    let obstacle = obstacle.or_else(|| checks::check(stepper, &told.state, properties).err());
    let violation = obstacle.map(|obstacle| match obstacle {
        Obstacle::Fault(fault) => told.violation(stepper, &[], fault),
        Obstacle::Trouble(Trouble::Liveness(because)) => Violation::lie(because, schedule),
        Obstacle::Trouble(Trouble::Trespass) => unreachable!("nobody owns a register in a walk"),
    });
    let verdict = if violation.is_some() { Verdict::Violated } else { Verdict::Limit };
    let moves = schedule.len() as u64;
    Ok(start.outcome(verdict, moves + 1, moves, violation))
}

/// Draws one execution, and notes its choices. It ends with an obstacle if it goes wrong.
fn draw(
    stepper: &mut Stepper,
    mut state: State,
    options: &Options,
    sampling: &Sampling,
    seed: u64,
    choices: &mut Vec<Turn>,
) -> Result<(), Obstacle> {
    let random = &mut Rng::with_seed(seed);
    let mut picker = Picker::new(sampling, state.procs.len(), random);
    let mut able = Vec::new();
    for step in 0..sampling.steps {
        checks::check(stepper, &state, options.properties)?;
        stepper.choices(&state, &mut able);
        let mut stuck = 0_u64;
        for p in 0..state.procs.len() {
            let idle = stepper.phase(&state, p) == Phase::Remainder;
            if !idle && stepper.is_stuck(&state, p)? {
                stuck |= 1 << p;
            }
        }
        // Deaths are seldom.
        let dies = random.u32(0..32) == 0;
        able.retain(|choice| match choice.session {
            Turn::DIE => dies,
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
    /// Higher goes first, for PCT; else how inclined a process is to be chosen.
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
        // Changes come early as often as late: most executions are over long before the last step.
        let steps = 1 << random.u32(4..=sampling.steps.max(32).ilog2());
        let changes = (0..changes).map(|_| random.usize(0..steps)).collect();
        Picker { weights, changes, pct, lowest: 0 }
    }

    fn pick(&mut self, able: &[Turn], step: usize, random: &mut Rng) -> Option<Turn> {
        if able.is_empty() {
            return None;
        }
        let weight = |choice: &Turn| self.weights[usize::from(choice.process)];
        let process = if self.pct {
            able.iter().max_by_key(|choice| weight(choice))?.process
        } else {
            // One voice for each process, however many sessions it may ask for.
            let mut sum = 0;
            let mut last = None;
            for choice in able.iter().filter(|c| last.replace(c.process) != Some(c.process)) {
                sum += weight(choice);
            }
            let mut drawn = random.i64(0..sum);
            last = None;
            let mut of_each = able.iter().filter(|c| last.replace(c.process) != Some(c.process));
            of_each
                .find(|choice| {
                    drawn -= weight(choice);
                    drawn < 0
                })?
                .process
        };
        if self.pct && self.changes.contains(&step) {
            self.lowest -= 1;
            self.weights[usize::from(process)] = self.lowest;
        } else if !self.pct && random.u32(0..64) == 0 {
            // Moods change.
            self.weights[usize::from(process)] = 1 << random.u32(0..=10);
        }
        let theirs: Vec<&Turn> = able.iter().filter(|c| c.process == process).collect();
        random.choice(theirs).copied()
    }
}
