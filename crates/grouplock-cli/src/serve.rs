//! `grouplock serve`: one member of a GBP cluster.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use grouplock_quorum::node::{self, Config};
use tracing_subscriber::filter::LevelFilter;

use crate::exit::failed;

/// The options of `serve`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The configuration of this member; see docs/gbp-cluster.md.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Only check the configuration and the certificates.
    #[arg(long)]
    check: bool,
    /// The level of the log: error, warn, info, debug, trace or off.
    #[arg(long, value_name = "LEVEL", default_value_t = LevelFilter::INFO)]
    log: LevelFilter,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let config = match Config::read(&arguments.config) {
        Ok(config) => config,
        Err(error) => return failed(error),
    };
    if arguments.check {
        return match node::check(&config) {
            Ok(()) => {
                let file = arguments.config.display();
                let (id, members) = (config.id, config.members());
                crate::output::print(&format!("`{file}` is good: {id} of {members}\n"))
            }
            Err(error) => failed(error),
        };
    }
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .with_max_level(arguments.log)
        .init();
    let result = node::run(&config, |ready| {
        let mut out = std::io::stdout().lock();
        // The reader may be gone.
        _ = writeln!(out, "{ready}").and_then(|()| out.flush());
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(error),
    }
}
