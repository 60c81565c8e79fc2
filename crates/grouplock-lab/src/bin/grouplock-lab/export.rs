//! `grouplock-lab export`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use grouplock_lab::export::{self, EXPORTED, ExportError};
use grouplock_lab::{Options, Properties, Property, registry};

use crate::{Answer, Size, say, show, stop_on_ctrl_c, write};

/// What to export, and in which language.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The algorithm, as `grouplock-lab list` calls it.
    algorithm: String,
    #[command(flatten)]
    size: Size,
    /// Write a Promela model, for Spin. There is no other language so far.
    #[arg(long, required = true)]
    promela: bool,
    /// Export this property alone: mutual-exclusion, deadlock-freedom, starvation-freedom or fcfs.
    /// If not given, those of them that the algorithm claims.
    #[arg(long, value_name = "PROPERTY")]
    property: Option<Property>,
    /// How much memory the search for the edges of the automaton may take, in GiB.
    #[arg(long, default_value_t = 4.0)]
    memory_limit: f64,
    /// Where to write the model; to standard output if not given.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let subject = registry::find(&arguments.algorithm)?;
    let Size { processes, sessions, passages } = arguments.size;
    let mut options = Options::new(&subject, processes, sessions);
    options.passages = passages;
    options.memory_limit = crate::check::memory_limit(arguments.memory_limit)?;
    options.progress = show;
    options.properties = match arguments.property {
        Some(property) if EXPORTED.contains(&property) => Properties::only(property),
        Some(property) => {
            let known = EXPORTED.map(Property::name).join(", ");
            Err(format!("{property} cannot be exported, only {known}"))?
        }
        // If passages are bounded, executions are finite.
        None if passages.is_some() => {
            export::claimed(&subject).without(Property::StarvationFreedom)
        }
        None => export::claimed(&subject),
    };
    stop_on_ctrl_c(&options);
    let model = export::promela(&subject, &options);
    show("");
    match model {
        Ok(model) => match &arguments.out {
            Some(file) => write(file, &model)?,
            None => say(&model),
        },
        Err(ExportError::Limit) => {
            eprintln!("grouplock-lab: {}", ExportError::Limit);
            return Ok(ExitCode::from(3));
        }
        Err(why) => Err(why)?,
    }
    Ok(ExitCode::SUCCESS)
}
