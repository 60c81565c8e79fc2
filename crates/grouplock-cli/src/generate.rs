//! `grouplock completions` and `grouplock man`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::exit;
use crate::plain::print;

/// Which shell.
#[derive(Debug, Args)]
pub(crate) struct CompletionArguments {
    /// The shell to complete for.
    shell: Shell,
}

/// Where to.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Write a page for each command into this directory, which must exist; else grouplock(1) goes to stdout.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn completions(arguments: &CompletionArguments, mut program: Command) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "grouplock", &mut script);
    print(&String::from_utf8_lossy(&script))
}

pub(crate) fn man(arguments: &ManArguments, program: Command) -> ExitCode {
    let Some(directory) = &arguments.out else {
        let mut page = Vec::new();
        return match Man::new(program).render(&mut page) {
            Ok(()) => print(&String::from_utf8_lossy(&page)),
            Err(error) => exit::failed(format!("the page cannot be made: {error}")),
        };
    };
    let mut program = program.disable_help_subcommand(true);
    program.build();
    match write_pages(&program, "grouplock", directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err((path, error)) => exit::failed(format!("cannot write {}: {error}", path.display())),
    }
}

/// A page for the command, and for each of its subcommands.
fn write_pages(
    command: &Command,
    name: &str,
    directory: &Path,
) -> Result<(), (PathBuf, io::Error)> {
    let path = directory.join(format!("{name}.1"));
    let mut page = Vec::new();
    let man = Man::new(command.clone()).title(name.to_owned());
    let written = man.render(&mut page).and_then(|()| fs::write(&path, &page));
    written.map_err(|error| (path, error))?;
    command
        .get_subcommands()
        .try_for_each(|sub| write_pages(sub, &format!("{name}-{}", sub.get_name()), directory))
}
