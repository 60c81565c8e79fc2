//! The program `grouplock`.

#[cfg_attr(all(feature = "etcd", feature = "gbp", feature = "top"), cfg(test))]
mod absent;
mod acquire;
mod before;
mod caller;
mod demo;
mod doctor;
mod enter;
mod exit;
mod generate;
mod handle;
mod outer;
mod place;
mod plain;
mod release;
mod remove;
mod run;
#[cfg(feature = "gbp")]
mod serve;
mod signals;
mod span;
mod status;
mod token;
#[cfg(feature = "top")]
mod top;
mod waiting;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

/// Locks with sessions: commands in rooms.
///
/// Those of the same session are inside a room together; different sessions exclude each other.
#[derive(Debug, Parser)]
#[command(name = "grouplock", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows in a few seconds what a room does: two jobs share it, a third waits.
    Demo,
    /// Runs a command inside a room.
    Run(run::Arguments),
    /// Shows who is inside and who waits.
    Status(status::Arguments),
    /// Shows the rooms live, those in use first.
    #[cfg(feature = "top")]
    Top(top::Arguments),
    #[cfg(not(feature = "top"))]
    #[command(hide = true)]
    Top(absent::Arguments),
    /// Enters a room and lets an open descriptor of the script keep the place.
    Enter(enter::EnterArguments),
    /// Leaves the place that a descriptor keeps.
    Leave(enter::LeaveArguments),
    /// Prints the file of a room, to be opened for `enter`.
    Path(enter::PathArguments),
    /// Enters a room and keeps it in the background until `release`: where no descriptor can keep it.
    Acquire(acquire::Arguments),
    /// Gives back what `acquire` has entered.
    Release(release::Arguments),
    /// Tells by its exit code whether what `acquire` or `enter` has entered is still held.
    Held(release::HeldArguments),
    /// Removes a room that nobody uses.
    Remove(remove::Arguments),
    /// Checks the place where rooms live. Exits with 1 if something is wrong.
    Doctor(doctor::Arguments),
    /// Runs one member of a GBP cluster until SIGTERM or SIGINT.
    #[cfg(feature = "gbp")]
    Serve(serve::Arguments),
    #[cfg(not(feature = "gbp"))]
    #[command(hide = true)]
    Serve(absent::Arguments),
    /// Prints completions for a shell.
    Completions(generate::CompletionArguments),
    /// Prints the manual page, or writes one for each command.
    Man(generate::ManArguments),
}

/// Runs a command inside a room.
///
/// `grouplock run` as a program of its own: putting together what all the other commands could be told takes longer than
/// entering a room.
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
        Command::Top(_) => exit::failed(absent::needs("`grouplock top`", "top")),
        Command::Enter(arguments) => enter::enter(&arguments),
        Command::Leave(arguments) => enter::leave(&arguments),
        Command::Path(arguments) => enter::path(&arguments),
        Command::Acquire(arguments) => acquire::run(&arguments),
        Command::Release(arguments) => release::run(&arguments),
        Command::Held(arguments) => release::held(&arguments),
        Command::Remove(arguments) => remove::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        #[cfg(feature = "gbp")]
        Command::Serve(arguments) => serve::run(&arguments),
        #[cfg(not(feature = "gbp"))]
        Command::Serve(_) => exit::failed(absent::needs("`grouplock serve`", "gbp")),
        Command::Completions(arguments) => generate::completions(&arguments, Arguments::command()),
        Command::Man(arguments) => generate::man(&arguments, Arguments::command()),
    }
}

/// Says what is wrong with the arguments, or prints the help that was asked for.
fn refuse(error: &clap::Error) -> ExitCode {
    // If it cannot be printed there is no other way to say so.
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
