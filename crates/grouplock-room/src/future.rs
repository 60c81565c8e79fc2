//! Entering from a task.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::RoomError;
use crate::guard::Guard;
use crate::policy::Priority;
use crate::request::{Patience, Request};
use crate::room::Room;
use crate::waiting::{self, Outcome, Waiting};

/// Entering, as a future for any executor.
///
/// The request takes its place in the queue when the future is first polled. In a directory, a request that has to
/// wait does so on a thread of its own, since there is no reactor that knows futexes. On servers it is in the queue when
/// the first answer is back; the task is not blocked until then.
///
/// # Cancel safety
/// Dropping the future withdraws the request before `drop` returns: nothing is left in the queue, and a grant that had
/// come already goes back to the room.
#[must_use = "futures do nothing unless polled"]
pub struct Enter {
    room: Room,
    session: Box<str>,
    priority: Priority,
    expected: Option<Duration>,
    patience: Patience,
    state: State,
}

enum State {
    New,
    Waiting(Waiting<'static>),
    Done,
}

impl Enter {
    pub(crate) fn new(room: Room, request: &Request<'_>) -> Self {
        Enter {
            room,
            session: request.session.into(),
            priority: request.priority,
            expected: request.expected,
            patience: request.patience,
            state: State::New,
        }
    }

    fn submit(&self) -> Result<Outcome<'static>, RoomError> {
        let request = Request {
            session: &self.session,
            priority: self.priority,
            expected: self.expected,
            patience: self.patience,
        };
        waiting::begin(&self.room, &request)
    }
}

impl Future for Enter {
    type Output = Result<Guard<'static>, RoomError>;

    /// # Panics
    /// If it is polled after it has completed.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if matches!(this.state, State::New) {
            this.state = State::Done;
            match this.submit()? {
                Outcome::Inside(guard) => return Poll::Ready(Ok(guard)),
                Outcome::Waiting(waiting) => this.state = State::Waiting(waiting),
            }
        }
        let State::Waiting(waiting) = &mut this.state else {
            panic!("polled after completion");
        };
        let result = waiting.poll(context, &this.session);
        if result.is_ready() {
            this.state = State::Done;
        }
        result
    }
}

impl fmt::Debug for Enter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enter").field("session", &self.session).finish_non_exhaustive()
    }
}
