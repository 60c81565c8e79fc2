//! `grouplock top`: the rooms of a place, live.

mod view;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use grouplock_room::{Place, parse_duration};
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Terminal};

use crate::exit;
use crate::place::At;
use crate::plain::print;
use crate::status::overview;
use view::View;

/// Shows the rooms live. Keys: arrows choose a room, q ends.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    at: At,
    /// Time between looks.
    #[arg(long, short = 'i', value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Print one picture as text, 80 columns wide, and end.
    #[arg(long)]
    once: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text).map_err(|error| error.to_string())?;
    if interval < Duration::from_millis(50) {
        return Err("at least 50ms was expected".to_owned());
    }
    Ok(interval)
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let place = match arguments.at.place() {
        Ok(place) => place,
        Err(error) => return exit::failed(error),
    };
    // What is wrong with the place is said before the screen is taken.
    if let Err(error) = overview(&place) {
        return exit::failed(error);
    }
    if arguments.once {
        return once(&place);
    }
    if !io::stdout().is_terminal() {
        return exit::failed("top needs a terminal; `--once` prints a picture without one");
    }
    let shown = ratatui::try_init().and_then(|mut terminal| {
        let shown = live(&place, arguments.interval, &mut terminal);
        ratatui::try_restore().and(shown)
    });
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::failed(format!("the terminal cannot be used: {error}")),
    }
}

fn once(place: &Place) -> ExitCode {
    let mut view = View::new(place);
    view.look(place);
    // A terminal in memory cannot fail.
    let Ok(mut terminal) = Terminal::new(TestBackend::new(80, 24));
    let Ok(_) = terminal.draw(|frame| view.draw(frame));
    let buffer = terminal.backend().buffer();
    let width = usize::from(buffer.area.width).max(1);
    let rows = buffer.content().chunks(width).map(|row| {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        line.trim_end().to_owned() + "\n"
    });
    print(&rows.collect::<String>())
}

fn live(place: &Place, interval: Duration, terminal: &mut DefaultTerminal) -> io::Result<()> {
    let mut view = View::new(place);
    loop {
        view.look(place);
        let next = Instant::now() + interval;
        loop {
            terminal.draw(|frame| view.draw(frame))?;
            if !event::poll(next.saturating_duration_since(Instant::now()))? {
                break;
            }
            let Event::Key(key) = event::read()? else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            let control_c =
                key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            match key.code {
                KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                _ if control_c => return Ok(()),
                KeyCode::Down | KeyCode::Char('j') => view.choose(1),
                KeyCode::Up | KeyCode::Char('k') => view.choose(-1),
                _ => {}
            }
        }
    }
}
