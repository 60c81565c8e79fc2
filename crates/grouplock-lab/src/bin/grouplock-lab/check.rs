//! `grouplock-lab check`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use grouplock_algorithms::claims::{Claim, Kind};
use grouplock_lab::report::Task;
use grouplock_lab::{
    MemoryModel, Move, Options, Outcome, Properties, Property, Sampling, Schedule, Subject,
    Verdict, Violation, check, registry, replay, sample, trace,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{Answer, Size, read, say, show, stop_on_ctrl_c, write};

/// What to explore.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The algorithm, as `grouplock-lab list` calls it.
    #[arg(required_unless_present = "replay")]
    algorithm: Option<String>,
    #[command(flatten)]
    size: Size,
    /// How many processes die at most, if processes of the algorithm may die; any number if not
    /// given.
    #[arg(long)]
    deaths: Option<u8>,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
    /// How much memory the exploration may take, in GiB.
    #[arg(long, default_value_t = 4.0)]
    memory_limit: f64,
    /// When others see a write: `sc`, at once; `tso`, in the order in which its process wrote
    /// (x86); `pso`, a relaxed write in any order. With the last two, only mutual exclusion,
    /// deadlock, the order of service and ranges of registers are checked.
    #[arg(long, value_name = "MODEL", default_value_t, conflicts_with = "replay")]
    memory: MemoryModel,
    /// Check mutual exclusion and deadlock freedom only: fewer states.
    #[arg(long)]
    basic: bool,
    /// Check this property alone, claimed or not, and continue after a violation of another one.
    #[arg(long, value_name = "PROPERTY", conflicts_with_all = ["basic", "replay"])]
    property: Option<Property>,
    /// Draw executions at random instead of exploring all, for sizes that cannot be exhausted.
    #[arg(long, value_enum, value_name = "SCHEDULE", conflicts_with = "replay")]
    sample: Option<Drawn>,
    /// How many executions to draw.
    #[arg(long, default_value_t = 10_000, requires = "sample")]
    runs: u64,
    /// How many steps each of them takes at most.
    #[arg(long, default_value_t = 1_000, requires = "sample")]
    steps: usize,
    /// How often priorities change in an execution drawn by priority.
    #[arg(long, default_value_t = 5, requires = "sample")]
    changes: usize,
    /// The seed of the draws: the same seed draws the same executions.
    #[arg(long, default_value_t = 1, requires = "sample")]
    seed: u64,
    /// Where to write an execution that violates a property, for `--replay`. Without --json it is
    /// always written, by default to `ALGORITHM-NxM.trace.json`.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Repeat the execution in this file instead of exploring. The file gives algorithm, sizes,
    /// memory and property.
    #[arg(long, value_name = "FILE", conflicts_with = "trace")]
    replay: Option<PathBuf>,
}

/// How executions are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Drawn {
    /// Any process that can move, some more often than others.
    Random,
    /// By random priorities that change a few times (probabilistic concurrency testing).
    Pct,
}

/// An execution that can be repeated, as a file contains it.
#[derive(Debug, Serialize, Deserialize)]
struct Recording {
    #[serde(flatten)]
    task: Task,
    schedule: Vec<Move>,
}

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let recording: Option<Recording> =
        arguments.replay.as_deref().map(|file| read(file, "trace of this program")).transpose()?;
    let task = recording.as_ref().map_or_else(|| arguments.task(), |known| known.task.clone());
    if let Some(asked) = arguments.algorithm.as_ref().filter(|asked| **asked != task.algorithm) {
        Err(format!("the file is about {:?}, not about {asked:?}", task.algorithm))?;
    }
    let subject = registry::find(&task.algorithm)?;
    let options = arguments.options(&subject, &task)?;
    stop_on_ctrl_c(&options);
    let outcome = match (&recording, arguments.sample) {
        (Some(recording), _) => replay(&subject, &options, &recording.schedule),
        (None, Some(drawn)) => sample(&subject, &options, &arguments.sampling(drawn)),
        (None, None) => check(&subject, &options),
    }?;
    show("");
    let by_default = || {
        let name = format!("{}-{}x{}.trace.json", subject.name, task.processes, task.sessions);
        (!arguments.json && recording.is_none()).then(|| PathBuf::from(name))
    };
    let file = arguments.trace.clone().or_else(by_default);
    if let (Some(file), Some(violation)) = (&file, &outcome.violation) {
        record(&task, &subject, &options, violation, file)?;
    }
    let checked = outcome.answered();
    let missing = checked.missing(&subject.claims, task.property);
    // If a property is given by name, the verdict is about that property.
    let unanswered = task.property.is_some_and(|asked| missing.contains(asked));
    let verdict = match outcome.verdict {
        Verdict::Holds if unanswered => Verdict::Limit,
        verdict => verdict,
    };
    if arguments.json {
        let violation = outcome.violation.as_ref();
        let object = json!({
            "algorithm": subject.name,
            "processes": task.processes,
            "sessions": task.sessions,
            "passages": task.passages,
            "memory": task.memory_model,
            "deaths": task.deaths,
            "properties": options.properties,
            "looked_at": checked,
            "in_part": outcome.in_part,
            "not_looked_at": missing,
            "bounds": outcome.bounds,
            "buffer_full": outcome.buffer_full,
            "states": outcome.states,
            "missed": arguments.explores().then(|| outcome.missed()),
            "depth": arguments.explores().then_some(outcome.depth),
            "seconds": outcome.elapsed.as_secs_f64(),
            "verdict": verdict,
            "property": violation.map(|violation| violation.property),
            "because": violation.map(|violation| &violation.because),
            "trace": violation.map(|violation| &violation.trace),
        });
        say(&format!("{object:#}\n"));
    } else {
        say(&as_text(&subject, &task, arguments, &outcome, missing));
    }
    Ok(ExitCode::from(match verdict {
        Verdict::Holds => 0,
        Verdict::Violated => 1,
        Verdict::Limit => 3,
    }))
}

impl Arguments {
    /// Whether states are distinguished by their fingerprints.
    fn explores(&self) -> bool {
        self.sample.is_none() && self.replay.is_none()
    }

    fn task(&self) -> Task {
        let Size { processes, sessions, passages } = self.size;
        Task {
            passages,
            deaths: self.deaths,
            basic: self.basic,
            property: self.property,
            memory_model: self.memory,
            ..Task::new(self.algorithm.as_deref().unwrap_or_default(), processes, sessions)
        }
    }

    /// What to explore, and how.
    fn options(&self, subject: &Subject, task: &Task) -> Result<Options, String> {
        let memory_limit = memory_limit(self.memory_limit)?;
        let (name, model) = (subject.name, task.memory_model);
        if task.deaths.is_some() && !subject.dies {
            return Err(format!("--deaths does not apply to {name}: its processes do not die"));
        }
        if model != MemoryModel::Sc && subject.dies {
            return Err(format!(
                "--memory {model} is not explored for {name}, whose processes may die; \
                 --memory sc is"
            ));
        }
        if let Some(property) = task.property {
            if property.claim(&subject.claims) == Claim::NotApplicable {
                return Err(format!("{property} does not apply to {name}"));
            }
            if !model.checks(property) {
                return Err(format!(
                    "{property} is checked with --memory sc only, not with {model}"
                ));
            }
        }
        Ok(Options { progress: show, ..task.options(subject).memory(memory_limit) })
    }

    fn sampling(&self, drawn: Drawn) -> Sampling {
        let schedule = match drawn {
            Drawn::Random => Schedule::Random,
            Drawn::Pct => Schedule::Pct { changes: self.changes },
        };
        Sampling { schedule, runs: self.runs, steps: self.steps, seed: self.seed }
    }
}

/// So many GiB as bytes.
pub(crate) fn memory_limit(gib: f64) -> Result<u64, String> {
    if !gib.is_finite() || gib <= 0.0 {
        return Err("--memory-limit takes a number of GiB above zero".to_owned());
    }
    #[allow(clippy::cast_sign_loss, reason = "checked above")]
    Ok((gib * f64::from(1 << 30)) as u64)
}

/// Writes the execution to `file`, so that it can be repeated.
fn record(
    task: &Task,
    subject: &Subject,
    options: &Options,
    violation: &Violation,
    file: &Path,
) -> Result<(), String> {
    let Violation { property, schedule, .. } = violation;
    let (task, schedule) = (task.clone().only(*property), schedule.clone());
    write(file, &format!("{:#}\n", json!(Recording { task, schedule })))?;
    let file = file.display();
    let options = Options { properties: Properties::only(*property), ..options.clone() };
    let repeated = replay(subject, &options, &violation.schedule);
    if repeated.is_ok_and(|outcome| outcome.verdict == Verdict::Violated) {
        eprintln!("The execution is in {file}: `grouplock-lab check --replay {file}` repeats it.");
    } else {
        // The violation is infinite, or needs several executions.
        eprintln!("The execution is in {file}. Once, and by itself, it violates nothing.");
    }
    Ok(())
}

fn as_text(
    subject: &Subject,
    task: &Task,
    arguments: &Arguments,
    outcome: &Outcome,
    missing: Properties,
) -> String {
    let is_mutex = subject.claims.kind == Kind::Mutual;
    let mut size = task.options(subject).size(subject);
    if task.memory_model != MemoryModel::Sc {
        _ = write!(size, ", memory {}", task.memory_model);
    }
    match task.deaths {
        Some(deaths) => _ = write!(size, ", deaths: at most {deaths}"),
        None if subject.dies => size.push_str(", any number of deaths"),
        None => {}
    }
    let mut text = String::new();
    if let Some(violation) = &outcome.violation {
        text.push_str(&trace::table(&violation.trace, is_mutex));
        _ = writeln!(text, "\n{}: {}", violation.property, violation.because);
    }
    let verdict = match outcome.verdict {
        Verdict::Holds if missing == Properties::default() && task.property.is_none() => {
            "all claims hold".to_owned()
        }
        Verdict::Holds => {
            let checked = outcome.answered();
            let held =
                Property::CLAIMABLE.into_iter().filter(|property| checked.contains(*property));
            let held = held.collect::<Properties>().to_string();
            let held = if held.is_empty() { "nothing" } else { &held };
            format!("holds: {held}{}", outcome.in_part.tell_missing(missing))
        }
        Verdict::Limit if arguments.replay.is_some() => {
            "the execution, once and by itself, violates nothing".to_owned()
        }
        Verdict::Limit if arguments.sample.is_some() => {
            "no violation found, which proves nothing".to_owned()
        }
        Verdict::Violated => "violated".to_owned(),
        Verdict::Limit if outcome.buffer_full => {
            "a store buffer was full; no violation found with shorter ones".to_owned()
        }
        Verdict::Limit => "stopped at a limit; no violation found so far".to_owned(),
    };
    let counted = if arguments.sample.is_some() { "steps" } else { "states" };
    let explored = if arguments.explores() {
        let (missed, depth) = (outcome.missed(), outcome.depth);
        format!(" (one was missed with probability {missed:.0e}), depth {depth}")
    } else {
        String::new()
    };
    _ = writeln!(
        text,
        "{}, {size}: {verdict}. {} {counted}{explored}, {:.1} s ({} runs of the code, {} local states)",
        subject.name,
        outcome.states,
        outcome.elapsed.as_secs_f64(),
        outcome.runs,
        outcome.local_states,
    );
    for bound in &outcome.bounds {
        _ = writeln!(text, "{}: at most {} of its own steps", bound.property, bound.steps);
    }
    text
}
