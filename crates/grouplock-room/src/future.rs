//! Entering from a task.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::backend::{Pending, Submitted};
use crate::error::RoomError;
use crate::guard::Guard;
use crate::request::Request;
use crate::room::Room;

/// The future of an entry, for any executor.
///
/// The first poll submits the request. In a directory, a request that must wait gets a thread of
/// its own, because no reactor knows futexes. On servers, the request is in the queue when the
/// first answer arrives, and the task is not blocked until then.
///
/// # Cancel safety
/// Dropping the future withdraws the request before `drop` returns. If the request was already
/// granted, the room is left. On servers, `drop` waits at most two seconds for their answer.
#[must_use = "futures do nothing unless polled"]
pub struct Enter {
    room: Room,
    session: Box<str>,
    /// The request without its session.
    request: Request<'static>,
    state: State,
}

enum State {
    /// The error if the request was refused.
    New(Option<RoomError>),
    Waiting(Box<dyn Pending>),
    Done,
}

impl Enter {
    pub(crate) fn new(room: Room, request: &Request<'_>, checked: Result<(), RoomError>) -> Self {
        Enter {
            room,
            session: request.session.into(),
            request: request.with_session(""),
            state: State::New(checked.err()),
        }
    }

    fn submit(&self) -> Result<Submitted, RoomError> {
        self.room.backend.begin(&self.request.with_session(&self.session))
    }
}

impl Future for Enter {
    type Output = Result<Guard<'static>, RoomError>;

    /// # Panics
    /// If it is polled after it has completed.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let State::New(refused) = &mut this.state {
            let refused = refused.take();
            this.state = State::Done;
            match refused.map_or_else(|| this.submit(), Err)? {
                Submitted::Granted(holding) => {
                    return Poll::Ready(Ok(Guard::new(&this.room, &this.session, holding)));
                }
                Submitted::Waiting(waiting) => this.state = State::Waiting(waiting),
            }
        }
        let State::Waiting(waiting) = &mut this.state else {
            panic!("polled after completion");
        };
        let result = ready!(waiting.poll(context));
        this.state = State::Done;
        Poll::Ready(result.map(|holding| Guard::new(&this.room, &this.session, holding)))
    }
}

impl fmt::Debug for Enter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enter").field("session", &self.session).finish_non_exhaustive()
    }
}
