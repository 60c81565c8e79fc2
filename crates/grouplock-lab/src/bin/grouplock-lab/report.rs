//! `grouplock-lab report` and `grouplock-lab table`.

use std::error::Error;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use grouplock_lab::report::{CollectError, Dossier, Exploration, Paper, Plan, Table, Task, html};
use grouplock_lab::rmr::RmrError;

use crate::{Answer, read, say, show, write};

/// Where to write, and how far to explore.
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

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let out = &arguments.out;
    // Try the file first, so that a wrong path does not waste minutes of exploration.
    let opened = OpenOptions::new().create(true).append(true).open(out);
    opened.map_err(|error| format!("cannot write {}: {error}", out.display()))?;
    let traces =
        arguments.trace.iter().map(|file| read(file, "result of `grouplock-lab check --json`"));
    let traces = traces.collect::<Result<Vec<Exploration>, _>>()?;
    let mut dossier = arguments.from.dossier()?;
    for exploration in traces {
        dossier.add(exploration);
    }
    write(out, &html::page(&dossier))?;
    let convicted = dossier.explorations.iter().filter(|e| e.violated.is_some()).count();
    let explored = dossier.explorations.len();
    say(&format!("{}: {explored} explorations, {convicted} counterexamples\n", out.display()));
    Ok(ExitCode::SUCCESS)
}

/// Which tables, and how.
#[derive(Debug, Args)]
pub(crate) struct TableArguments {
    /// The paper of the table, `maor-taubenfeld` or `he`; both if not given.
    #[arg(long)]
    paper: Option<Paper>,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = Format::Markdown)]
    format: Format,
    #[command(flatten)]
    from: From,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Markdown,
    Json,
}

pub(crate) fn table(arguments: &TableArguments) -> Answer {
    let dossier = arguments.from.dossier()?;
    let papers = arguments.paper.map_or(Paper::ALL.to_vec(), |paper| vec![paper]);
    let tables: Vec<_> = papers.iter().map(|&paper| Table::measured(paper, &dossier)).collect();
    match arguments.format {
        Format::Markdown => {
            let texts: Vec<_> = tables.iter().map(Table::to_markdown).collect();
            say(&texts.join("\n"));
        }
        Format::Json => say(&format!("{:#}\n", serde_json::json!(tables))),
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the results come from.
#[derive(Debug, Args)]
pub(crate) struct From {
    /// How far to explore: `quick` (minutes) or `full` (hours).
    #[arg(long, default_value = "quick")]
    plan: Plan,
    /// Explore nothing, and use the results of this file of evidence.
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    evidence: Option<PathBuf>,
}

impl From {
    pub(crate) fn dossier(&self) -> Result<Dossier, Box<dyn Error>> {
        if let Some(file) = &self.evidence {
            return Ok(read(file, "file of evidence")?);
        }
        let mut dossier = collect(&self.plan.tasks())?;
        count(&mut dossier, self.plan, &|_| true)?;
        Ok(dossier)
    }
}

/// Makes explorations, and shows the progress on a terminal.
pub(crate) fn collect(tasks: &[Task]) -> Result<Dossier, CollectError> {
    let dossier = Dossier::collect(tasks, &mut |number, task| {
        let (of, Task { algorithm, processes, .. }) = (tasks.len(), task);
        show(&format!("[{number}/{of}] {algorithm}, {processes} processes"));
    });
    show("");
    dossier
}

/// Counts the references of the `wanted` algorithms, and shows the progress on a terminal.
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
