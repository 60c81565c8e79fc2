//! `grouplock status`: who is inside, who waits.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use grouplock_room::{Participant, Phase, Place, RoomError, RoomOptions, Snapshot};
use serde::Serialize;

use crate::exit::{self, complain};
use crate::place::{At, places};
use crate::plain::{plain, print};
use crate::run::since;
use crate::span;

/// Shows who is inside and who waits.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The room; all that there are if not given.
    room: Option<String>,
    #[command(flatten)]
    at: At,
    /// As JSON: an object for a room, a list of them for all.
    #[arg(long)]
    json: bool,
}

/// Some rooms, and those that could not be looked at.
pub(crate) struct Overview {
    pub(crate) rooms: Vec<Snapshot>,
    pub(crate) failed: Vec<(String, RoomError)>,
}

/// Looks at all rooms of a place.
pub(crate) fn overview(place: &Place) -> Result<Overview, RoomError> {
    let mut overview = Overview { rooms: Vec::new(), failed: Vec::new() };
    for (name, seen) in places().snapshots(place)? {
        match seen {
            Ok(room) => overview.rooms.push(room),
            Err(error) => overview.failed.push((name.to_string(), error)),
        }
    }
    Ok(overview)
}

pub(crate) fn look(place: &Place, room: &str) -> Result<Snapshot, RoomError> {
    places().open(place, room, &RoomOptions::new().look_only())?.snapshot()
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let place = match arguments.at.place() {
        Ok(place) => place,
        Err(error) => return exit::failed(error),
    };
    if let Some(name) = &arguments.room {
        return match look(&place, name) {
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
    let mut text = format!("{}  policy {}, epoch {}", plain(&room.room), room.policy, room.epoch);
    if room.deaths > 0 {
        _ = write!(text, ", {} died inside", room.deaths);
    }
    text.push('\n');
    for server in &room.unanswered {
        _ = writeln!(text, "  no answer from {server}: what it knows is missing here");
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
    _ = writeln!(text, "  {what}: {}", plain(&phase.session));
    for Participant { id, pid, host, user, command, since: then, priority, expected, .. } in
        &phase.members
    {
        _ = write!(text, "    {id}  {user}@{host} {pid}  {}", since(*then, now));
        if let Some(expected) = expected {
            _ = write!(text, " of {}", span::show(*expected));
        }
        if priority.0 != 0 {
            _ = write!(text, ", priority {priority}");
        }
        _ = writeln!(text, "  {}", plain(command));
    }
}
