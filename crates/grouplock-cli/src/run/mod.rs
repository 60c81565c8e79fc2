//! `grouplock run`: a command inside a room.

mod arguments;
mod child;
mod guardian;
mod holdings;
mod set_up;
mod supervise;

use std::ops::ControlFlow;
use std::process::ExitCode;

use grouplock_room::{Patience, RoomError};
use nix::sys::signal::Signal;

pub(crate) use arguments::{Arguments, OnLoss};

use crate::entering::nested::{self, OuterHolding, WaitsForItself};
use crate::entering::variables::{self, variables};
use crate::entering::{Entering, RoomRequest, StderrReport, WaitError, WaitReport};
use crate::events::{Event, Events};
use crate::exit::{self, Ending, complain};
use crate::place::places;
use crate::system::signals::Signals;
use child::PreparedCommand;
use holdings::{Holding, Holdings};
use set_up::SetUp;
use supervise::{Finished, Supervision};

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let mut events = match Events::to(arguments.json) {
        Ok(events) => events,
        Err(error) => return exit::failed(error),
    };
    match run_inside(arguments, &mut events) {
        Ok(ending) => ending.follow(),
        Err(error) => {
            let entrance = &arguments.entrance;
            let (code, message) = match &error {
                RunError::Wait(error) => entrance.failure(error),
                RunError::Lost(_) => (exit::LOST, error.to_string()),
                _ => (exit::FAILED, error.to_string()),
            };
            events.write(&Event::Failed { message: message.clone(), exit: code });
            if !matches!(&error, RunError::Wait(error) if entrance.is_silent_about(error)) {
                complain(message);
            }
            ExitCode::from(code)
        }
    }
}

/// Why the command did not run, or did not finish inside.
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

impl From<RoomError> for RunError {
    fn from(error: RoomError) -> Self {
        RunError::Wait(error.into())
    }
}

impl RunError {
    fn system(what: &'static str) -> impl FnOnce(nix::errno::Errno) -> Self {
        move |errno| RunError::System { what, source: errno.into() }
    }
}

fn run_inside(arguments: &Arguments, events: &mut Events) -> Result<Ending, RunError> {
    let mut signals = Signals::take().map_err(RunError::system("take over signals"))?;
    let (mut holdings, needs_set_up) = match enter(arguments, &signals, events)? {
        ControlFlow::Continue(entered) => entered,
        ControlFlow::Break(ending) => return Ok(ending),
    };
    signals.take_children().map_err(RunError::system("take over signals"))?;
    let rooms: Vec<&str> = holdings.0.iter().map(|(request, _)| request.room.as_str()).collect();
    let report =
        StderrReport::new(&rooms.join(", "), "", arguments.entrance.verbosity(events.use_stderr()));
    let mut set_up = SetUp::new(arguments, &signals, &report, &holdings);
    if needs_set_up {
        holdings = match set_up.set_up(holdings)? {
            ControlFlow::Continue(holdings) => holdings,
            ControlFlow::Break(failed) => return Ok(failed),
        };
    }
    for (request, holding) in &holdings.0 {
        let (epoch, holder, recovered) = (holding.epoch(), holding.holder(), holding.recovered());
        events.write(&Event::entered(request, epoch, holder.clone(), recovered.clone()));
        arguments.report(request, events).entered(epoch, &holder, recovered);
    }
    let environment = environment(&holdings, set_up.previous.as_deref());
    let command = PreparedCommand::new(arguments.command(), &environment)?;
    let supervision =
        Supervision { signals: &signals, holdings: &holdings, on_loss: arguments.on_loss };
    let Finished { mut ending, loss, guardian, watch } =
        supervision.run(&command, events, &report)?;
    let all_ours = holdings.guards().count() == holdings.0.len();
    let left = if let Some(loss) = loss {
        Err(RunError::Lost(loss.into()))
    } else {
        ending = set_up.tear_down(&holdings, ending)?;
        leave(holdings, events).map(|()| ending)
    };
    // A watch of an outer holding ends only when the outer run ends.
    if all_ours
        && left.is_ok()
        && let Some(watch) = watch
    {
        watch.end();
        set_up.end();
    }
    guardian.dismiss();
    left
}

/// Enters all rooms, and says whether the room must be set up. If it must, we are alone.
///
/// All processes enter rooms in one order, whatever order the options name. So no two processes
/// wait for each other.
fn enter(
    arguments: &Arguments,
    signals: &Signals,
    events: &mut Events,
) -> Result<ControlFlow<Ending, (Holdings, bool)>, RunError> {
    let requests = arguments.requests()?;
    let order = order(&requests)?;
    'again: loop {
        let mut entered = Vec::new();
        for position in &order {
            let request = &requests[*position];
            match enter_room(arguments, request, signals, events)? {
                ControlFlow::Continue((holding, needs_set_up)) => {
                    entered.push((*position, request.clone(), holding, needs_set_up));
                }
                ControlFlow::Break(stop @ Signal::SIGTSTP) => {
                    // A stopped process must not be in a queue or a room: others would wait for it.
                    drop(entered);
                    signals.stop_by(stop).map_err(RunError::system("stop"))?;
                    continue 'again;
                }
                ControlFlow::Break(signal) => {
                    let ending = Ending::Signal(signal as i32);
                    let exit = ending.code();
                    events.write(&Event::Signalled { signal: signal.as_str(), exit });
                    return Ok(ControlFlow::Break(ending));
                }
            }
        }
        entered.sort_by_key(|(position, ..)| *position);
        let needs_set_up = entered.iter().any(|(.., needs_set_up)| *needs_set_up);
        let holdings = entered.into_iter().map(|(_, request, holding, _)| (request, holding));
        return Ok(ControlFlow::Continue((Holdings(holdings.collect()), needs_set_up)));
    }
}

/// The positions of the requests, in the order in which all processes enter these rooms.
fn order(requests: &[RoomRequest]) -> Result<Vec<usize>, RunError> {
    let mut order: Vec<usize> = (0..requests.len()).collect();
    if requests.len() > 1 {
        let open =
            |request: &RoomRequest| places().open(&request.place, &request.room, &request.options);
        let rooms: Result<Vec<_>, _> = requests.iter().map(open).collect();
        let rooms = rooms?;
        order.sort_by_key(|position| rooms[*position].entry_order());
        let twice = |pair: &&[usize]| requests[pair[0]].room == requests[pair[1]].room;
        if let Some(pair) = order.windows(2).find(twice) {
            return Err(RunError::Twice(requests[pair[0]].room.clone()));
        }
    }
    Ok(order)
}

/// Enters one room, and says whether it must be set up. If it must, we are alone.
fn enter_room(
    arguments: &Arguments,
    request: &RoomRequest,
    signals: &Signals,
    events: &mut Events,
) -> Result<ControlFlow<Signal, (Holding, bool)>, RunError> {
    let outer = OuterHolding::around(request)?;
    let mut request = request.clone();
    if outer.is_some() {
        // The requests in front of us wait until the outer run ends, and the outer run waits for
        // us.
        request.patience = Patience::None;
    }
    let stays_alone = request.alone;
    let mut needs_set_up = false;
    loop {
        let mut stderr = arguments.report(&request, events);
        let report = WaitReport::new(&mut stderr, Some(&mut *events), &request);
        let mut entering = Entering { request: &request, signals, caller: None, report };
        let guard = match entering.enter_once() {
            Ok(ControlFlow::Continue(guard)) => guard,
            Ok(ControlFlow::Break(signal)) => return Ok(ControlFlow::Break(signal)),
            Err(error) => {
                return match outer {
                    Some(outer) if error.is_conflict() => {
                        Ok(ControlFlow::Continue((Holding::Outer(outer), false)))
                    }
                    _ => Err(error.into()),
                };
            }
        };
        if !needs_set_up && arguments.setup.is_some() {
            needs_set_up = guard.prepared()?.as_ref() != Some(&request.session);
            if needs_set_up && !stays_alone {
                // Enter again, alone. Another process may set the room up in the meantime.
                request.alone = true;
                continue;
            }
        }
        return Ok(ControlFlow::Continue((Holding::Own(guard), needs_set_up)));
    }
}

/// Leaves the rooms.
fn leave(holdings: Holdings, events: &mut Events) -> Result<(), RunError> {
    match holdings.leave() {
        Ok(()) => events.write(&Event::Left),
        Err(lost @ RoomError::Lost(_)) => return Err(RunError::Lost(lost)),
        // The command has finished its work. Its ending is more important than this error.
        Err(error) => complain(format_args!("leaving the room: {error}")),
    }
    Ok(())
}

/// The environment variables of the command. Those of the second and later rooms have a number at
/// the end.
fn environment(holdings: &Holdings, previous: Option<&str>) -> Vec<(String, Option<String>)> {
    let mut held = std::env::var(nested::VARIABLE).ok();
    let mut all = vec![("GROUPLOCK_PREVIOUS".to_owned(), previous.map(str::to_owned))];
    for (index, (request, holding)) in holdings.0.iter().enumerate() {
        let (epoch, holder) = (holding.epoch(), holding.holder());
        if let Holding::Own(_) = holding {
            held = Some(OuterHolding::variable(held.as_deref(), request, epoch, &holder));
        }
        let ours = variables(request, epoch, &holder, holding.recovered());
        if index == 0 {
            // An outer run may have had more rooms than this one.
            all.extend(numbered(ours.iter().map(|(name, _)| *name)).map(|name| (name, None)));
        }
        all.extend(ours.into_iter().map(|(name, value)| match index {
            0 => (name.to_owned(), value),
            _ => (format!("{name}_{}", index + 1), value),
        }));
    }
    all.push((nested::VARIABLE.to_owned(), held));
    let place = holdings.0.first().map(|(request, _)| request.place.to_string());
    all.push((variables::AT.to_owned(), place));
    all
}

/// The variables of this process that have one of these names and a number at the end.
fn numbered<'a>(names: impl Iterator<Item = &'a str>) -> impl Iterator<Item = String> {
    let names: Vec<&str> = names.collect();
    let ours = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    ours.filter(move |name| {
        name.rsplit_once('_').is_some_and(|(name, number)| {
            names.contains(&name) && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    })
}
