//! `grouplock top`: the rooms of a place, live.

mod screen;
mod view;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use grouplock_room::{Place, parse_duration};
use nix::sys::signal::{Signal, raise};

use crate::exit;
use crate::inspect::overview;
use crate::output::print;
use crate::place::At;
use screen::{Key, Screen};
use view::View;

/// The options of `top`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    at: At,
    /// The time between two snapshots.
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
    // Report errors of the place before the screen changes.
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
        let shown =
            Screen::take().and_then(|screen| live(&place, arguments.interval, screen, &mut view));
        match shown {
            Ok(Pause::End) => return ExitCode::SUCCESS,
            // The terminal is as the shell expects it. When this process continues, it takes the
            // screen again.
            Ok(Pause::Stop) => _ = raise(Signal::SIGTSTP),
            Err(error) => return exit::failed(format!("the terminal cannot be used: {error}")),
        }
    }
}

/// Why the screen is restored.
enum Pause {
    End,
    Stop,
}

fn once(place: &Place) -> ExitCode {
    let mut view = View::new(place);
    view.look(place);
    let lines = view.draw(80, 24).into_iter().map(|line| line.text().trim_end().to_owned() + "\n");
    print(&lines.collect::<String>())
}

fn live(
    place: &Place,
    interval: Duration,
    mut screen: Screen,
    view: &mut View,
) -> io::Result<Pause> {
    loop {
        view.look(place);
        let next = Instant::now() + interval;
        while Instant::now() < next {
            let (width, height) = Screen::size();
            screen.show(&view.draw(width, height))?;
            for key in screen.keys(next)? {
                match key {
                    Key::End => return Ok(Pause::End),
                    Key::Stop => return Ok(Pause::Stop),
                    Key::PageDown => view.scroll(1),
                    Key::PageUp => view.scroll(-1),
                    Key::Down => view.choose(1),
                    Key::Up => view.choose(-1),
                }
            }
        }
    }
}
