//! What is run around the command: the set-up before it and the tear-down after it, both alone.

use std::ffi::OsString;

use grouplock_room::{Guard, RoomError};

use super::arguments::{Arguments, shell};
use super::child::Prepared;
use super::events::Events;
use super::inside::{Inside, Seat};
use super::supervise::{Over, Supervision, Watch};
use super::{RunError, environment};
use crate::exit::{Ending, complain};
use crate::signals::Signals;
use crate::waiting::{WaitError, Wish};

use super::words::Teller;

pub(super) struct Upkeep<'a> {
    arguments: &'a Arguments,
    signals: &'a Signals,
    teller: &'a Teller,
    /// For which session the room was set up before, if nobody has torn that down.
    pub(super) previous: Option<String>,
    /// They end when the room has been left.
    watches: Vec<Watch>,
}

fn failed(error: RoomError) -> RunError {
    RunError::Wait(WaitError::Room(error))
}

impl<'a> Upkeep<'a> {
    pub(super) fn new(
        arguments: &'a Arguments,
        signals: &'a Signals,
        teller: &'a Teller,
        inside: &Inside,
    ) -> Self {
        // Where rooms cannot be set up, none was.
        let previous = inside.guard().and_then(|guard| guard.previous().ok().flatten());
        Upkeep { arguments, signals, teller, previous, watches: Vec::new() }
    }

    /// Sets the room up if nobody has meanwhile, and lets the session join. How the set-up ended if it failed: then the
    /// room was left.
    pub(super) fn set_up(&mut self, inside: Inside) -> Result<Result<Inside, Ending>, RunError> {
        let (Some(text), [(wish, Seat::Own(guard))]) = (&self.arguments.setup, &inside.0[..])
        else {
            return Ok(Ok(inside));
        };
        let session = wish.session.as_str();
        if guard.prepared().map_err(failed)?.as_deref() != Some(session) {
            guard.set_prepared(None).map_err(failed)?;
            let ending = self.run(text, &inside)?;
            if ending != Ending::Code(0) {
                complain("the set-up failed, so the command was not run");
                inside.leave().map_err(RunError::Lost)?;
                self.end();
                return Ok(Err(ending));
            }
            guard.set_prepared(Some(session)).map_err(failed)?;
        }
        let join = |(wish, seat): (Wish, Seat)| match seat {
            Seat::Own(guard) if !wish.alone => {
                let guard = guard.downgrade(&wish.session)?;
                Ok((wish, Seat::Own(guard)))
            }
            seat => Ok((wish, seat)),
        };
        let seats: Result<_, RoomError> = inside.0.into_iter().map(join).collect();
        Ok(Ok(Inside(seats.map_err(failed)?)))
    }

    /// After the command: says that the deaths are repaired, and tears down if this is the last one. How we end.
    pub(super) fn tear_down(
        &mut self,
        inside: &Inside,
        ending: Ending,
    ) -> Result<Ending, RunError> {
        if self.arguments.repaired && ending == Ending::Code(0) {
            for guard in inside.guards().filter(|guard| !guard.deaths().is_empty()) {
                guard.acknowledge().map_err(failed)?;
            }
        }
        let (Some(text), Some(guard)) = (&self.arguments.teardown, inside.guard()) else {
            return Ok(ending);
        };
        if !guard.try_alone().map_err(failed)? {
            return Ok(ending);
        }
        Guard::set_prepared(guard, None).map_err(failed)?;
        let torn_down = self.run(text, inside)?;
        if torn_down != Ending::Code(0) {
            complain("the tear-down failed");
        }
        Ok(if ending == Ending::Code(0) { torn_down } else { ending })
    }

    fn run(&mut self, text: &OsString, inside: &Inside) -> Result<Ending, RunError> {
        let variables = environment(inside, self.previous.as_deref());
        let command = Prepared::new(shell(text), &variables)?;
        let on_loss = self.arguments.on_loss;
        let supervision = Supervision { signals: self.signals, inside, on_loss };
        // Those who listen are told of the command only.
        let mut events = Events::to(None).map_err(|source| RunError::System {
            what: "begin",
            source: std::io::Error::other(source),
        })?;
        let Over { ending, loss, guardian, watch } =
            supervision.run(&command, &mut events, self.teller)?;
        self.watches.extend(watch);
        guardian.dismiss();
        match loss {
            Some(loss) => Err(RunError::Lost(loss.into())),
            None => Ok(ending),
        }
    }

    /// Once the room has been left.
    pub(super) fn end(&mut self) {
        self.watches.drain(..).for_each(Watch::end);
    }
}
