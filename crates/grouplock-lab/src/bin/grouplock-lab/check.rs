//! `grouplock-lab check`.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::Args;
use grouplock_algorithms::claims::{Claim, Kind};
use grouplock_lab::{
    Options, Outcome, Progress, Properties, Property, Sampling, Schedule, Subject, Turn, Verdict,
    Violation, check, registry, replay, sample, trace,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{refuse, say};

/// What to explore.
#[derive(Clone, Debug, Args)]
pub(crate) struct Arguments {
    /// The algorithm, as `grouplock-lab list` calls it.
    #[arg(required_unless_present = "replay")]
    algorithm: Option<String>,
    /// How many processes.
    #[arg(long, short = 'p', default_value_t = 2)]
    processes: usize,
    /// How many sessions, for a group lock.
    #[arg(long, short = 's', default_value_t = 2)]
    sessions: u64,
    /// How many passages each process makes at most; any number if not given.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..))]
    passages: Option<u8>,
    /// The result as one JSON object.
    #[arg(long)]
    json: bool,
    /// How much memory the exploration may take, in GiB.
    #[arg(long, default_value_t = 4.0)]
    memory_limit: f64,
    /// Check mutual exclusion and deadlock freedom only: fewer states.
    #[arg(long)]
    basic: bool,
    /// Look at this property alone, claimed or not, and go on where another one is violated.
    #[arg(long, value_name = "PROPERTY", conflicts_with_all = ["basic", "replay"])]
    property: Option<Property>,
    /// Draw executions at random instead of exploring all: for sizes that cannot be exhausted.
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
    /// What the draws depend on: the same seed draws the same executions.
    #[arg(long, default_value_t = 1, requires = "sample")]
    seed: u64,
    /// Where to write the execution that violates something, for `--replay`. Without --json it is written in any case, to
    /// `ALGORITHM-NxM.trace.json` unless this says otherwise.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Repeat the execution in this file instead of exploring. Algorithm, sizes and property are taken from the file.
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

/// An execution that can be repeated, as it lies in a file.
#[derive(Debug, Serialize, Deserialize)]
struct Recording {
    algorithm: String,
    processes: usize,
    sessions: u64,
    passages: Option<u8>,
    property: Property,
    schedule: Vec<Turn>,
}

fn read(file: &Path) -> Result<Recording, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    serde_json::from_str(&text)
        .map_err(|error| format!("{} is no trace of this program: {error}", file.display()))
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let mut arguments = arguments.clone();
    let recording = match arguments.replay.as_deref().map(read).transpose() {
        Ok(recording) => recording,
        Err(why) => return refuse(&why),
    };
    if let Some(recording) = &recording {
        if let Some(asked) = &arguments.algorithm
            && *asked != recording.algorithm
        {
            return refuse(&format!(
                "{asked:?} was asked for, but the file tells of {:?}",
                recording.algorithm
            ));
        }
        arguments.algorithm = Some(recording.algorithm.clone());
        arguments.processes = recording.processes;
        arguments.sessions = recording.sessions;
        arguments.passages = recording.passages;
        arguments.property = Some(recording.property);
    }
    let arguments = &arguments;
    let asked = arguments.algorithm.as_deref().unwrap_or_default();
    let subject = match registry::find(asked) {
        Ok(subject) => subject,
        Err(nearest) => {
            return refuse(&format!("there is no algorithm {asked:?}: did you mean {nearest:?}?"));
        }
    };
    let mut options = match arguments.options(&subject) {
        Ok(options) => options,
        Err(why) => return refuse(&why),
    };
    if std::io::stderr().is_terminal() {
        options.progress = Some(show_progress);
    }
    // Ctrl-C ends the search, and what is known so far is told. Where it cannot be caught, it ends the program.
    let stop = Arc::clone(&options.stop);
    let _ = ctrlc::set_handler(move || stop.store(true, Ordering::Relaxed));
    let result = match (&recording, arguments.sample) {
        (Some(recording), _) => replay(&subject, &options, &recording.schedule),
        (None, Some(drawn)) => sample(&subject, &options, &arguments.sampling(drawn)),
        (None, None) => check(&subject, &options),
    };
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(error) => return refuse(&error.to_string()),
    };
    if options.progress.is_some() {
        eprint!("\r\x1b[K");
    }
    let by_default = || {
        let name =
            format!("{}-{}x{}.trace.json", subject.name, arguments.processes, arguments.sessions);
        (!arguments.json && recording.is_none()).then(|| PathBuf::from(name))
    };
    let file = arguments.trace.clone().or_else(by_default);
    if let (Some(file), Some(violation)) = (&file, &outcome.violation)
        && let Err(why) = arguments.record(&subject, &options, violation, file)
    {
        return refuse(&why);
    }
    let looked_at = looked_at(&outcome);
    let missing = not_looked_at(&subject, arguments.property, looked_at);
    let verdict = arguments.verdict(&outcome, &missing);
    if arguments.json {
        let violation = outcome.violation.as_ref();
        let object = json!({
            "algorithm": subject.name,
            "processes": arguments.processes,
            "sessions": arguments.sessions,
            "passages": arguments.passages,
            "properties": options.properties.iter().collect::<Vec<_>>(),
            "looked_at": looked_at.iter().collect::<Vec<_>>(),
            "in_part": outcome.in_part.iter().collect::<Vec<_>>(),
            "not_looked_at": missing,
            "bounds": outcome.bounds,
            "states": outcome.states,
            "missed": arguments.explores().then(|| outcome.missed()),
            "depth": outcome.depth,
            "seconds": outcome.elapsed.as_secs_f64(),
            "verdict": verdict,
            "property": violation.map(|violation| violation.property),
            "because": violation.map(|violation| &violation.because),
            "trace": violation.map(|violation| &violation.trace),
        });
        say(&format!("{object:#}\n"));
    } else {
        say(&as_text(&subject, arguments, &outcome, looked_at, &missing));
    }
    exit_code(verdict)
}

fn exit_code(verdict: Verdict) -> ExitCode {
    ExitCode::from(match verdict {
        Verdict::Holds => 0,
        Verdict::Violated => 1,
        Verdict::Limit => 3,
    })
}

impl Arguments {
    /// Whether states are told apart by their fingerprints.
    fn explores(&self) -> bool {
        self.sample.is_none() && self.replay.is_none()
    }

    /// What to explore, and how.
    fn options(&self, subject: &Subject) -> Result<Options, String> {
        if !self.memory_limit.is_finite() || self.memory_limit <= 0.0 {
            return Err("--memory-limit takes a number of GiB above zero".to_owned());
        }
        let mut options = Options::new(subject, self.processes, self.sessions);
        options.passages = self.passages;
        #[allow(clippy::cast_sign_loss, reason = "checked above")]
        let memory_limit = (self.memory_limit * f64::from(1 << 30)) as u64;
        options.memory_limit = memory_limit;
        if self.basic {
            options.properties = Properties::basic();
        }
        if let Some(property) = self.property {
            if property.claim(&subject.claims) == Claim::NotApplicable {
                return Err(format!("{property} means nothing for {}", subject.name));
            }
            options.properties = Properties::only(property);
        }
        Ok(options)
    }

    /// The answer: what was asked for by name was the question.
    fn verdict(&self, outcome: &Outcome, missing: &[Property]) -> Verdict {
        let unanswered = self.property.is_some_and(|asked| missing.contains(&asked));
        match outcome.verdict {
            Verdict::Holds if unanswered => Verdict::Limit,
            verdict => verdict,
        }
    }

    /// Writes the execution to `file`, from which it can be repeated.
    fn record(
        &self,
        subject: &Subject,
        options: &Options,
        violation: &Violation,
        file: &Path,
    ) -> Result<(), String> {
        let recording = Recording {
            algorithm: subject.name.to_owned(),
            processes: self.processes,
            sessions: self.sessions,
            passages: self.passages,
            property: violation.property,
            schedule: violation.schedule.clone(),
        };
        std::fs::write(file, format!("{:#}\n", json!(recording)))
            .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
        let file = file.display();
        let mut options = options.clone();
        options.properties = Properties::only(violation.property);
        let repeated = replay(subject, &options, &violation.schedule);
        if repeated.is_ok_and(|outcome| outcome.verdict == Verdict::Violated) {
            eprintln!(
                "The execution is in {file}: `grouplock-lab check --replay {file}` repeats it."
            );
        } else {
            // It would have to go on for ever, or is one of several.
            eprintln!("The execution is in {file}. Once, and by itself, it violates nothing.");
        }
        Ok(())
    }

    fn sampling(&self, drawn: Drawn) -> Sampling {
        let schedule = match drawn {
            Drawn::Random => Schedule::Random,
            Drawn::Pct => Schedule::Pct { changes: self.changes },
        };
        Sampling { schedule, runs: self.runs, steps: self.steps, seed: self.seed }
    }
}

/// The properties whose truth is known by now: those that hold, and the one that is violated.
fn looked_at(outcome: &Outcome) -> Properties {
    let violated = outcome.violation.as_ref().map(|violation| violation.property);
    outcome.looked_at.iter().chain(violated).collect()
}

/// The claims, and what was `asked` for, that are not among them.
fn not_looked_at(
    subject: &Subject,
    asked: Option<Property>,
    looked_at: Properties,
) -> Vec<Property> {
    let is_missing = |property: &Property| {
        let counts = property.claim(&subject.claims).is_claimed() || asked == Some(*property);
        counts && !looked_at.contains(*property)
    };
    Property::CLAIMABLE.into_iter().filter(is_missing).collect()
}

fn as_text(
    subject: &Subject,
    arguments: &Arguments,
    outcome: &Outcome,
    looked_at: Properties,
    missing: &[Property],
) -> String {
    let is_mutex = subject.claims.kind == Kind::Mutual;
    let mut size = format!("{} processes", arguments.processes);
    if !is_mutex {
        let _ = write!(size, " × {} sessions", arguments.sessions);
    }
    if let Some(passages) = arguments.passages {
        let _ = write!(size, ", {passages} passages each");
    }
    let mut text = String::new();
    if let Some(violation) = &outcome.violation {
        text.push_str(&trace::table(&violation.trace, is_mutex));
        let _ = writeln!(text, "\n{}: {}", violation.property, violation.because);
    }
    let names = |properties: Vec<Property>| {
        let names: Vec<_> = properties.into_iter().map(Property::name).collect();
        names.join(", ")
    };
    let verdict = match outcome.verdict {
        Verdict::Holds if missing.is_empty() && arguments.property.is_none() => {
            "all claims hold".to_owned()
        }
        Verdict::Holds => {
            let held = |property: &Property| looked_at.contains(*property);
            let in_part = |property: &Property| outcome.in_part.contains(*property);
            let (partly, not_at_all) = missing.iter().partition(|property| in_part(property));
            let held = names(Property::CLAIMABLE.into_iter().filter(held).collect());
            let mut verdict = format!("holds: {}", if held.is_empty() { "nothing" } else { &held });
            for (list, what) in [
                (partly, "in every state, but executions that go on for ever were not looked at"),
                (not_at_all, "not looked at"),
            ] {
                let list: Vec<Property> = list;
                if !list.is_empty() {
                    let _ = write!(verdict, "; {what}: {}", names(list));
                }
            }
            verdict
        }
        Verdict::Limit if arguments.replay.is_some() => {
            "the execution, once and by itself, violates nothing".to_owned()
        }
        Verdict::Limit if arguments.sample.is_some() => {
            "nothing was found, which proves nothing".to_owned()
        }
        Verdict::Violated => "violated".to_owned(),
        Verdict::Limit => "stopped at a limit; nothing was found so far".to_owned(),
    };
    let counted = if arguments.sample.is_some() { "steps" } else { "states" };
    let missed = match outcome.missed() {
        missed if arguments.explores() => {
            format!(" (one was missed with probability {missed:.0e})")
        }
        _ => String::new(),
    };
    let _ = writeln!(
        text,
        "{}, {size}: {verdict}. {} {counted}{missed}, depth {}, {:.1} s ({} runs of the code, {} local states)",
        subject.name,
        outcome.states,
        outcome.depth,
        outcome.elapsed.as_secs_f64(),
        outcome.runs,
        outcome.local_states,
    );
    for bound in &outcome.bounds {
        let _ = writeln!(text, "{}: at most {} of its own steps", bound.property, bound.steps);
    }
    text
}

fn show_progress(progress: &Progress) {
    let seconds = progress.elapsed.as_secs_f64().max(0.001);
    eprint!(
        "\r\x1b[K{} states, {:.0}/s, frontier {}, depth {}",
        progress.states,
        progress.states as f64 / seconds,
        progress.frontier,
        progress.depth
    );
}
