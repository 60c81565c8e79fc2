//! `grouplock-lab report`.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use grouplock_lab::report::{CollectError, Dossier, Exploration, Plan, Task, html};
use grouplock_lab::rmr::RmrError;

use crate::{refuse, say};

/// Where to, and how far.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    from: From,
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
    let mut dossier = match arguments.from.dossier() {
        Ok(dossier) => dossier,
        Err(why) => return refuse(&why),
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

/// Where the findings come from.
#[derive(Debug, Args)]
pub(crate) struct From {
    /// How far to explore: `quick` (seconds) or `full` (minutes).
    #[arg(long, default_value = "quick")]
    plan: Plan,
    /// Explore nothing, and take what this file of evidence says.
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    evidence: Option<PathBuf>,
}

impl From {
    pub(crate) fn dossier(&self) -> Result<Dossier, String> {
        if let Some(file) = &self.evidence {
            return crate::evidence::read(file);
        }
        let mut dossier = collect(&self.plan.tasks()).map_err(|error| error.to_string())?;
        count(&mut dossier, self.plan, &|_| true).map_err(|error| error.to_string())?;
        Ok(dossier)
    }
}

/// Makes explorations, and says on a terminal how it goes.
pub(crate) fn collect(tasks: &[Task]) -> Result<Dossier, CollectError> {
    let dossier = Dossier::collect(tasks, &mut |event| {
        let (task, number) = (event.task, event.done + 1);
        show(&format!("[{number}/{}] {}, {} processes", event.of, task.algorithm, task.processes));
    });
    show("");
    dossier
}

/// Counts the references of the algorithms that are wanted, and says on a terminal how it goes.
pub(crate) fn count(
    dossier: &mut Dossier,
    plan: Plan,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<(), RmrError> {
    let (sizes, options) = plan.references();
    let counted = dossier.count_references(sizes, &options, wanted, &mut |name, processes| {
        show(&format!("remote references: {name}, {processes} processes"));
    });
    show("");
    counted
}

fn show(what: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{what}");
    }
}
