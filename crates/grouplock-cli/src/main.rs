//! The program `grouplock`.

mod demo;
mod entering;
mod events;
mod exit;
mod generate;
mod inspect;
#[cfg_attr(all(feature = "etcd", feature = "gbp", feature = "top"), cfg(test))]
mod missing_feature;
mod output;
mod place;
mod remove;
mod run;
mod script;
#[cfg(feature = "gbp")]
mod serve;
mod system;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

#[cfg(feature = "top")]
use inspect::top;
use inspect::{doctor, status};
use script::{acquire, descriptor, release};

/// Locks with sessions: commands in rooms.
///
/// Commands of the same session are inside a room together. Different sessions exclude each other.
#[derive(Debug, Parser)]
#[command(name = "grouplock", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows what a room does, in a few seconds: two jobs share it, a third waits.
    Demo,
    /// Runs a command inside a room.
    Run(run::Arguments),
    /// Shows the holders and the waiters of rooms.
    Status(status::Arguments),
    /// Shows the rooms live, rooms in use first.
    ///
    /// Keys: the arrows choose a room, page up and page down scroll its details, Ctrl-Z stops, q
    /// ends.
    #[cfg(feature = "top")]
    Top(top::Arguments),
    #[cfg(not(feature = "top"))]
    #[command(hide = true)]
    Top(missing_feature::Arguments),
    /// Enters a room. An open descriptor of the script keeps the holding.
    Enter(descriptor::EnterArguments),
    /// Leaves the holding that a descriptor keeps.
    Leave(descriptor::LeaveArguments),
    /// Prints the path of the room's file, for `enter`. Creates the room if it does not exist.
    Path(descriptor::PathArguments),
    /// Enters a room. A process in the background keeps the holding until `release`.
    Acquire(acquire::Arguments),
    /// Leaves the holding that `acquire` has made.
    Release(release::Arguments),
    /// Exits with 0 if the holding of `acquire` or `enter` is still held, and with 123 if not.
    Held(release::HeldArguments),
    /// Removes a room that has no holders and no waiters.
    Remove(remove::Arguments),
    /// Checks the place where rooms live. Exits with 1 if something is wrong.
    Doctor(doctor::Arguments),
    /// Runs one member of a GBP cluster until SIGTERM or SIGINT.
    ///
    /// On SIGHUP it reads its certificates again. When it listens, it prints one line that begins
    /// with `ready:`. Its log goes to stderr. Exit codes: 0 after SIGTERM or SIGINT, 125 if it
    /// cannot start or its disk fails.
    #[cfg(feature = "gbp")]
    Serve(serve::Arguments),
    #[cfg(not(feature = "gbp"))]
    #[command(hide = true)]
    Serve(missing_feature::Arguments),
    /// Prints completions for a shell.
    Completions(generate::CompletionArguments),
    /// Prints the manual page, or writes one for each command.
    Man(generate::ManArguments),
}

/// Runs a command inside a room.
///
/// `grouplock run` is parsed by its own parser. To build the parser of all commands takes longer
/// than to enter a room.
#[derive(Debug, Parser)]
#[command(name = "run", bin_name = "grouplock run", long_about = "Runs a command inside a room.")]
struct RunAlone {
    #[command(flatten)]
    arguments: run::Arguments,
}

fn parse() -> Result<Command, clap::Error> {
    if std::env::args_os().nth(1).is_some_and(|command| command == "run") {
        let alone = RunAlone::try_parse_from(std::env::args_os().skip(1))?;
        return Ok(Command::Run(alone.arguments));
    }
    Arguments::try_parse().map(|arguments| arguments.command)
}

fn main() -> ExitCode {
    let command = match parse() {
        Ok(command) => command,
        Err(error) => return refuse(&error),
    };
    match command {
        Command::Demo => demo::run(),
        Command::Run(arguments) => run::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        #[cfg(feature = "top")]
        Command::Top(arguments) => top::run(&arguments),
        #[cfg(not(feature = "top"))]
        Command::Top(_) => exit::failed(missing_feature::needs("`grouplock top`", "top")),
        Command::Enter(arguments) => descriptor::enter(&arguments),
        Command::Leave(arguments) => descriptor::leave(&arguments),
        Command::Path(arguments) => descriptor::path(&arguments),
        Command::Acquire(arguments) => acquire::run(&arguments),
        Command::Release(arguments) => release::run(&arguments),
        Command::Held(arguments) => release::held(&arguments),
        Command::Remove(arguments) => remove::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        #[cfg(feature = "gbp")]
        Command::Serve(arguments) => serve::run(&arguments),
        #[cfg(not(feature = "gbp"))]
        Command::Serve(_) => exit::failed(missing_feature::needs("`grouplock serve`", "gbp")),
        Command::Completions(arguments) => generate::completions(&arguments, Arguments::command()),
        Command::Man(arguments) => generate::man(&arguments, Arguments::command()),
    }
}

/// Reports what is wrong with the arguments, or prints the help.
fn refuse(error: &clap::Error) -> ExitCode {
    // If it cannot be printed, there is no other way to report it.
    _ = error.print();
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    let command = std::env::args_os().nth(1).unwrap_or_default();
    if command == "run" && error.kind() == ErrorKind::UnknownArgument {
        eprintln!("The command stands after `--`: grouplock run ROOM SESSION -- COMMAND");
    }
    ExitCode::from(exit::FAILED)
}
