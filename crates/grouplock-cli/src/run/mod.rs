//! `grouplock run`: a command inside a room.

mod arguments;
mod child;
mod events;
pub(crate) mod family;
mod guardian;
mod inside;
mod supervise;
mod upkeep;
mod words;

use std::process::ExitCode;

use grouplock_room::{Patience, Place, RoomError};

pub(crate) use arguments::{Arguments, Entrance};
pub(crate) use words::{Audible, Teller, since};

use crate::exit::{self, Ending, complain};
use crate::outer::{self, Outer, WaitsForItself};
use crate::signals::Signals;
use crate::waiting::{self, Ended, WaitError, Wish};
use child::Prepared;
use events::{Event, Events};
use inside::Inside;
use supervise::{Over, Supervision};
use upkeep::Upkeep;

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let mut events = match Events::to(arguments.json) {
        Ok(events) => events,
        Err(error) => return exit::failed(error),
    };
    match inside(arguments, &mut events) {
        Ok(ending) => ending.follow(),
        Err(error) => {
            let message = match &error {
                RunError::Wait(error) => arguments.entrance.told(error),
                error => error.to_string(),
            };
            let code = match &error {
                RunError::Wait(WaitError::Room(conflict)) if conflict.is_conflict() => {
                    arguments.entrance.conflict_exit_code
                }
                RunError::Lost(_) => exit::LOST,
                _ => exit::FAILED,
            };
            events.tell(&Event::Failed { message: message.clone(), exit: code });
            if !(arguments.entrance.quiet && code == arguments.entrance.conflict_exit_code) {
                complain(message);
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
    #[error(transparent)]
    WaitsForItself(#[from] WaitsForItself),
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

fn inside(arguments: &Arguments, events: &mut Events) -> Result<Ending, RunError> {
    let mut wish = arguments.wish()?;
    let mut signals = Signals::take().map_err(RunError::system("take over signals"))?;
    let mut teller = Teller::new(&wish, arguments.entrance.loudness(events.use_stderr()));
    let outer = Outer::around(&wish)?;
    if outer.is_some() {
        // Whoever waits in front of us waits for the outer run to end, and that waits for us.
        wish.patience = Patience::None;
    }
    let mut audience =
        Audible { teller: &mut teller, events: Some(events), wish: &wish, told: None };
    let mut entered = waiting::enter(&wish, &signals, None, &mut audience);
    let unprepared = match &entered {
        Ok(Ended::Inside(guard)) if arguments.setup.is_some() => {
            guard.prepared().map_err(WaitError::from)?.as_ref() != Some(&wish.session)
        }
        _ => false,
    };
    if unprepared && !wish.alone {
        // Comes back alone. Until then somebody else may have set it up.
        drop(entered);
        let alone = Wish { alone: true, ..wish.clone() };
        let mut audience =
            Audible { teller: &mut teller, events: Some(events), wish: &alone, told: None };
        entered = waiting::enter(&alone, &signals, None, &mut audience);
    }
    let inside = match (entered, outer) {
        (Ok(Ended::Inside(guard)), _) => Inside::Own(guard),
        (Ok(Ended::Signalled(signal)), _) => {
            let ending = Ending::Signal(signal as i32);
            events.tell(&Event::Signalled { signal: signal.as_str(), exit: ending.code() });
            return Ok(ending);
        }
        (Ok(Ended::HungUp), _) => return Ok(Ending::Code(exit::FAILED)),
        (Err(WaitError::Room(error)), Some(outer)) if error.is_conflict() => Inside::Shared(outer),
        (Err(error), _) => return Err(error.into()),
    };
    signals.take_children().map_err(RunError::system("take over signals"))?;
    let mut upkeep = Upkeep::new(arguments, &wish, &signals, &teller, &inside);
    let inside = match upkeep.set_up(inside, unprepared)? {
        Ok(inside) => inside,
        Err(failed) => return Ok(failed),
    };
    events.tell(&Event::entered(&wish, &inside));
    teller.entered(inside.epoch(), &inside.holder(), inside.recovered());
    let variables = environment(&wish, &inside, upkeep.previous.as_deref());
    let command = Prepared::new(arguments.command(), &variables)?;
    let supervision =
        Supervision { signals: &signals, inside: &inside, on_loss: arguments.on_loss };
    let Over { mut ending, loss, guardian, watch } = supervision.run(&command, events, &teller)?;
    let own = inside.guard().is_some();
    let left = if let Some(loss) = loss {
        Err(RunError::Lost(loss.into()))
    } else {
        ending = upkeep.tear_down(&inside, ending)?;
        leave(inside, events).map(|()| ending)
    };
    // Who watches the place of the outer run goes on for as long as that does.
    if own
        && left.is_ok()
        && let Some(watch) = watch
    {
        watch.end();
        upkeep.end();
    }
    guardian.dismiss();
    left
}

/// Gives the place back.
fn leave(inside: Inside, events: &mut Events) -> Result<(), RunError> {
    match inside.leave() {
        Ok(()) => events.tell(&Event::Left),
        Err(lost @ RoomError::Lost(_)) => return Err(RunError::Lost(lost)),
        // The command has done its work inside; how it ended is worth more than how we leave.
        Err(error) => complain(format_args!("leaving the room: {error}")),
    }
    Ok(())
}

/// What the command finds in its environment.
fn environment(
    wish: &Wish,
    inside: &Inside,
    previous: Option<&str>,
) -> Vec<(&'static str, Option<String>)> {
    let at = match &wish.place {
        Place::Directory(path) => path.display().to_string(),
        servers => servers.to_string(),
    };
    let (epoch, holder) = (inside.epoch(), inside.holder());
    let held = match inside {
        Inside::Own(_) => Some(Outer::variable(wish, epoch, &holder)),
        Inside::Shared(_) => std::env::var(outer::VARIABLE).ok(),
    };
    vec![
        ("GROUPLOCK_AT", Some(at)),
        ("GROUPLOCK_ROOM", Some(wish.room.clone())),
        ("GROUPLOCK_SESSION", Some(wish.session.clone())),
        ("GROUPLOCK_EPOCH", Some(epoch.to_string())),
        ("GROUPLOCK_HOLDER", Some(holder)),
        (outer::VARIABLE, held),
        ("GROUPLOCK_PREVIOUS", previous.map(str::to_owned)),
        ("GROUPLOCK_RECOVERED", inside.recovered().map(|died| died.epoch.to_string())),
        ("GROUPLOCK_RECOVERED_SESSION", inside.recovered().map(|died| died.session)),
        ("GROUPLOCK_RECOVERED_COMMAND", inside.recovered().map(|died| died.command)),
    ]
}
