//! `grouplock-lab evidence` and `grouplock-lab pages`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use grouplock_lab::report::{Dossier, Plan, pages};

use crate::report::{collect, count};
use crate::{refuse, say};

/// What to find out anew, and where it is kept.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file of evidence. What it says of other algorithms is kept.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The algorithms, with whatever lock they use; all if none is named.
    #[arg(value_name = "ALGORITHM")]
    algorithms: Vec<String>,
    /// How far to explore: `quick` (seconds) or `full` (minutes).
    #[arg(long, default_value = "full")]
    plan: Plan,
    /// Explore, and keep the remote references that were counted before.
    #[arg(long)]
    no_references: bool,
    /// Count remote references, and keep what was explored before.
    #[arg(long, conflicts_with = "no_references")]
    no_explorations: bool,
}

/// Explores one task after the other, and writes the file after each: what was found is not lost if
/// the next one is interrupted.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match make(arguments) {
        Ok(evidence) => {
            let explored = evidence.explorations.len();
            let (counted, file) = (evidence.rmr.len(), arguments.file.display());
            say(&format!("{file}: {explored} explorations, {counted} counts of references\n"));
            ExitCode::SUCCESS
        }
        Err(why) => refuse(&why),
    }
}

fn make(arguments: &Arguments) -> Result<Dossier, String> {
    let file = &arguments.file;
    let mut evidence = if file.exists() { read(file)? } else { Dossier::default() };
    let named = |name: &str| {
        let plain = name.split('+').next().unwrap_or(name);
        let names = &arguments.algorithms;
        names.is_empty() || names.iter().any(|n| n == name || n == plain)
    };
    let tasks = arguments.plan.tasks();
    if let Some(unknown) =
        arguments.algorithms.iter().find(|n| !tasks.iter().any(|t| t.algorithm == **n))
    {
        return Err(format!("the plan has no algorithm {unknown:?}"));
    }
    let explored = |name: &str| named(name) && !arguments.no_explorations;
    evidence.explorations.retain(|exploration| !explored(&exploration.algorithm));
    for task in tasks.iter().filter(|task| explored(&task.algorithm)) {
        let found = collect(std::slice::from_ref(task)).map_err(|error| error.to_string())?;
        evidence.explorations.extend(found.explorations);
        write(file, &evidence)?;
    }
    if !arguments.no_references {
        evidence.rmr.retain(|point| !named(&point.algorithm));
        evidence.broken.retain(|broken| !named(&broken.algorithm));
        count(&mut evidence, arguments.plan, &named).map_err(|error| error.to_string())?;
    }
    // In the order of the plan, whichever was found out first.
    let place = |name: &str| tasks.iter().position(|task| task.algorithm == name);
    evidence.explorations.sort_by_key(|exploration| place(&exploration.algorithm));
    write(file, &evidence)?;
    Ok(evidence)
}

/// Reads a file of evidence.
pub(crate) fn read(file: &Path) -> Result<Dossier, String> {
    let text = fs::read_to_string(file)
        .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    serde_json::from_str(&text)
        .map_err(|error| format!("{} is no file of evidence: {error}", file.display()))
}

fn write(file: &Path, evidence: &Dossier) -> Result<(), String> {
    let text = serde_json::to_string_pretty(evidence).map_err(|error| error.to_string())?;
    fs::write(file, text + "\n")
        .map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// Which pages, and from what.
#[derive(Debug, Args)]
pub(crate) struct PagesArguments {
    /// The file of evidence.
    #[arg(long, value_name = "FILE")]
    evidence: PathBuf,
    /// Say which pages differ from the evidence, and change nothing. Exits with 1 if one does.
    #[arg(long)]
    check: bool,
    /// The pages, in Markdown.
    #[arg(required = true, value_name = "PAGE")]
    pages: Vec<PathBuf>,
}

pub(crate) fn pages(arguments: &PagesArguments) -> ExitCode {
    let evidence = match read(&arguments.evidence) {
        Ok(evidence) => evidence,
        Err(why) => return refuse(&why),
    };
    let mut differs = false;
    for page in &arguments.pages {
        let shown = page.display();
        let text = match fs::read_to_string(page) {
            Ok(text) => text,
            Err(error) => return refuse(&format!("cannot read {shown}: {error}")),
        };
        let filled = match pages::fill(&text, &evidence) {
            Ok(filled) => filled,
            Err(error) => return refuse(&format!("{shown}: {error}")),
        };
        if filled == text {
            continue;
        }
        differs = true;
        if arguments.check {
            say(&format!("{shown} differs from the evidence\n"));
        } else if let Err(error) = fs::write(page, filled) {
            return refuse(&format!("cannot write {shown}: {error}"));
        } else {
            say(&format!("{shown}: tables made anew\n"));
        }
    }
    ExitCode::from(u8::from(arguments.check && differs))
}
