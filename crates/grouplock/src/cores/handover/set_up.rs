//! Entering with set-up. The first request of a session that finds the room not set up asks to be
//! alone. Other requests of the session queue behind it.

use std::task::{Context, Poll};

use super::{Handover, Pass, Waiting, number_of};
use crate::sync;

/// A request may enter so often and find the room not set up, because another session entered
/// between it and the request that it queued behind. Then it asks to be alone, even if another
/// request has announced a set-up. Otherwise it could be overtaken forever.
const MAX_MISSED: u32 = 2;

/// A request with set-up, and whether it is inside.
type SetUpRequest<S> = (Waiting<S>, bool);

impl<S: Copy + Into<u32>> Handover<S> {
    /// Asks for `session`; or to be alone, if a set-up is needed and no other request announced it.
    fn ask_set_up(&self, session: S, missed: u32) -> SetUpRequest<S> {
        let number = number_of(session);
        let sets_up =
            !self.room.is_set_up(number) && self.room.announce(number, missed >= MAX_MISSED);
        // A request that asks before the announcing one finds the room not set up, and asks again.
        let (record, inside) = self.ask((!sets_up).then_some(session));
        (Waiting { record, sets_up: sets_up.then_some(number), missed }, inside)
    }

    /// The request is inside. Returns its pass, and whether it must set the room up. If the room is
    /// not set up and it may not do that, returns a new request that replaces it.
    fn settle(&self, request: &Waiting<S>, session: S) -> Result<(Pass<S>, bool), SetUpRequest<S>> {
        let Waiting { record, sets_up, missed } = *request;
        let number = number_of(session);
        let ready = self.room.is_set_up(number);
        if sets_up.is_some() {
            let mut pass = Pass { record: Some(record), session: None, sets_up };
            if ready {
                // Another request has set the room up meanwhile.
                pass.sets_up = None;
                self.room.retract(number);
                self.open(&mut pass, session);
            } else {
                self.room.begin_set_up(number);
            }
            Ok((pass, !ready))
        } else if ready {
            Ok((Pass { record: Some(record), session: Some(session), sets_up }, false))
        } else {
            let again = self.ask_set_up(session, missed.saturating_add(1));
            self.release(record);
            // The announcing request may be about to ask. It should ask first.
            sync::yield_now();
            Err(again)
        }
    }

    pub(super) fn wait_set_up(&self, session: S) -> (Pass<S>, bool) {
        let mut asked = self.ask_set_up(session, 0);
        loop {
            let (request, inside) = asked;
            if !inside {
                self.wait(request.record, None);
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
            None => self.begin_wait(self.ask_set_up(session, 0), waiting, || cx.waker().clone()),
            Some(request) if self.poll(request.record, || cx.waker().clone()) => {
                self.end_wait(waiting)
            }
            Some(_) => None,
        };
        while let Some(request) = inside {
            match self.settle(&request, session) {
                Ok(entered) => return Poll::Ready(entered),
                Err(again) => inside = self.begin_wait(again, waiting, || cx.waker().clone()),
            }
        }
        Poll::Pending
    }
}
