//! `grouplock-lab export`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::Args;
use grouplock_lab::export::{self, EXPORTED, ExportError};
use grouplock_lab::{Options, Properties, Property, registry};

use crate::{Answer, say, show, write};

/// What to export, and in which language.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The algorithm, as `grouplock-lab list` calls it.
    algorithm: String,
    /// How many processes.
    #[arg(long, short = 'p', default_value_t = 2)]
    processes: usize,
    /// How many sessions, for a group lock.
    #[arg(long, short = 's', default_value_t = 2)]
    sessions: u64,
    /// How many passages each process makes at most; any number if not given.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..))]
    passages: Option<u8>,
    /// As a Promela model, for Spin. There is no other language so far.
    #[arg(long, required = true)]
    promela: bool,
    /// This property alone: mutual-exclusion, deadlock-freedom, starvation-freedom or fcfs. If not given, those of them that the
    /// algorithm claims.
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
    let mut options = Options::new(&subject, arguments.processes, arguments.sessions);
    options.passages = arguments.passages;
    options.memory_limit = crate::check::memory_limit(arguments.memory_limit)?;
    options.progress = show;
    options.properties = match arguments.property {
        Some(property) if EXPORTED.contains(&property) => Properties::only(property),
        Some(property) => {
            let known = EXPORTED.map(Property::name).join(", ");
            Err(format!("{property} cannot be exported, only {known}"))?
        }
        // Nobody passes for ever where passages are bounded.
        None if arguments.passages.is_some() => {
            export::claimed(&subject).without(Property::StarvationFreedom)
        }
        None => export::claimed(&subject),
    };
    let stop = Arc::clone(&options.stop);
    let _ = ctrlc::set_handler(move || stop.store(true, Ordering::Relaxed));
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
