//! `grouplock-lab table`.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use grouplock_lab::report::{Paper, Table};

use crate::report::From;
use crate::{Answer, say};

/// Which tables, and how.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The paper whose table is wanted, `maor-taubenfeld` or `he`; both if not given.
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

pub(crate) fn run(arguments: &Arguments) -> Answer {
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
