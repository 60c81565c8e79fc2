//! What is said on stderr to those who watch: while waiting on a terminal a line that is rewritten in place.

use std::io::{IsTerminal, Write};
use std::time::{Duration, SystemTime};

use grouplock_room::{Loss, Participant, Recovered, Snapshot};
use nix::libc;
use unicode_width::UnicodeWidthStr;

use super::arguments::OnLoss;
use super::events::{Event, Events};
use crate::exit::complain;
use crate::plain::plain;
use crate::span;
use crate::waiting::{Audience, Wish};

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loudness {
    /// Failures only.
    Quiet,
    /// On a terminal how the wait goes.
    Usual,
    /// Everything, everywhere.
    Verbose,
}

/// A wait shorter than this is over before it is read.
const PATIENCE: Duration = Duration::from_millis(200);

/// Speaks on stderr.
#[derive(Debug)]
pub(crate) struct Teller {
    loudness: Loudness,
    /// Whether stderr is a terminal that shows a line of ours.
    terminal: bool,
    /// What was said last about the wait, without how long it takes.
    last: String,
    room: String,
    session: String,
}

impl Teller {
    pub(crate) fn new(room: &str, session: &str, loudness: Loudness) -> Self {
        Teller {
            loudness,
            terminal: loudness != Loudness::Quiet && std::io::stderr().is_terminal(),
            last: String::new(),
            room: room.to_owned(),
            session: session.to_owned(),
        }
    }

    /// Whether anybody sees how the wait goes.
    pub(crate) fn is_seen(&self) -> bool {
        self.terminal || self.loudness == Loudness::Verbose
    }

    pub(crate) fn waiting(&mut self, waited: Duration, room: &Snapshot) {
        if self.terminal && waited >= PATIENCE {
            // The last column stays free: some terminals begin a new line there.
            let line = self.line(Some(waited), room);
            show(&format!("\r\x1b[K{}", cut(&line, columns() - 1)));
        } else if !self.terminal && self.loudness == Loudness::Verbose {
            let line = self.line(None, room);
            if line != self.last {
                complain(&line);
                self.last = line;
            }
        }
    }

    /// Without any times if it is not to be said how long it takes: then it is the same until something happens.
    fn line(&self, waited: Option<Duration>, room: &Snapshot) -> String {
        let (name, session) = (plain(&self.room), plain(&self.session));
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
                format!("inside: {} ({first}{more})", plain(&phase.session))
            }
            None => "nobody is inside".to_owned(),
        };
        let place = match place_of(room) {
            Some(0) => "next".to_owned(),
            Some(1) => "1 phase before us".to_owned(),
            Some(before) => format!("{before} phases before us"),
            None => "our turn comes".to_owned(),
        };
        let waited = waited.map_or_else(String::new, |time| format!(" {}", span::show(time)));
        format!("waiting{waited} for {session} in {name}, {place}; {inside}")
    }

    /// Takes the line away.
    pub(crate) fn done(&mut self) {
        if self.terminal {
            show("\r\x1b[K");
        }
    }

    pub(crate) fn entered(&self, epoch: u64, holder: &str, recovered: Option<Recovered>) {
        let (room, session) = (&self.room, &self.session);
        if self.loudness == Loudness::Verbose {
            complain(format_args!("inside {room}: {session}, epoch {epoch}, holder {holder}"));
        }
        if self.loudness != Loudness::Quiet
            && let Some(died) = recovered
        {
            let who = match died.pid {
                0 if died.session.is_empty() => format!("somebody may have died inside `{room}`"),
                0 => format!("a process died inside `{room}` in the session `{}`", died.session),
                pid => {
                    format!("process {pid} died inside `{room}` in the session `{}`", died.session)
                }
            };
            complain(format_args!("{who}; what it was doing may be half done"));
        }
    }

    pub(super) fn lost(&self, room: &str, loss: &Loss, action: OnLoss) {
        let action = match action {
            OnLoss::Term => "the command is asked to end",
            OnLoss::Kill => "the command is killed",
            OnLoss::Warn => "the command goes on, and others may be inside",
        };
        if self.loudness != Loudness::Quiet {
            complain(format_args!("the place in `{room}` was lost: {loss}; {action}"));
        }
    }
}

/// How many phases wait in front of ours.
fn place_of(room: &Snapshot) -> Option<usize> {
    let us = std::process::id();
    let ours = |member: &Participant| member.pid == us;
    room.waiting.iter().position(|phase| phase.members.iter().any(ours))
}

/// Who that is, and if it is said what time it is, since when.
fn holder(member: &Participant, now: Option<SystemTime>) -> String {
    let command = member.command.split_whitespace().next().unwrap_or("");
    let command = plain(command.rsplit('/').next().unwrap_or(command));
    let time = now.map_or_else(String::new, |now| format!(", {}", since(member.since, now)));
    let expected =
        member.expected.map_or_else(String::new, |time| format!(" of {}", span::show(time)));
    format!("{command} {}{time}{expected}", member.pid)
}

/// How long ago, on a clock that may have been set back.
pub(crate) fn since(then: SystemTime, now: SystemTime) -> String {
    span::show(now.duration_since(then).unwrap_or_default())
}

/// How wide the terminal is: 80 columns if it does not know.
fn columns() -> usize {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the call writes to a `winsize`, which is what this request asks for.
    let asked = unsafe { libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    match size.ws_col {
        columns @ 1.. if asked == 0 => usize::from(columns).max(20),
        _ => 80,
    }
}

/// As much of a text as fits into so many columns. Some characters take two, and some make the one before them wider.
pub(crate) fn cut(text: &str, columns: usize) -> &str {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends.take_while(|end| text[..*end].width() <= columns).last();
    &text[..end.unwrap_or(0)]
}

fn show(text: &str) {
    let mut stderr = std::io::stderr();
    // If it cannot be shown, the wait goes on all the same.
    _ = stderr.write_all(text.as_bytes());
    _ = stderr.flush();
}

/// Tells people and programs how the wait goes.
pub(crate) struct Audible<'a> {
    pub(crate) teller: &'a mut Teller,
    pub(crate) events: Option<&'a mut Events>,
    pub(crate) wish: &'a Wish,
    /// What the programs were told last.
    pub(crate) told: Option<(Option<String>, usize, Option<usize>)>,
}

impl Audience for Audible<'_> {
    fn looks(&self) -> bool {
        self.teller.is_seen() || self.events.as_ref().is_some_and(|events| events.are_wanted())
    }

    fn waiting(&mut self, waited: Duration, room: &Snapshot) {
        self.teller.waiting(waited, room);
        let place = place_of(room);
        let now = (room.session().map(str::to_owned), room.holders(), place);
        if self.told.as_ref() != Some(&now)
            && let Some(events) = &mut self.events
        {
            events.tell(&Event::waiting(self.wish, waited, room, place));
            self.told = Some(now);
        }
    }

    fn done(&mut self) {
        self.teller.done();
    }
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(cut("waiting", 4), "wait");
        assert_eq!(cut("数据库", 4), "数据");
        assert_eq!(cut("数据库", 5), "数据");
        assert_eq!(cut("e\u{301}x", 1), "e\u{301}");
        assert_eq!(cut("short", 80), "short");
        assert_eq!(cut("short", 0), "");
        // Together they take two.
        assert_eq!(cut("\u{2764}\u{fe0f}", 1), "\u{2764}");
    }
}
