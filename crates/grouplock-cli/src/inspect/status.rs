//! `grouplock status`: holders and waiters.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use grouplock_room::{Participant, Phase, Snapshot};
use serde::Serialize;

use crate::exit::{self, complain};
use crate::inspect::{Overview, about, overview, snapshot};
use crate::output::{print, sanitized};
use crate::place::At;

/// Shows the holders and the waiters of rooms.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The room. Default: all rooms.
    room: Option<String>,
    #[command(flatten)]
    at: At,
    /// Print JSON: an object for one room, a list of objects for all rooms.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let place = match arguments.at.place() {
        Ok(place) => place,
        Err(error) => return exit::failed(error),
    };
    if let Some(name) = &arguments.room {
        return match snapshot(&place, name) {
            Ok(room) if arguments.json => print_json(&room),
            Ok(room) => print(&as_text(&room)),
            Err(error) => exit::failed(error),
        };
    }
    let Overview { rooms, failed } = match overview(&place) {
        Ok(overview) => overview,
        Err(error) => return exit::failed(error),
    };
    let code = if arguments.json {
        print_json(&rooms)
    } else {
        let mut text: String = rooms.iter().map(as_text).collect();
        if rooms.is_empty() && failed.is_empty() {
            _ = writeln!(text, "no rooms in {place}");
        }
        print(&text)
    };
    for (name, error) in &failed {
        complain(format_args!("{name}: {error}"));
    }
    if failed.is_empty() { code } else { ExitCode::from(exit::FAILED) }
}

fn print_json(value: &impl Serialize) -> ExitCode {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print(&format!("{text}\n")),
        Err(error) => exit::failed(format!("the rooms cannot be written as JSON: {error}")),
    }
}

fn as_text(room: &Snapshot) -> String {
    let mut text =
        format!("{}  policy {}, epoch {}", sanitized(&room.room), room.policy, room.epoch);
    if room.deaths > 0 {
        _ = write!(text, ", {} died inside", room.deaths);
    }
    text.push('\n');
    for server in &room.unanswered {
        _ = writeln!(text, "  no answer from {server}: what only it knows is missing here");
    }
    match &room.inside {
        Some(phase) => members(&mut text, "inside", phase, room.taken),
        None => text.push_str("  nobody is inside\n"),
    }
    for phase in &room.waiting {
        members(&mut text, "waiting", phase, room.taken);
    }
    text
}

fn members(text: &mut String, what: &str, phase: &Phase, now: SystemTime) {
    _ = writeln!(text, "  {what}: {}", sanitized(&phase.session));
    for member in &phase.members {
        let Participant { id, pid, host, user, .. } = member;
        _ = writeln!(text, "    {id}  {user}@{host} {pid}  {}", about(member, now));
    }
}
