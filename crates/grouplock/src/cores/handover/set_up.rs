//! Entering with set-up: the first of a session that finds the room not set up asks to be alone, and the others line up behind it.

use std::task::{Context, Poll};

use super::seats::Owned;
use super::{Handover, Pass, Waiting, number_of};
use crate::sync;

/// A request with set-up: its seat, whether it sets the room up, and whether it is inside.
type Asked<S> = (Owned<S>, Option<u64>, bool);

impl<S: Copy + Into<u32>> Handover<S> {
    /// Asks for `session`, or to be alone if the room is to be set up for it and nobody is on its way to do that.
    fn ask_set_up(&self, session: S) -> Asked<S> {
        let number = number_of(session);
        let first = !self.room.is_set_up(number) && self.room.comes(number);
        // One that asks before the one that sets up has done so will find the room not set up, and ask again.
        let (seat, inside) = self.ask((!first).then_some(session));
        (seat, first.then_some(number), inside)
    }

    /// The request is inside. What becomes of it; or another that has come in its place, if the room is not set up.
    fn settle(
        &self,
        seat: Owned<S>,
        sets_up: Option<u64>,
        session: S,
    ) -> Result<(Pass<S>, bool), Asked<S>> {
        let number = number_of(session);
        let ready = self.room.is_set_up(number);
        if sets_up.is_some() {
            let mut pass = Pass { seat: Some(seat), session: None, sets_up };
            if ready {
                // Another has done it meanwhile.
                pass.sets_up = None;
                self.room.has_come(number);
                self.open(&mut pass, session);
            } else {
                self.room.begins(number);
            }
            Ok((pass, !ready))
        } else if ready {
            Ok((Pass { seat: Some(seat), session: Some(session), sets_up }, false))
        } else {
            let again = self.ask_set_up(session);
            self.leave_seat(seat);
            // The one that sets up may be about to ask. It is not to be outrun for ever.
            sync::yield_now();
            Err(again)
        }
    }

    pub(super) fn wait_set_up(&self, session: S) -> (Pass<S>, bool) {
        let mut asked = self.ask_set_up(session);
        loop {
            let (seat, sets_up, inside) = asked;
            if !inside {
                self.wait(seat, None);
            }
            match self.settle(seat, sets_up, session) {
                Ok(entered) => return entered,
                Err(again) => asked = again,
            }
        }
    }

    pub(super) fn poll_set_up(
        &self,
        session: S,
        waiting: &mut Option<Waiting<S>>,
        cx: &mut Context<'_>,
    ) -> Poll<(Pass<S>, bool)> {
        let mut asked = if let Some(Waiting { seat, sets_up }) = waiting {
            let asked = (*seat, *sets_up, true);
            if !self.poll(*seat, || cx.waker().clone()) {
                return Poll::Pending;
            }
            self.end_wait(waiting);
            asked
        } else {
            self.ask_set_up(session)
        };
        loop {
            let (seat, sets_up, inside) = asked;
            if !inside && !self.begin_wait(seat, sets_up, waiting, || cx.waker().clone()) {
                return Poll::Pending;
            }
            match self.settle(seat, sets_up, session) {
                Ok(entered) => return Poll::Ready(entered),
                Err(again) => asked = again,
            }
        }
    }
}
