//! `grouplock-lab report`.

use std::error::Error;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use grouplock_lab::report::{Dossier, Exploration, Plan, html};

use crate::{refuse, say};

/// Where to, and how far.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// How far to explore: `quick` (seconds) or `full` (minutes).
    #[arg(long, default_value = "quick")]
    plan: Plan,
    /// A result of `grouplock-lab check --json` to show as well; may be given several times.
    #[arg(long, value_name = "FILE")]
    trace: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let out = &arguments.out;
    // Minutes of exploring should not end in a misspelt directory: try the file first.
    let opened = fs::OpenOptions::new().create(true).append(true).open(out);
    if let Err(error) = opened {
        return refuse(&format!("cannot write {}: {error}", out.display()));
    }
    let mut traces = Vec::new();
    for path in &arguments.trace {
        match read(path) {
            Ok(exploration) => traces.push(exploration),
            Err(why) => return refuse(&format!("cannot read {}: {why}", path.display())),
        }
    }
    let mut dossier = match collect(arguments.plan) {
        Ok(dossier) => dossier,
        Err(error) => return refuse(&error.to_string()),
    };
    for exploration in traces {
        dossier.add(exploration);
    }
    if let Err(error) = fs::write(out, html::page(&dossier)) {
        return refuse(&format!("cannot write {}: {error}", out.display()));
    }
    let convicted = dossier.explorations.iter().filter(|e| e.violated.is_some()).count();
    let explored = dossier.explorations.len();
    say(&format!("{}: {explored} explorations, {convicted} counterexamples\n", out.display()));
    ExitCode::SUCCESS
}

fn read(path: &Path) -> Result<Exploration, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    serde_json::from_str(&text)
        .map_err(|error| format!("not a result of `grouplock-lab check --json`: {error}"))
}

/// Makes the explorations of `plan`, counts references, and says on a terminal how it goes.
pub(crate) fn collect(plan: Plan) -> Result<Dossier, Box<dyn Error>> {
    let shown = std::io::stderr().is_terminal();
    let show = |what: String| {
        if shown {
            eprint!("\r\x1b[K{what}");
        }
    };
    let mut dossier = Dossier::collect(&plan.tasks(), &mut |event| {
        let (task, number) = (event.task, event.done + 1);
        show(format!("[{number}/{}] {}, {} processes", event.of, task.algorithm, task.processes));
    })?;
    let (sizes, options) = plan.references();
    dossier.count_references(sizes, &options, &mut |name, processes| {
        show(format!("remote references: {name}, {processes} processes"));
    })?;
    show(String::new());
    Ok(dossier)
}
