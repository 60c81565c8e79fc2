//! `grouplock lab`.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use grouplock_algorithms::claims::Kind;
use grouplock_lab::{
    Options, Outcome, Progress, Properties, Subject, Verdict, check, registry, trace,
};
use serde_json::json;

/// What the lab can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Lists the algorithms and their claims.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Explores every interleaving of a few processes. Exits with 0 if all claims hold, 1 if one is
    /// violated, 3 if a limit came first, 2 if it was asked wrongly.
    Check(CheckArguments),
    /// Prints the tables of two papers, measured.
    Table(crate::table::Arguments),
    /// Writes one self-contained HTML page: the tables, plots, and counterexamples to step through.
    Report(crate::report::Arguments),
}

/// What to explore.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The algorithm, as `grouplock lab list` calls it.
    algorithm: String,
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
}

/// Exit code for wrong questions.
const BAD_INPUT: u8 = 2;

pub(crate) fn run(command: &Command) -> ExitCode {
    match command {
        Command::List { json } => list(*json),
        Command::Check(arguments) => explore(arguments),
        Command::Table(arguments) => crate::table::run(arguments),
        Command::Report(arguments) => crate::report::run(arguments),
    }
}

fn list(as_json: bool) -> ExitCode {
    let subjects = registry::all();
    let text = if as_json {
        let rows = subjects.iter().map(|subject| {
            json!({
                "algorithm": subject.name,
                "kind": match subject.claims.kind { Kind::Mutual => "mutual", Kind::Group => "group" },
                "source": subject.claims.source,
            })
        });
        format!("{:#}\n", serde_json::Value::Array(rows.collect()))
    } else {
        let line = |subject: &Subject| {
            let kind = match subject.claims.kind {
                Kind::Mutual => "mutual",
                Kind::Group => "group",
            };
            format!("{:<40} {kind:<7} {}\n", subject.name, subject.claims.source)
        };
        subjects.iter().map(line).collect()
    };
    say(&text);
    ExitCode::SUCCESS
}

fn explore(arguments: &CheckArguments) -> ExitCode {
    let subject = match registry::find(&arguments.algorithm) {
        Ok(subject) => subject,
        Err(nearest) => {
            let asked = &arguments.algorithm;
            return refuse(&format!("there is no algorithm {asked:?}: did you mean {nearest:?}?"));
        }
    };
    if !(arguments.memory_limit > 0.0) {
        return refuse("--memory-limit takes a number of GiB above zero");
    }
    let mut options = Options::new(&subject, arguments.processes, arguments.sessions);
    options.passages = arguments.passages;
    options.memory_limit = (arguments.memory_limit * f64::from(1 << 30)) as u64;
    if arguments.basic {
        options.properties = Properties::basic();
    }
    if std::io::stderr().is_terminal() {
        options.progress = Some(show_progress);
    }
    let outcome = match check(&subject, &options) {
        Ok(outcome) => outcome,
        Err(error) => return refuse(&error.to_string()),
    };
    if options.progress.is_some() {
        eprint!("\r\x1b[K");
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

fn as_json(
    subject: &Subject,
    arguments: &CheckArguments,
    checked: Properties,
    outcome: &Outcome,
) -> serde_json::Value {
    json!({
        "algorithm": subject.name,
        "processes": arguments.processes,
        "sessions": arguments.sessions,
        "passages": arguments.passages,
        "properties": checked.iter().collect::<Vec<_>>(),
        "states": outcome.states,
        "depth": outcome.depth,
        "seconds": outcome.elapsed.as_secs_f64(),
        "verdict": outcome.verdict,
        "property": outcome.violation.as_ref().map(|violation| violation.property),
        "because": outcome.violation.as_ref().map(|violation| &violation.because),
        "trace": outcome.violation.as_ref().map(|violation| &violation.trace),
    })
}

fn as_text(subject: &Subject, arguments: &CheckArguments, outcome: &Outcome) -> String {
    let is_mutex = subject.claims.kind == Kind::Mutual;
    let mut size = format!("{} processes", arguments.processes);
    if !is_mutex {
        size.push_str(&format!(" × {} sessions", arguments.sessions));
    }
    if let Some(passages) = arguments.passages {
        size.push_str(&format!(", {passages} passages each"));
    }
    let mut text = String::new();
    if let Some(violation) = &outcome.violation {
        text.push_str(&trace::table(&violation.trace, is_mutex));
        text.push_str(&format!("\n{}: {}\n", violation.property, violation.because));
    }
    let verdict = match outcome.verdict {
        Verdict::Holds => "all claims hold",
        Verdict::Violated => "violated",
        Verdict::Limit => "stopped at a limit; nothing was found so far",
    };
    text.push_str(&format!(
        "{}, {size}: {verdict}. {} states, depth {}, {:.1} s ({} runs of the code, {} local states)\n",
        subject.name,
        outcome.states,
        outcome.depth,
        outcome.elapsed.as_secs_f64(),
        outcome.runs,
        outcome.local_states,
    ));
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

pub(crate) fn refuse(why: &str) -> ExitCode {
    eprintln!("grouplock: {why}");
    ExitCode::from(BAD_INPUT)
}

/// Prints, and lets a closed pipe be: whoever reads no further has seen enough.
pub(crate) fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
