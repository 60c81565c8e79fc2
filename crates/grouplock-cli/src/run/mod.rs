//! `grouplock run`: a command inside a room.

mod arguments;
mod child;
mod events;
mod family;
mod guardian;
mod supervise;
mod words;

use std::process::ExitCode;

use grouplock_room::{Guard, Place, RoomError};

pub(crate) use arguments::{Arguments, Entrance};
pub(crate) use words::{Audible, Teller, since};

use crate::exit;
use crate::signals::Signals;
use crate::waiting::{self, Ended, WaitError, Wish};
use child::Prepared;
use events::{Event, Events};
use supervise::{Over, Supervision};

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let mut events = match Events::to(arguments.json) {
        Ok(events) => events,
        Err(error) => return exit::failed(error),
    };
    match inside(arguments, &mut events) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let code = match &error {
                RunError::Wait(WaitError::Room(conflict)) if conflict.is_conflict() => {
                    arguments.entrance.conflict_exit_code
                }
                RunError::Lost(_) => exit::LOST,
                _ => exit::FAILED,
            };
            events.tell(&Event::Failed { message: error.to_string(), exit: code });
            if !(arguments.entrance.quiet && code == arguments.entrance.conflict_exit_code) {
                eprintln!("grouplock: {error}");
            }
            ExitCode::from(code)
        }
    }
}

/// Why the command did not run, or not to its end.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error("{0}")]
    Wait(#[from] WaitError),
    #[error("cannot {what}: {source}")]
    System { what: &'static str, source: std::io::Error },
    #[error("the command or its environment contains a zero byte")]
    ZeroByte(#[from] std::ffi::NulError),
    #[error("{0}")]
    Lost(RoomError),
}

impl RunError {
    fn system(what: &'static str) -> impl FnOnce(nix::errno::Errno) -> Self {
        move |errno| RunError::System { what, source: errno.into() }
    }
}

fn inside(arguments: &Arguments, events: &mut Events) -> Result<u8, RunError> {
    let wish = arguments.wish()?;
    let mut signals = Signals::take().map_err(RunError::system("take over signals"))?;
    let mut teller = Teller::new(&wish, arguments.entrance.loudness(events.use_stderr()));
    teller.warn_of_nesting(&wish);
    let mut audience =
        Audible { teller: &mut teller, events: Some(events), wish: &wish, told: None };
    let guard = match waiting::enter(&wish, &signals, None, &mut audience)? {
        Ended::Inside(guard) => guard,
        Ended::Signalled(signal) => {
            let code = exit::by_signal(signal as i32);
            events.tell(&Event::Signalled { signal: signal.as_str(), exit: code });
            return Ok(code);
        }
        Ended::HungUp => return Ok(exit::FAILED),
    };
    events.tell(&Event::entered(&wish, &guard));
    teller.entered(&guard);
    let command = Prepared::new(arguments.command(), &environment(&wish, &guard))?;
    signals.take_children().map_err(RunError::system("take over signals"))?;
    let supervision = Supervision { signals: &signals, guard: &guard, on_loss: arguments.on_loss };
    let over = supervision.run(&command, events, &teller)?;
    let Over { code, loss, guardian } = over;
    let left = match loss {
        Some(loss) => Err(RunError::Lost(loss.into())),
        None => leave(guard, code, events),
    };
    guardian.dismiss();
    left
}

/// Gives the place back.
fn leave(guard: Guard<'_>, code: u8, events: &mut Events) -> Result<u8, RunError> {
    match guard.leave() {
        Ok(()) => events.tell(&Event::Left),
        Err(lost @ RoomError::Lost(_)) => return Err(RunError::Lost(lost)),
        // The command has done its work inside; how it ended is worth more than how we leave.
        Err(error) => eprintln!("grouplock: leaving the room: {error}"),
    }
    Ok(code)
}

/// What the command finds in its environment.
fn environment(wish: &Wish, guard: &Guard<'_>) -> Vec<(&'static str, Option<String>)> {
    let at = match &wish.place {
        Place::Directory(path) => path.display().to_string(),
        servers => servers.to_string(),
    };
    vec![
        ("GROUPLOCK_AT", Some(at)),
        ("GROUPLOCK_ROOM", Some(wish.room.clone())),
        ("GROUPLOCK_SESSION", Some(wish.session.clone())),
        ("GROUPLOCK_EPOCH", Some(guard.epoch().to_string())),
        ("GROUPLOCK_HOLDER", Some(guard.holder().to_string())),
        ("GROUPLOCK_RECOVERED", guard.recovered().map(|died| died.epoch.to_string())),
    ]
}
