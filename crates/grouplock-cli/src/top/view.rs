//! What `top` shows.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use grouplock_room::{Participant, Phase, Place, Snapshot};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Row, Table, TableState};

use crate::plain::plain;
use crate::run::since;
use crate::span;
use crate::status::overview;

/// How far back the strip of the recent past goes.
const PAST: Duration = Duration::from_secs(300);

const COLOURS: [Color; 6] =
    [Color::Green, Color::Yellow, Color::Cyan, Color::Magenta, Color::Blue, Color::Red];

/// The rooms as they were at the last look.
pub(super) struct View {
    place: String,
    rooms: Vec<Snapshot>,
    trouble: Vec<String>,
    chosen: TableState,
    /// How many lines of the details are above the screen, and how many are on it.
    scrolled: u16,
    page: u16,
    /// The sessions seen so far, in order: each keeps its letter and colour.
    sessions: Vec<String>,
}

impl View {
    pub(super) fn new(place: &Place) -> Self {
        View {
            place: place.to_string(),
            rooms: Vec::new(),
            trouble: Vec::new(),
            chosen: TableState::default().with_selected(0),
            scrolled: 0,
            page: 0,
            sessions: Vec::new(),
        }
    }

    pub(super) fn look(&mut self, place: &Place) {
        let before = self.chosen.selected().and_then(|at| self.rooms.get(at));
        let before = before.map(|room| room.room.clone());
        match overview(place) {
            Ok(overview) => {
                self.rooms = overview.rooms;
                // Those in use first, and each part by name as before.
                self.rooms.sort_by_key(|room| room.holders() + room.waiters() == 0);
                let still = |room: &Snapshot| Some(&room.room) == before.as_ref();
                self.chosen.select(Some(self.rooms.iter().position(still).unwrap_or(0)));
                self.trouble = overview
                    .failed
                    .into_iter()
                    .map(|(room, error)| plain(&format!("{room}: {error}")))
                    .collect();
            }
            Err(error) => self.trouble = vec![plain(&error.to_string())],
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

    /// Moves the choice by so many rooms.
    pub(super) fn choose(&mut self, by: isize) {
        let last = self.rooms.len().saturating_sub(1);
        let now = self.chosen.selected().unwrap_or(0).min(last);
        self.chosen.select(Some(now.saturating_add_signed(by).min(last)));
        self.scrolled = 0;
    }

    /// Moves the details by so many pages.
    pub(super) fn scroll(&mut self, by: i16) {
        let page = self.page.saturating_sub(1).max(1).cast_signed();
        self.scrolled = self.scrolled.saturating_add_signed(by.saturating_mul(page));
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>) {
        let room_lines = u16::try_from(self.rooms.len()).unwrap_or(u16::MAX).saturating_add(1);
        let [head, rooms, detail, strip, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(room_lines.min(frame.area().height / 3).max(2)),
            Constraint::Min(3),
            Constraint::Length(3),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let counts = format!("grouplock top  {}  {} rooms", self.place, self.rooms.len());
        frame.render_widget(Paragraph::new(counts), head);
        self.draw_rooms(frame, rooms);
        let chosen = self.chosen.selected().and_then(|at| self.rooms.get(at));
        if let Some(room) = chosen {
            let (title, lines) = self.detail(room);
            self.page = detail.height.saturating_sub(1);
            let last = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_sub(self.page);
            self.scrolled = self.scrolled.min(last);
            let more = if self.scrolled < last { " PgDn for more " } else { "" };
            let border = Block::new().borders(Borders::TOP).title(title);
            let border = border.title(Line::raw(more).right_aligned());
            let text = Paragraph::new(lines).block(border).scroll((self.scrolled, 0));
            frame.render_widget(text, detail);
            frame.render_widget(self.strip(room, strip), strip);
        } else {
            let text = if self.trouble.is_empty() { "no rooms yet" } else { "" };
            frame.render_widget(Paragraph::new(text), detail);
        }
        let foot_text = match self.trouble.first() {
            Some(trouble) => Line::styled(trouble.as_str(), Style::new().fg(Color::Red)),
            None => Line::raw("↑ ↓ choose a room   PgUp PgDn scroll   q quit"),
        };
        frame.render_widget(Paragraph::new(foot_text), foot);
    }

    fn draw_rooms(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let rows = self.rooms.iter().map(|room| {
            let session = room.session().unwrap_or("–");
            let next = room.waiting.first().map_or("", |phase| phase.session.as_str());
            let holders = room.inside.iter().flat_map(|phase| &phase.members);
            let longest = holders.map(|member| member.since).min();
            Row::new([
                Line::raw(plain(&room.room)),
                Line::styled(plain(session), self.style(session)),
                Line::raw(room.holders().to_string()),
                Line::raw(longest.map_or_else(String::new, |then| since(then, room.taken))),
                Line::raw(room.waiters().to_string()),
                Line::styled(plain(next), self.style(next)),
                Line::raw(room.policy.to_string()),
            ])
        });
        let widths = [
            Constraint::Min(12),
            Constraint::Length(16),
            Constraint::Length(6),
            Constraint::Length(9),
            Constraint::Length(7),
            Constraint::Length(12),
            Constraint::Length(10),
        ];
        let head = ["ROOM", "SESSION", "INSIDE", "SINCE", "WAITING", "NEXT", "POLICY"];
        let table = Table::new(rows, widths)
            .header(Row::new(head).style(Style::new().add_modifier(Modifier::REVERSED)))
            .row_highlight_style(Style::new().add_modifier(Modifier::BOLD))
            .highlight_symbol("> ");
        frame.render_stateful_widget(table, area, &mut self.chosen);
    }

    /// What is said about a room: its title and lines.
    fn detail(&self, room: &Snapshot) -> (String, Vec<Line<'static>>) {
        let mut lines = Vec::new();
        for server in &room.unanswered {
            let style = Style::new().fg(Color::Red);
            lines.push(Line::styled(format!("no answer from {server}"), style));
        }
        match &room.inside {
            Some(phase) => self.phase(&mut lines, "inside", phase, room.taken),
            None => lines.push(Line::raw("nobody is inside")),
        }
        for (at, phase) in room.waiting.iter().enumerate() {
            self.phase(&mut lines, &format!("waiting {}", at + 1), phase, room.taken);
        }
        let deaths = match room.deaths {
            0 => String::new(),
            count => format!(", {count} died inside"),
        };
        let title = format!(" {}: epoch {}{deaths} ", plain(&room.room), room.epoch);
        (title, lines)
    }

    fn phase(&self, lines: &mut Vec<Line<'static>>, what: &str, phase: &Phase, now: SystemTime) {
        let style = self.style(&phase.session);
        lines.push(Line::from(vec![
            Span::raw(format!("{what}: ")),
            Span::styled(plain(&phase.session), style),
        ]));
        for Participant { pid, user, host, command, since: then, expected, priority, .. } in
            &phase.members
        {
            let mut text = format!("  {pid} {user}@{host}  {}", since(*then, now));
            if let Some(expected) = expected {
                _ = write!(text, " of {}", span::show(*expected));
            }
            if priority.0 != 0 {
                _ = write!(text, "  priority {priority}");
            }
            lines.push(Line::raw(format!("{text}  {}", plain(command))));
        }
    }

    /// The recent past: a column for each moment, a letter for each session, now at the right.
    fn strip(&self, room: &Snapshot, area: Rect) -> Paragraph<'_> {
        let columns = u32::from(area.width.max(1));
        let column = PAST / columns;
        let mut seen: Vec<&str> = Vec::new();
        let mut spans = Vec::new();
        for at in 0..columns {
            let begins = room.taken.checked_sub(column * (columns - at));
            let ends = room.taken.checked_sub(column * (columns - at - 1));
            let longest = begins.zip(ends).and_then(|(from, to)| during(room, from, to));
            // The last column is now, however short now has been.
            let session = room.session().filter(|_| at + 1 == columns).or(longest);
            spans.push(match session {
                Some(session) => {
                    if !seen.contains(&session) {
                        seen.push(session);
                    }
                    Span::styled(self.letter(session).to_string(), self.style(session))
                }
                None => Span::raw("·"),
            });
        }
        let mut legend = vec![Span::raw(format!("last {}: ", span::show(PAST)))];
        for session in seen {
            let text = format!("{} {}  ", self.letter(session), plain(session));
            legend.push(Span::styled(text, self.style(session)));
        }
        Paragraph::new(vec![Line::from(legend), Line::from(spans)])
            .block(Block::new().borders(Borders::TOP))
    }

    fn number(&self, session: &str) -> Option<usize> {
        self.sessions.iter().position(|known| known == session)
    }

    fn letter(&self, session: &str) -> char {
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        self.number(session).map_or('?', |at| char::from(letters[at % letters.len()]))
    }

    fn style(&self, session: &str) -> Style {
        self.number(session)
            .map_or_else(Style::new, |at| Style::new().fg(COLOURS[at % COLOURS.len()]))
    }
}

/// The session that was inside longest between two moments.
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
