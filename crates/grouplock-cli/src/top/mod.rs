//! `grouplock top`: the rooms of a place, live.

mod view;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use grouplock_room::{Place, parse_duration};
use nix::sys::signal::{Signal, raise};
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Terminal};

use crate::exit;
use crate::place::At;
use crate::plain::print;
use crate::status::overview;
use view::View;

/// Shows the rooms live, those in use first. Keys: arrows choose a room, page up and page down scroll its details, Ctrl-Z stops,
/// q ends.
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
    let mut view = View::new(&place);
    loop {
        let shown = ratatui::try_init().and_then(|mut terminal| {
            let shown = live(&place, arguments.interval, &mut terminal, &mut view);
            ratatui::try_restore().and(shown)
        });
        match shown {
            Ok(Pause::End) => return ExitCode::SUCCESS,
            // With the terminal as the shell expects it. When we go on, the screen is taken again.
            Ok(Pause::Stop) => _ = raise(Signal::SIGTSTP),
            Err(error) => return exit::failed(format!("the terminal cannot be used: {error}")),
        }
    }
}

/// Why the screen is given back.
enum Pause {
    End,
    Stop,
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

fn live(
    place: &Place,
    interval: Duration,
    terminal: &mut DefaultTerminal,
    view: &mut View,
) -> io::Result<Pause> {
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
            let control = key.modifiers.contains(KeyModifiers::CONTROL);
            match key.code {
                KeyCode::Char('q') | KeyCode::Esc => return Ok(Pause::End),
                KeyCode::Char('c') if control => return Ok(Pause::End),
                KeyCode::Char('z') if control => return Ok(Pause::Stop),
                KeyCode::PageDown | KeyCode::Char(' ') => view.scroll(1),
                KeyCode::PageUp => view.scroll(-1),
                KeyCode::Down | KeyCode::Char('j') => view.choose(1),
                KeyCode::Up | KeyCode::Char('k') => view.choose(-1),
                _ => {}
            }
        }
    }
}
