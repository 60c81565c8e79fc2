//! The picture that `top` shows.

use std::time::{Duration, SystemTime};

use grouplock_room::{Participant, Phase, Place, Snapshot};
use unicode_width::UnicodeWidthStr;

use super::screen::{Line, RED, Style};
use crate::inspect::{about, overview};
use crate::output::{duration_text, sanitized, since};

/// The time that the strip at the bottom covers.
const PAST: Duration = Duration::from_secs(300);

/// Green, yellow, cyan, magenta, blue, red.
const COLOURS: [u8; 6] = [2, 3, 6, 5, 4, 1];

/// The columns of the list of rooms and their widths. The first takes the rest.
const COLUMNS: [(&str, usize); 7] = [
    ("ROOM", 0),
    ("SESSION", 16),
    ("INSIDE", 6),
    ("SINCE", 9),
    ("WAITING", 7),
    ("NEXT", 12),
    ("POLICY", 10),
];

/// The rooms at the time of the last snapshots.
pub(super) struct View {
    place: String,
    rooms: Vec<Snapshot>,
    trouble: Vec<String>,
    /// The room whose details are shown, and the first room on the screen.
    chosen: usize,
    first: usize,
    /// The number of details above the screen, and on the screen.
    scrolled: usize,
    page: usize,
    /// The sessions seen so far. Each keeps its letter and colour.
    sessions: Vec<String>,
}

impl View {
    pub(super) fn new(place: &Place) -> Self {
        View {
            place: place.to_string(),
            rooms: Vec::new(),
            trouble: Vec::new(),
            chosen: 0,
            first: 0,
            scrolled: 0,
            page: 0,
            sessions: Vec::new(),
        }
    }

    pub(super) fn look(&mut self, place: &Place) {
        let before = self.rooms.get(self.chosen).map(|room| room.room.clone());
        match overview(place) {
            Ok(overview) => {
                self.rooms = overview.rooms;
                // Rooms in use first. Each part stays sorted by name.
                self.rooms.sort_by_key(|room| room.holders() + room.waiters() == 0);
                let still = |room: &Snapshot| Some(&room.room) == before.as_ref();
                self.chosen = self.rooms.iter().position(still).unwrap_or(0);
                self.trouble = overview
                    .failed
                    .into_iter()
                    .map(|(room, error)| sanitized(&format!("{room}: {error}")))
                    .collect();
            }
            Err(error) => self.trouble = vec![sanitized(&error.to_string())],
        }
        for room in &self.rooms {
            let past = room.recent.iter().map(|phase| &phase.session);
            let now = room.inside.iter().chain(&room.waiting).map(|phase| &phase.session);
            for session in past.chain(now) {
                if !self.sessions.contains(session) {
                    self.sessions.push(session.clone());
                }
            }
        }
    }

    /// Moves the choice by `by` rooms.
    pub(super) fn choose(&mut self, by: isize) {
        let last = self.rooms.len().saturating_sub(1);
        self.chosen = self.chosen.min(last).saturating_add_signed(by).min(last);
        self.scrolled = 0;
    }

    /// Moves the details by `by` pages.
    pub(super) fn scroll(&mut self, by: isize) {
        let page = self.page.saturating_sub(1).max(1).cast_signed();
        self.scrolled = self.scrolled.saturating_add_signed(by.saturating_mul(page));
    }

    /// The picture: `height` lines of this width.
    pub(super) fn draw(&mut self, width: usize, height: usize) -> Vec<Line> {
        let rooms = (self.rooms.len() + 1).min(height / 3).max(2);
        // In addition to the rooms: a line at the top, a strip of three lines, and a line at the
        // bottom.
        let details = height.saturating_sub(rooms + 5).max(3);
        let count = self.rooms.len();
        let rooms_word = if count == 1 { "room" } else { "rooms" };
        let counts = format!("grouplock top  {}  {count} {rooms_word}", self.place);
        let mut lines = vec![Line::plain(counts)];
        self.list(&mut lines, width, rooms);
        self.details(&mut lines, width, details);
        lines.push(match self.trouble.first() {
            Some(trouble) => Line::of(trouble, RED),
            None => Line::plain("↑ ↓ choose a room   PgUp PgDn scroll   q quit"),
        });
        lines.truncate(height);
        lines.into_iter().map(|line| line.fitted(width)).collect()
    }

    /// Adds the rooms in `height` lines. The chosen room is always visible.
    fn list(&mut self, lines: &mut Vec<Line>, width: usize, height: usize) {
        let row = |mark: &str, cells: [Line; COLUMNS.len()]| {
            let others: usize = COLUMNS.iter().map(|(_, width)| width + 1).sum();
            let first = width.saturating_sub(mark.len() + others - 1).max(12);
            let cells = cells.into_iter().zip(COLUMNS).map(|(cell, (_, width))| {
                cell.fitted(if width == 0 { first } else { width }).and(" ", Style::Plain)
            });
            cells.fold(Line::plain(mark), Line::beside)
        };
        let head = row("  ", COLUMNS.map(|(title, _)| Line::plain(title)));
        lines.push(head.fitted(width).emphasised(Style::Reversed));
        let visible = height - 1;
        self.first = self.first.min(self.chosen).max((self.chosen + 1).saturating_sub(visible));
        let end = lines.len() + visible;
        for (at, room) in self.rooms.iter().enumerate().skip(self.first).take(visible) {
            let session = room.session().unwrap_or("–");
            let next = room.waiting.first().map_or("", |phase| phase.session.as_str());
            let holders = room.inside.iter().flat_map(|phase| &phase.members);
            let longest = holders.map(|member| member.since).min();
            let cells = [
                Line::plain(sanitized(&room.room)),
                Line::of(sanitized(session), self.style(session)),
                Line::plain(room.holders().to_string()),
                Line::plain(longest.map_or_else(String::new, |then| since(then, room.taken))),
                Line::plain(room.waiters().to_string()),
                Line::of(sanitized(next), self.style(next)),
                Line::plain(room.policy.to_string()),
            ];
            lines.push(if at == self.chosen {
                row("> ", cells).emphasised(Style::Bold)
            } else {
                row("  ", cells)
            });
        }
        lines.resize(end, Line::default());
    }

    /// Adds the details of the chosen room in `height` lines, and its past in three.
    fn details(&mut self, lines: &mut Vec<Line>, width: usize, height: usize) {
        let end = lines.len() + height;
        let Some(room) = self.rooms.get(self.chosen) else {
            let text = if self.trouble.is_empty() { "no rooms yet" } else { "" };
            lines.push(Line::plain(text));
            lines.resize(end + 3, Line::default());
            return;
        };
        let (title, details) = self.detail(room);
        let past = self.past(room, width);
        self.page = height - 1;
        let last = details.len().saturating_sub(self.page);
        self.scrolled = self.scrolled.min(last);
        let more = if self.scrolled < last { " PgDn for more " } else { "" };
        let rule = width.saturating_sub(title.width() + more.width());
        lines.push(Line::plain(format!("{title}{}{more}", "─".repeat(rule))));
        lines.extend(details.into_iter().skip(self.scrolled).take(self.page));
        lines.resize(end, Line::default());
        lines.push(Line::plain("─".repeat(width)));
        lines.extend(past);
    }

    /// The title and the details of a room.
    fn detail(&self, room: &Snapshot) -> (String, Vec<Line>) {
        let mut lines = Vec::new();
        for server in &room.unanswered {
            lines.push(Line::of(format!("no answer from {server}"), RED));
        }
        match &room.inside {
            Some(phase) => self.phase(&mut lines, "inside", phase, room.taken),
            None => lines.push(Line::plain("nobody is inside")),
        }
        for (at, phase) in room.waiting.iter().enumerate() {
            self.phase(&mut lines, &format!("waiting {}", at + 1), phase, room.taken);
        }
        let deaths = match room.deaths {
            0 => String::new(),
            count => format!(", {count} died inside"),
        };
        let title = format!(" {}: epoch {}{deaths} ", sanitized(&room.room), room.epoch);
        (title, lines)
    }

    fn phase(&self, lines: &mut Vec<Line>, what: &str, phase: &Phase, now: SystemTime) {
        let session = (sanitized(&phase.session), self.style(&phase.session));
        lines.push(Line::plain(format!("{what}: ")).and(session.0, session.1));
        for member in &phase.members {
            let Participant { pid, user, host, .. } = member;
            lines.push(Line::plain(format!("  {pid} {user}@{host}  {}", about(member, now))));
        }
    }

    /// The past: a column for each time, a letter for each session. The right end is now.
    fn past(&self, room: &Snapshot, width: usize) -> [Line; 2] {
        let columns = u32::try_from(width.max(1)).unwrap_or(u32::MAX);
        let column = PAST / columns;
        let mut seen: Vec<&str> = Vec::new();
        let mut strip = Line::default();
        for at in 0..columns {
            let begins = room.taken.checked_sub(column * (columns - at));
            let ends = room.taken.checked_sub(column * (columns - at - 1));
            let longest = begins.zip(ends).and_then(|(from, to)| during(room, from, to));
            // The last column always shows the current session, even if it has just entered.
            let session = room.session().filter(|_| at + 1 == columns).or(longest);
            let (letter, style) = match session {
                Some(session) => {
                    if !seen.contains(&session) {
                        seen.push(session);
                    }
                    (self.letter(session), self.style(session))
                }
                None => ('·', Style::Plain),
            };
            strip = strip.and(letter, style);
        }
        let legend = seen.into_iter().fold(
            Line::plain(format!("last {}: ", duration_text(PAST))),
            |legend, session| {
                let text = format!("{} {}  ", self.letter(session), sanitized(session));
                legend.and(text, self.style(session))
            },
        );
        [legend, strip]
    }

    fn number(&self, session: &str) -> Option<usize> {
        self.sessions.iter().position(|known| known == session)
    }

    fn letter(&self, session: &str) -> char {
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        self.number(session).map_or('?', |at| char::from(letters[at % letters.len()]))
    }

    fn style(&self, session: &str) -> Style {
        let number = self.number(session);
        number.map_or(Style::Plain, |at| Style::Colour(COLOURS[at % COLOURS.len()]))
    }
}

/// The session that was inside longest between two times.
fn during(room: &Snapshot, from: SystemTime, to: SystemTime) -> Option<&str> {
    let overlap =
        |began: SystemTime, ended: SystemTime| ended.min(to).duration_since(began.max(from)).ok();
    let past = room.recent.iter().map(|phase| (phase.session.as_str(), phase.began, phase.ended));
    let now = room.inside.iter().filter_map(|phase| {
        let began = phase.members.iter().map(|member| member.since).min()?;
        Some((phase.session.as_str(), began, room.taken))
    });
    past.chain(now)
        .filter_map(|(session, began, ended)| Some((overlap(began, ended)?, session)))
        .max_by_key(|(time, _)| *time)
        .map(|(_, session)| session)
}
