//! `grouplock-lab evidence` and `grouplock-lab pages`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use grouplock_lab::report::{Dossier, Plan, pages};

use crate::report::{collect, count};
use crate::{Answer, read, say, write};

const KIND: &str = "file of evidence";

/// What to explore, and where the results are kept.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file of evidence. Its results about other algorithms are kept.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The algorithms, with any lock inside; all if none is named.
    #[arg(value_name = "ALGORITHM")]
    algorithms: Vec<String>,
    /// How far to explore: `quick` (minutes) or `full` (hours).
    #[arg(long, default_value = "full")]
    plan: Plan,
    /// Explore only, and keep the remote references of the file.
    #[arg(long)]
    no_references: bool,
    /// Count remote references only, and keep the explorations of the file.
    #[arg(long, conflicts_with = "no_references")]
    no_explorations: bool,
}

/// Explores one task after the other, and writes the file after each, so that an interruption loses
/// only one.
pub(crate) fn run(arguments: &Arguments) -> Answer {
    let file = &arguments.file;
    let mut evidence = if file.exists() { read(file, KIND)? } else { Dossier::default() };
    let named = |name: &str| pages::is_named(name, &arguments.algorithms);
    let tasks = arguments.plan.tasks();
    if let Some(unknown) =
        arguments.algorithms.iter().find(|n| !tasks.iter().any(|t| t.algorithm == **n))
    {
        return Err(format!("the plan has no algorithm {unknown:?}").into());
    }
    let explored = |name: &str| named(name) && !arguments.no_explorations;
    evidence.explorations.retain(|exploration| !explored(&exploration.algorithm));
    for task in tasks.iter().filter(|task| explored(&task.algorithm)) {
        let found = collect(std::slice::from_ref(task))?;
        evidence.explorations.extend(found.explorations);
        keep(file, &evidence)?;
    }
    if !arguments.no_references {
        evidence.rmr.retain(|point| !named(&point.algorithm));
        evidence.broken.retain(|broken| !named(&broken.algorithm));
        count(&mut evidence, arguments.plan, &named)?;
    }
    // In the order of the plan.
    let place = |name: &str| tasks.iter().position(|task| task.algorithm == name);
    evidence.explorations.sort_by_key(|exploration| place(&exploration.algorithm));
    keep(file, &evidence)?;
    let (explored, counted) = (evidence.explorations.len(), evidence.rmr.len());
    let file = file.display();
    say(&format!("{file}: {explored} explorations, {counted} counts of references\n"));
    Ok(ExitCode::SUCCESS)
}

fn keep(file: &Path, evidence: &Dossier) -> Result<(), Box<dyn Error>> {
    Ok(write(file, &(serde_json::to_string_pretty(evidence)? + "\n"))?)
}

/// Which pages, and from which evidence.
#[derive(Debug, Args)]
pub(crate) struct PagesArguments {
    /// The file of evidence.
    #[arg(long, value_name = "FILE")]
    evidence: PathBuf,
    /// Print which pages differ from the evidence, and change nothing. Exits with 1 if one does.
    #[arg(long)]
    check: bool,
    /// The pages, in Markdown.
    #[arg(required = true, value_name = "PAGE")]
    pages: Vec<PathBuf>,
}

pub(crate) fn pages(arguments: &PagesArguments) -> Answer {
    let evidence = read(&arguments.evidence, KIND)?;
    let mut differs = false;
    for page in &arguments.pages {
        let shown = page.display();
        let text = std::fs::read_to_string(page);
        let text = text.map_err(|error| format!("cannot read {shown}: {error}"))?;
        let filled = pages::fill(&text, &evidence);
        let filled = filled.map_err(|error| format!("{shown}: {error}"))?;
        if filled == text {
            continue;
        }
        differs = true;
        if arguments.check {
            say(&format!("{shown} differs from the evidence\n"));
        } else {
            write(page, &filled)?;
            say(&format!("{shown}: new tables\n"));
        }
    }
    Ok(ExitCode::from(u8::from(arguments.check && differs)))
}
