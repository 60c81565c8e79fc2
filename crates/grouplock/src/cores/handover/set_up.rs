//! Entering with set-up: the first of a session that finds the room not set up asks to be alone, and the others line up behind it.

use std::task::{Context, Poll};

use super::{Handover, Pass, Waiting, number_of};
use crate::sync;

/// So often a request is let in and finds the room not set up, because another session came between it and the one that it lined up behind. Then it asks to
/// be alone, even if a later one is on its way to set up: else it might be overtaken for ever.
const PATIENCE: u32 = 2;

/// A request with set-up, and whether it is inside.
type Asked<S> = (Waiting<S>, bool);

impl<S: Copy + Into<u32>> Handover<S> {
    /// Asks for `session`, or to be alone if the room is to be set up for it and nobody is on its way to do that.
    fn ask_set_up(&self, session: S, in_vain: u32) -> Asked<S> {
        let number = number_of(session);
        let comes = !self.room.is_set_up(number) && self.room.comes(number, in_vain >= PATIENCE);
        // One that asks before the one that sets up has done so will find the room not set up, and ask again.
        let (seat, inside) = self.ask((!comes).then_some(session));
        (Waiting { seat, sets_up: comes.then_some(number), in_vain }, inside)
    }

    /// The request is inside. What becomes of it; or another that has come in its place, if the room is not set up.
    fn settle(&self, request: &Waiting<S>, session: S) -> Result<(Pass<S>, bool), Asked<S>> {
        let Waiting { seat, sets_up, in_vain } = *request;
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
            let again = self.ask_set_up(session, in_vain.saturating_add(1));
            self.leave_seat(seat);
            // The one that sets up may be about to ask. It is not to be outrun.
            sync::yield_now();
            Err(again)
        }
    }

    pub(super) fn wait_set_up(&self, session: S) -> (Pass<S>, bool) {
        let mut asked = self.ask_set_up(session, 0);
        loop {
            let (request, inside) = asked;
            if !inside {
                self.wait(request.seat, None);
            }
            match self.settle(&request, session) {
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
        let mut inside = match waiting {
            None => self.begin_wait_set_up(self.ask_set_up(session, 0), waiting, cx),
            Some(request) if self.poll(request.seat, || cx.waker().clone()) => {
                self.end_wait(waiting)
            }
            Some(_) => None,
        };
        while let Some(request) = inside {
            match self.settle(&request, session) {
                Ok(entered) => return Poll::Ready(entered),
                Err(again) => inside = self.begin_wait_set_up(again, waiting, cx),
            }
        }
        Poll::Pending
    }

    /// The request, if it is inside. Else it waits.
    fn begin_wait_set_up(
        &self,
        (request, inside): Asked<S>,
        waiting: &mut Option<Waiting<S>>,
        cx: &mut Context<'_>,
    ) -> Option<Waiting<S>> {
        if inside {
            return Some(request);
        }
        self.begin_wait(request, waiting, || cx.waker().clone())
    }
}
