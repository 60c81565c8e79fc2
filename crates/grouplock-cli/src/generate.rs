//! `grouplock completions` and `grouplock man`.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::exit;
use crate::output::print;

/// The shell.
#[derive(Debug, Args)]
pub(crate) struct CompletionArguments {
    /// The shell that needs the completions.
    shell: Shell,
}

/// The destination.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Write a page for each command into this directory, which must exist. Default: print
    /// grouplock(1).
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
        return match page(&program, "grouplock") {
            Ok(page) => print(&String::from_utf8_lossy(&page)),
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

/// Writes a page for the command and for each of its subcommands.
fn write_pages(
    command: &Command,
    name: &str,
    directory: &Path,
) -> Result<(), (PathBuf, io::Error)> {
    let path = directory.join(format!("{name}.1"));
    let written = page(command, name).and_then(|page| fs::write(&path, page));
    written.map_err(|error| (path, error))?;
    command
        .get_subcommands()
        .try_for_each(|sub| write_pages(sub, &format!("{name}-{}", sub.get_name()), directory))
}

/// A manual page: the options from the parser, and the sections below.
fn page(command: &Command, name: &str) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).title(name.to_owned()).render(&mut page)?;
    for section in SECTIONS.iter().filter(|section| section.of.contains(&name)) {
        writeln!(page, ".SH \"{}\"", section.title)?;
        for (term, text) in section.items {
            // A term and its meaning. A backslash, or a dot at the beginning, would be a command of
            // roff.
            writeln!(page, ".TP\n\\fB{}\\fR\n{text}", term.replace('-', "\\-"))?;
        }
    }
    Ok(page)
}

/// A section of manual pages that the parser does not know.
struct Section {
    title: &'static str,
    /// The pages that have it.
    of: &'static [&'static str],
    items: &'static [(&'static str, &'static str)],
}

const SECTIONS: &[Section] = &[
    Section {
        title: "EXIT STATUS",
        of: &["grouplock", "grouplock-run"],
        items: &[
            (
                "the command's",
                "The command ran. If a signal ended it, run ends by the same signal. Shells show that as 128 + n.",
            ),
            ("123", "The holding was lost while the command ran."),
            ("124", "Not admitted in time; --conflict-exit-code replaces it."),
            ("125", "Failure of grouplock itself, wrong arguments included."),
            ("126", "The command cannot be run."),
            ("127", "The command was not found."),
        ],
    },
    Section {
        title: "EXIT STATUS",
        of: &["grouplock-acquire"],
        items: &[
            ("0", "The room is held, and the token was printed."),
            ("124", "Not admitted in time; --conflict-exit-code replaces it."),
            ("125", "Failure of grouplock itself, wrong arguments included."),
            ("by a signal", "The signal ended the wait."),
            ("128 + n", "Signal n ended the wait of its keeper."),
        ],
    },
    Section {
        title: "EXIT STATUS",
        of: &["grouplock-enter"],
        items: &[
            ("0", "The descriptor keeps the holding."),
            ("124", "Not admitted in time; --conflict-exit-code replaces it."),
            ("125", "Failure of grouplock itself, wrong arguments and descriptors included."),
            ("by a signal", "The signal ended the wait."),
        ],
    },
    Section {
        title: "EXIT STATUS",
        of: &["grouplock-release", "grouplock-held", "grouplock-leave"],
        items: &[
            ("0", "It was held."),
            ("123", "It is no longer held: it was released or lost, or its keeper has ended."),
            ("125", "Failure of grouplock itself, wrong arguments included."),
        ],
    },
    Section {
        title: "EXIT STATUS",
        of: &[
            "grouplock-status",
            "grouplock-top",
            "grouplock-path",
            "grouplock-remove",
            "grouplock-doctor",
        ],
        items: &[
            ("0", "It worked; for doctor, nothing is wrong."),
            ("1", "Only of doctor: something is wrong."),
            ("125", "Failure of grouplock itself, wrong arguments included."),
        ],
    },
    Section {
        title: "ENVIRONMENT",
        of: &["grouplock", "grouplock-run", "grouplock-enter", "grouplock-acquire"],
        items: &[("GROUPLOCK_AT", "The default of --at.")],
    },
    Section {
        title: "ENVIRONMENT OF THE COMMAND",
        of: &["grouplock-run"],
        items: &[
            ("GROUPLOCK_AT", "The place, a directory as an absolute path."),
            ("GROUPLOCK_ROOM, GROUPLOCK_SESSION", "As given."),
            ("GROUPLOCK_EPOCH", "It grows with every phase. All holders of a phase have the same."),
            ("GROUPLOCK_HOLDER", "The identifier of this holder in status."),
            (
                "GROUPLOCK_HELD",
                "The holdings of this run and of the runs around it. A nested run reads it.",
            ),
            (
                "GROUPLOCK_RECOVERED",
                "Only after a death inside that nobody has acknowledged: the epoch of that phase.",
            ),
            (
                "GROUPLOCK_RECOVERED_SESSION, GROUPLOCK_RECOVERED_COMMAND",
                "The session and the command of the process that died.",
            ),
            (
                "GROUPLOCK_PREVIOUS",
                "The session that the room was set up for before, unless it was torn down.",
            ),
            ("GROUPLOCK_ROOM_2, GROUPLOCK_SESSION_2, …", "The same for the rooms of --and."),
        ],
    },
    Section {
        title: "EXAMPLES",
        of: &["grouplock", "grouplock-run"],
        items: &[
            (
                "grouplock run database backup -- pg_dump shop",
                "Backups run together, but not with a migration.",
            ),
            (
                "grouplock run --timeout 2h30m database migration -- migrate up",
                "Waits until the backups have ended, at most that long.",
            ),
            (
                "grouplock run -n -E 75 gpu0 'model A' -c 'infer < in > out'",
                "Ends with code 75 if it would have to wait for another model.",
            ),
        ],
    },
    Section {
        title: "EXAMPLES",
        of: &["grouplock-enter", "grouplock-leave", "grouplock-path"],
        items: &[
            (
                "exec 9<>\"$(grouplock path database)\"",
                "Opens the room for the script. Do not use 9>, which would empty the file.",
            ),
            (
                "grouplock enter --fd 9 database migration || exit",
                "From now on descriptor 9 keeps the holding, until the script and all its children have closed it.",
            ),
            ("grouplock leave --fd 9", "Leaves the room."),
        ],
    },
    Section {
        title: "EXAMPLES",
        of: &["grouplock-acquire", "grouplock-release", "grouplock-held"],
        items: &[
            (
                "token=$(grouplock acquire --for $$ cluster upgrade) || exit",
                "Holds the room for the script, until it ends or releases it. Commands of the script that \
                 go on after its death are not protected. Those of run and enter are.",
            ),
            ("grouplock held \"$token\" || exit", "Ends the script if the room is no longer held."),
            ("grouplock release \"$token\"", "Leaves the room, and returns after that."),
        ],
    },
];
