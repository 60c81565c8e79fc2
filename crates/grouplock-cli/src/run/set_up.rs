//! The set-up before the command and the tear-down after it. Both run alone.

use std::ffi::OsString;
use std::ops::ControlFlow;

use grouplock_room::RoomError;

use super::arguments::{Arguments, shell};
use super::child::PreparedCommand;
use super::holdings::{Holding, Holdings};
use super::supervise::{Finished, Supervision, Watch};
use super::{RunError, environment};
use crate::entering::{RoomRequest, StderrReport};
use crate::events::Events;
use crate::exit::{Ending, complain};
use crate::system::signals::Signals;

pub(super) struct SetUp<'a> {
    arguments: &'a Arguments,
    signals: &'a Signals,
    report: &'a StderrReport,
    /// The session that the room was set up for before, unless it was torn down.
    pub(super) previous: Option<String>,
    /// They end after the room was left.
    watches: Vec<Watch>,
}

impl<'a> SetUp<'a> {
    pub(super) fn new(
        arguments: &'a Arguments,
        signals: &'a Signals,
        report: &'a StderrReport,
        holdings: &Holdings,
    ) -> Self {
        // A room without support for set-up was never set up.
        let previous = holdings.guard().and_then(|guard| guard.previous().ok().flatten());
        SetUp { arguments, signals, report, previous, watches: Vec::new() }
    }

    /// Sets the room up, unless another process has done it, and lets the session join. If the
    /// set-up fails, the room is left, and its ending is returned.
    pub(super) fn set_up(
        &mut self,
        holdings: Holdings,
    ) -> Result<ControlFlow<Ending, Holdings>, RunError> {
        let (Some(text), [(request, Holding::Own(guard))]) =
            (&self.arguments.setup, &holdings.0[..])
        else {
            return Ok(ControlFlow::Continue(holdings));
        };
        let session = request.session.as_str();
        if guard.prepared()?.as_deref() != Some(session) {
            guard.set_prepared(None)?;
            let ending = self.run(text, &holdings)?;
            if ending != Ending::Code(0) {
                complain("the set-up failed, so the command was not run");
                holdings.leave().map_err(RunError::Lost)?;
                self.end();
                return Ok(ControlFlow::Break(ending));
            }
            guard.set_prepared(Some(session))?;
        }
        let join = |(request, holding): (RoomRequest, Holding)| match holding {
            Holding::Own(guard) if !request.alone => {
                let guard = guard.downgrade(&request.session)?;
                Ok((request, Holding::Own(guard)))
            }
            holding => Ok((request, holding)),
        };
        let joined: Result<_, RoomError> = holdings.0.into_iter().map(join).collect();
        Ok(ControlFlow::Continue(Holdings(joined?)))
    }

    /// After the command: acknowledges deaths, and tears down if this is the last holder. Returns
    /// the ending of grouplock.
    pub(super) fn tear_down(
        &mut self,
        holdings: &Holdings,
        ending: Ending,
    ) -> Result<Ending, RunError> {
        if self.arguments.repaired && ending == Ending::Code(0) {
            for guard in holdings.guards().filter(|guard| !guard.deaths().is_empty()) {
                match guard.acknowledge() {
                    // Such a room does not repeat its reports.
                    Ok(()) | Err(RoomError::Unsupported { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        let (Some(text), Some(guard)) = (&self.arguments.teardown, holdings.guard()) else {
            return Ok(ending);
        };
        if !guard.try_alone()? {
            return Ok(ending);
        }
        guard.set_prepared(None)?;
        let torn_down = self.run(text, holdings)?;
        if torn_down != Ending::Code(0) {
            complain("the tear-down failed");
        }
        Ok(if ending == Ending::Code(0) { torn_down } else { ending })
    }

    fn run(&mut self, text: &OsString, holdings: &Holdings) -> Result<Ending, RunError> {
        let variables = environment(holdings, self.previous.as_deref());
        let command = PreparedCommand::new(shell(text), &variables)?;
        let on_loss = self.arguments.on_loss;
        let supervision = Supervision { signals: self.signals, holdings, on_loss };
        // Events are only about the command.
        let mut events = Events::default();
        let Finished { ending, loss, guardian, watch } =
            supervision.run(&command, &mut events, self.report)?;
        self.watches.extend(watch);
        guardian.dismiss();
        match loss {
            Some(loss) => Err(RunError::Lost(loss.into())),
            None => Ok(ending),
        }
    }

    /// Call it after the room was left.
    pub(super) fn end(&mut self) {
        self.watches.drain(..).for_each(Watch::end);
    }
}
