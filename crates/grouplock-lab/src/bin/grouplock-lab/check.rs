//! `grouplock-lab check`.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::Args;
use grouplock_algorithms::claims::Kind;
use grouplock_lab::{
    Options, Outcome, Progress, Properties, Property, Sampling, Schedule, Subject, Turn, Verdict,
    check, registry, replay, sample, trace,
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
    #[arg(long)]
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
    /// Repeat the execution in this file instead of exploring. Algorithm and sizes are taken from the file.
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
    property: String,
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
    }
    let arguments = &arguments;
    let asked = arguments.algorithm.as_deref().unwrap_or_default();
    let subject = match registry::find(asked) {
        Ok(subject) => subject,
        Err(nearest) => {
            return refuse(&format!("there is no algorithm {asked:?}: did you mean {nearest:?}?"));
        }
    };
    if !arguments.memory_limit.is_finite() || arguments.memory_limit <= 0.0 {
        return refuse("--memory-limit takes a number of GiB above zero");
    }
    let mut options = Options::new(&subject, arguments.processes, arguments.sessions);
    options.passages = arguments.passages;
    #[allow(clippy::cast_sign_loss, reason = "checked above")]
    let memory_limit = (arguments.memory_limit * f64::from(1 << 30)) as u64;
    options.memory_limit = memory_limit;
    if arguments.basic {
        options.properties = Properties::basic();
    }
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
    if let (Some(file), Some(violation)) = (&file, &outcome.violation) {
        let recording = Recording {
            algorithm: subject.name.to_owned(),
            processes: arguments.processes,
            sessions: arguments.sessions,
            passages: arguments.passages,
            property: violation.property.to_string(),
            schedule: violation.schedule.clone(),
        };
        if let Err(error) = std::fs::write(file, format!("{:#}\n", json!(recording))) {
            return refuse(&format!("{} cannot be written: {error}", file.display()));
        }
        let file = file.display();
        eprintln!("The execution is in {file}: `grouplock-lab check --replay {file}` repeats it.");
    }
    if arguments.json {
        say(&format!("{:#}\n", as_json(&subject, arguments, options.properties, &outcome)));
    } else {
        say(&as_text(&subject, arguments, &outcome));
    }
    ExitCode::from(match outcome.verdict {
        Verdict::Holds => 0,
        Verdict::Violated => 1,
        Verdict::Limit => 3,
    })
}

impl Arguments {
    fn sampling(&self, drawn: Drawn) -> Sampling {
        let schedule = match drawn {
            Drawn::Random => Schedule::Random,
            Drawn::Pct => Schedule::Pct { changes: self.changes },
        };
        Sampling { schedule, runs: self.runs, steps: self.steps, seed: self.seed }
    }
}

fn as_json(
    subject: &Subject,
    arguments: &Arguments,
    checked: Properties,
    outcome: &Outcome,
) -> serde_json::Value {
    json!({
        "algorithm": subject.name,
        "processes": arguments.processes,
        "sessions": arguments.sessions,
        "passages": arguments.passages,
        "properties": checked.iter().collect::<Vec<_>>(),
        "looked_at": outcome.looked_at.iter().collect::<Vec<_>>(),
        "in_part": outcome.in_part.iter().collect::<Vec<_>>(),
        "bounds": outcome.bounds,
        "states": outcome.states,
        "depth": outcome.depth,
        "seconds": outcome.elapsed.as_secs_f64(),
        "verdict": outcome.verdict,
        "property": outcome.violation.as_ref().map(|violation| violation.property),
        "because": outcome.violation.as_ref().map(|violation| &violation.because),
        "trace": outcome.violation.as_ref().map(|violation| &violation.trace),
    })
}

fn as_text(subject: &Subject, arguments: &Arguments, outcome: &Outcome) -> String {
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
    let verdict = match outcome.verdict {
        Verdict::Holds if arguments.basic => "mutual exclusion and deadlock freedom hold",
        Verdict::Holds if outcome.looked_at.contains(Property::DeadlockFreedom) => {
            "all that was looked at holds"
        }
        Verdict::Holds => {
            "all that was looked at holds, executions that go on for ever not among it"
        }
        Verdict::Limit if arguments.replay.is_some() => "the execution violates nothing",
        Verdict::Limit if arguments.sample.is_some() => "nothing was found, which proves nothing",
        Verdict::Violated => "violated",
        Verdict::Limit => "stopped at a limit; nothing was found so far",
    };
    let counted = if arguments.sample.is_some() { "steps" } else { "states" };
    let _ = writeln!(
        text,
        "{}, {size}: {verdict}. {} {counted}, depth {}, {:.1} s ({} runs of the code, {} local states)",
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
