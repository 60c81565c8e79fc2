//! Messages about a wait and an entry: for people on stderr, for programs as events. On a terminal,
//! one line shows the wait and is rewritten in place.

use std::io::{IsTerminal, Write};
use std::time::{Duration, SystemTime};

use grouplock_room::{Loss, Participant, Recovered, Snapshot};

use super::RoomRequest;
use crate::events::{Event, Events};
use crate::exit::complain;
use crate::output::{cut, duration_text, sanitized, since};
use crate::run::OnLoss;

/// How much goes to stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Failures only.
    Quiet,
    /// Also the state of the wait, if stderr is a terminal.
    Usual,
    /// Everything, also if stderr is not a terminal.
    Verbose,
}

/// Nobody can read a line that disappears sooner than this.
const READABLE: Duration = Duration::from_millis(200);

/// Writes messages to stderr.
#[derive(Debug)]
pub(crate) struct StderrReport {
    verbosity: Verbosity,
    /// Whether stderr is a terminal and messages about the wait are wanted.
    terminal: bool,
    /// The last message about the wait, without the time.
    last: String,
    room: String,
    session: String,
}

impl StderrReport {
    pub(crate) fn new(room: &str, session: &str, verbosity: Verbosity) -> Self {
        StderrReport {
            verbosity,
            terminal: verbosity != Verbosity::Quiet && std::io::stderr().is_terminal(),
            last: String::new(),
            room: room.to_owned(),
            session: session.to_owned(),
        }
    }

    /// Whether anybody sees messages about the wait.
    fn is_seen(&self) -> bool {
        self.terminal || self.verbosity == Verbosity::Verbose
    }

    fn waiting(&mut self, waited: Duration, room: &Snapshot) {
        if self.terminal && waited >= READABLE {
            // The last column stays free: some terminals begin a new line after it.
            let line = self.line(Some(waited), room);
            show(&format!("\r\x1b[K{}", cut(&line, columns() - 1)));
        } else if !self.terminal && self.verbosity == Verbosity::Verbose {
            let line = self.line(None, room);
            if line != self.last {
                complain(&line);
                self.last = line;
            }
        }
    }

    /// The state of the wait. Without `waited` it contains no times, so that it changes only when
    /// the room changes.
    fn line(&self, waited: Option<Duration>, room: &Snapshot) -> String {
        let (name, session) = (sanitized(&self.room), sanitized(&self.session));
        let inside = match &room.inside {
            Some(phase) => {
                let first = phase.members.first().map_or_else(String::new, |first| {
                    let time = waited.map(|_| room.taken);
                    holder(first, time)
                });
                let more = match phase.members.len() {
                    0 | 1 => String::new(),
                    count => format!(", and {} more", count - 1),
                };
                format!("inside: {} ({first}{more})", sanitized(&phase.session))
            }
            None => "nobody is inside".to_owned(),
        };
        let position = match phases_before_us(room) {
            Some(0) => "next".to_owned(),
            Some(1) => "1 phase before us".to_owned(),
            Some(before) => format!("{before} phases before us"),
            None => "can enter now".to_owned(),
        };
        let waited = waited.map_or_else(String::new, |time| format!(" {}", duration_text(time)));
        format!("waiting{waited} for {session} in {name}, {position}; {inside}")
    }

    /// Removes the line about the wait.
    fn done(&self) {
        if self.terminal {
            show("\r\x1b[K");
        }
    }

    pub(crate) fn entered(&self, epoch: u64, holder: &str, recovered: Option<Recovered>) {
        let (room, session) = (&self.room, &self.session);
        if self.verbosity == Verbosity::Verbose {
            complain(format_args!("inside {room}: {session}, epoch {epoch}, holder {holder}"));
        }
        if self.verbosity != Verbosity::Quiet
            && let Some(died) = recovered
        {
            let who = match died.pid {
                0 if died.session.is_empty() => format!("a process may have died inside `{room}`"),
                0 => format!("a process died inside `{room}` in the session `{}`", died.session),
                pid => {
                    format!("process {pid} died inside `{room}` in the session `{}`", died.session)
                }
            };
            complain(format_args!("{who}; its work may be half done"));
        }
    }

    pub(crate) fn lost(&self, room: &str, loss: &Loss, action: OnLoss) {
        let action = match action {
            OnLoss::Term => "the command is asked to end",
            OnLoss::Kill => "the command is killed",
            OnLoss::Warn => "the command continues, and others may be inside",
        };
        if self.verbosity != Verbosity::Quiet {
            complain(format_args!("the holding in `{room}` was lost: {loss}; {action}"));
        }
    }
}

/// The number of phases that wait in front of ours.
fn phases_before_us(room: &Snapshot) -> Option<usize> {
    let us = std::process::id();
    let ours = |member: &Participant| member.pid == us;
    room.waiting.iter().position(|phase| phase.members.iter().any(ours))
}

/// The command and the process of a holder; with `now`, also how long it has been inside.
fn holder(member: &Participant, now: Option<SystemTime>) -> String {
    let command = member.command.split_whitespace().next().unwrap_or("");
    let command = sanitized(command.rsplit('/').next().unwrap_or(command));
    let time = now.map_or_else(String::new, |now| format!(", {}", since(member.since, now)));
    let expected =
        member.expected.map_or_else(String::new, |time| format!(" of {}", duration_text(time)));
    format!("{command} {}{time}{expected}", member.pid)
}

/// The width of the terminal; 80 columns if it is unknown.
fn columns() -> usize {
    let size = terminal_size::terminal_size_of(std::io::stderr());
    size.map_or(80, |(columns, _)| usize::from(columns.0).max(20))
}

fn show(text: &str) {
    let mut stderr = std::io::stderr();
    // If stderr cannot be written, the wait continues.
    _ = stderr.write_all(text.as_bytes());
    _ = stderr.flush();
}

/// Reports a wait to people and to programs.
pub(crate) struct WaitReport<'a> {
    stderr: &'a mut StderrReport,
    events: Option<&'a mut Events>,
    request: &'a RoomRequest,
    /// The content of the last event: the session inside, the holders, the phases before us.
    last: Option<(Option<String>, usize, Option<usize>)>,
}

impl<'a> WaitReport<'a> {
    pub(crate) fn new(
        stderr: &'a mut StderrReport,
        events: Option<&'a mut Events>,
        request: &'a RoomRequest,
    ) -> Self {
        WaitReport { stderr, events, request, last: None }
    }

    /// Whether anybody reads it. Otherwise no snapshots are needed.
    pub(super) fn is_wanted(&self) -> bool {
        self.stderr.is_seen() || self.events.as_ref().is_some_and(|events| events.are_wanted())
    }

    /// The wait has lasted that long, and the room looks like this.
    pub(super) fn waiting(&mut self, waited: Duration, room: &Snapshot) {
        self.stderr.waiting(waited, room);
        let before = phases_before_us(room);
        let now = (room.session().map(str::to_owned), room.holders(), before);
        if self.last.as_ref() != Some(&now)
            && let Some(events) = &mut self.events
        {
            events.write(&Event::waiting(self.request, waited, room, before));
            self.last = Some(now);
        }
    }

    /// The wait is over.
    pub(super) fn done(&mut self) {
        self.stderr.done();
    }
}
