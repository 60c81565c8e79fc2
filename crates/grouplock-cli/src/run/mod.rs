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

use grouplock_room::{Patience, Place, Recovered, RoomError};
use nix::sys::signal::Signal;

pub(crate) use arguments::{Arguments, Entrance};
#[cfg(feature = "top")]
pub(crate) use words::cut;
pub(crate) use words::{Audible, Teller, since};

use crate::exit::{self, Ending, complain};
use crate::outer::{self, Outer, WaitsForItself};
use crate::place::places;
use crate::signals::Signals;
use crate::waiting::{self, Ended, WaitError, Wish};
use child::Prepared;
use events::{Event, Events};
use inside::{Inside, Seat};
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
    #[error("the room `{0}` is named twice; each room can be entered once")]
    Twice(String),
}

impl RunError {
    fn system(what: &'static str) -> impl FnOnce(nix::errno::Errno) -> Self {
        move |errno| RunError::System { what, source: errno.into() }
    }
}

fn inside(arguments: &Arguments, events: &mut Events) -> Result<Ending, RunError> {
    let mut signals = Signals::take().map_err(RunError::system("take over signals"))?;
    let (mut inside, unprepared) = match enter(arguments, &signals, events)? {
        Entered::Inside { inside, unprepared } => (inside, unprepared),
        Entered::Ended(ending) => return Ok(ending),
    };
    signals.take_children().map_err(RunError::system("take over signals"))?;
    let rooms: Vec<&str> = inside.0.iter().map(|(wish, _)| wish.room.as_str()).collect();
    let teller =
        Teller::new(&rooms.join(", "), "", arguments.entrance.loudness(events.use_stderr()));
    let mut upkeep = Upkeep::new(arguments, &signals, &teller, &inside);
    if unprepared {
        inside = match upkeep.set_up(inside)? {
            Ok(inside) => inside,
            Err(failed) => return Ok(failed),
        };
    }
    for (wish, seat) in &inside.0 {
        events.tell(&Event::entered(wish, seat));
        let teller = arguments.teller(wish, events);
        teller.entered(seat.epoch(), &seat.holder(), seat.recovered());
    }
    let command =
        Prepared::new(arguments.command(), &environment(&inside, upkeep.previous.as_deref()))?;
    let supervision =
        Supervision { signals: &signals, inside: &inside, on_loss: arguments.on_loss };
    let Over { mut ending, loss, guardian, watch } = supervision.run(&command, events, &teller)?;
    let own = inside.guards().count() == inside.0.len();
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

/// How entering ended.
enum Entered {
    Inside {
        inside: Inside,
        /// Whether the room is to be set up. Then we are alone.
        unprepared: bool,
    },
    Ended(Ending),
}

/// Enters all rooms, in one order for everybody: so no two wait for each other, in whatever order they name them.
fn enter(
    arguments: &Arguments,
    signals: &Signals,
    events: &mut Events,
) -> Result<Entered, RunError> {
    let wishes = arguments.wishes()?;
    let order = order(&wishes)?;
    'again: loop {
        let mut seats = Vec::new();
        for position in &order {
            let wish = &wishes[*position];
            match take_seat(arguments, wish, signals, events)? {
                Taken::Seat(seat, unprepared) => {
                    seats.push((*position, wish.clone(), seat, unprepared));
                }
                Taken::Signalled(stop @ Signal::SIGTSTP) => {
                    // Nothing of us is in a queue or a room while we are stopped: else everybody behind us would wait for us.
                    drop(seats);
                    signals.stop_by(stop).map_err(RunError::system("stop"))?;
                    continue 'again;
                }
                Taken::Signalled(signal) => {
                    let ending = Ending::Signal(signal as i32);
                    events.tell(&Event::Signalled { signal: signal.as_str(), exit: ending.code() });
                    return Ok(Entered::Ended(ending));
                }
            }
        }
        seats.sort_by_key(|(position, ..)| *position);
        let unprepared = seats.iter().any(|(.., unprepared)| *unprepared);
        let seats = seats.into_iter().map(|(_, wish, seat, _)| (wish, seat)).collect();
        return Ok(Entered::Inside { inside: Inside(seats), unprepared });
    }
}

/// The positions of the wishes, in the order in which everybody enters these rooms.
fn order(wishes: &[Wish]) -> Result<Vec<usize>, RunError> {
    let mut order: Vec<usize> = (0..wishes.len()).collect();
    if wishes.len() > 1 {
        let open = |wish: &Wish| places().open(&wish.place, &wish.room, &wish.options);
        let rooms: Result<Vec<_>, _> = wishes.iter().map(open).collect();
        let rooms = rooms.map_err(WaitError::from)?;
        order.sort_by_key(|position| rooms[*position].entry_order());
        let twice = |pair: &&[usize]| wishes[pair[0]].room == wishes[pair[1]].room;
        if let Some(pair) = order.windows(2).find(twice) {
            return Err(RunError::Twice(wishes[pair[0]].room.clone()));
        }
    }
    Ok(order)
}

/// What became of a wish.
enum Taken {
    /// And whether the room is to be set up, alone.
    Seat(Seat, bool),
    Signalled(Signal),
}

fn take_seat(
    arguments: &Arguments,
    wish: &Wish,
    signals: &Signals,
    events: &mut Events,
) -> Result<Taken, RunError> {
    let outer = Outer::around(wish)?;
    let mut wish = wish.clone();
    if outer.is_some() {
        // Whoever waits in front of us waits for the outer run to end, and that waits for us.
        wish.patience = Patience::None;
    }
    let stays_alone = wish.alone;
    let mut unprepared = false;
    loop {
        let mut teller = arguments.teller(&wish, events);
        let mut audience =
            Audible { teller: &mut teller, events: Some(&mut *events), wish: &wish, told: None };
        let guard = match waiting::enter_once(&wish, signals, None, &mut audience) {
            Ok(Ended::Inside(guard)) => guard,
            Ok(Ended::Signalled(signal)) => return Ok(Taken::Signalled(signal)),
            // Nobody can hang up on us.
            Ok(Ended::HungUp) => continue,
            Err(error) => {
                let full = matches!(&error, WaitError::Room(error) if error.is_conflict());
                return match outer {
                    Some(outer) if full => Ok(Taken::Seat(Seat::Shared(outer), false)),
                    _ => Err(error.into()),
                };
            }
        };
        if !unprepared && arguments.setup.is_some() {
            unprepared = guard.prepared().map_err(WaitError::from)?.as_ref() != Some(&wish.session);
            if unprepared && !stays_alone {
                // Comes back alone. Until then somebody else may have set it up.
                wish.alone = true;
                continue;
            }
        }
        return Ok(Taken::Seat(Seat::Own(guard), unprepared));
    }
}

/// Gives the places back.
fn leave(inside: Inside, events: &mut Events) -> Result<(), RunError> {
    match inside.leave() {
        Ok(()) => events.tell(&Event::Left),
        Err(lost @ RoomError::Lost(_)) => return Err(RunError::Lost(lost)),
        // The command has done its work inside; how it ended is worth more than how we leave.
        Err(error) => complain(format_args!("leaving the room: {error}")),
    }
    Ok(())
}

/// What the command finds in its environment: of the first room, and of the others with a number behind each name.
fn environment(inside: &Inside, previous: Option<&str>) -> Vec<(String, Option<String>)> {
    let mut held = std::env::var(outer::VARIABLE).ok();
    let mut all = vec![("GROUPLOCK_PREVIOUS".to_owned(), previous.map(str::to_owned))];
    for (index, (wish, seat)) in inside.0.iter().enumerate() {
        let (epoch, holder) = (seat.epoch(), seat.holder());
        if let Seat::Own(_) = seat {
            held = Some(Outer::variable(held.as_deref(), wish, epoch, &holder));
        }
        let ours = variables(wish, epoch, &holder, seat.recovered());
        all.extend(ours.into_iter().map(|(name, value)| match index {
            0 => (name.to_owned(), value),
            _ => (format!("{name}_{}", index + 1), value),
        }));
    }
    all.push((outer::VARIABLE.to_owned(), held));
    all.push(("GROUPLOCK_AT".to_owned(), inside.0.first().map(|(wish, _)| at(wish))));
    all
}

/// The place as `--at` takes it.
pub(crate) fn at(wish: &Wish) -> String {
    match &wish.place {
        Place::Directory(path) => path.display().to_string(),
        servers => servers.to_string(),
    }
}

/// What there is to know of a place inside one room. Those without a value are to be removed.
pub(crate) fn variables(
    wish: &Wish,
    epoch: u64,
    holder: &str,
    recovered: Option<Recovered>,
) -> Vec<(&'static str, Option<String>)> {
    let (mut died, mut session, mut command) = (None, None, None);
    if let Some(recovered) = recovered {
        died = Some(recovered.epoch.to_string());
        (session, command) = (Some(recovered.session), Some(recovered.command));
    }
    vec![
        ("GROUPLOCK_ROOM", Some(wish.room.clone())),
        ("GROUPLOCK_SESSION", Some(wish.session.clone())),
        ("GROUPLOCK_EPOCH", Some(epoch.to_string())),
        ("GROUPLOCK_HOLDER", Some(holder.to_owned())),
        ("GROUPLOCK_RECOVERED", died),
        ("GROUPLOCK_RECOVERED_SESSION", session),
        ("GROUPLOCK_RECOVERED_COMMAND", command),
    ]
}
