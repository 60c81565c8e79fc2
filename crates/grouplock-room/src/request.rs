//! What a request for entry says.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use crate::policy::Priority;

/// How long to wait for the entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Patience {
    /// Without a limit.
    #[default]
    Unlimited,
    /// Until this time. A time in the past means the same as [`None`](Patience::None).
    Until(Instant),
    /// Enter at once or fail.
    None,
}

impl Patience {
    /// For this long from now. If the clock cannot represent the end, without a limit.
    pub fn for_time(time: Duration) -> Self {
        Instant::now().checked_add(time).map_or(Patience::Unlimited, Patience::Until)
    }

    /// Whether no time is left.
    pub fn exhausted(self) -> bool {
        match self {
            Patience::Unlimited => false,
            Patience::Until(deadline) => deadline <= Instant::now(),
            Patience::None => true,
        }
    }

    /// The end of the wait, if it has one.
    pub fn deadline(self) -> Option<Instant> {
        match self {
            Patience::Until(deadline) => Some(deadline),
            Patience::Unlimited | Patience::None => None,
        }
    }
}

/// A request for entry, as [backends](crate::Backend) receive it.
///
/// Two requests are **compatible** if they name the same session, neither is
/// [alone](Request::alone), and the number of holders exceeds no [`at_most`](Request::at_most). The
/// holders are the longest compatible beginning of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request<'s> {
    /// The session.
    pub session: &'s str,
    /// Whether the holder must be the only one inside. Then the session is only a name.
    pub alone: bool,
    /// The largest number of holders while this one is inside, itself included.
    pub at_most: Option<NonZeroU32>,
    /// The urgency.
    pub priority: Priority,
    /// How long the holder expects to stay.
    pub expected: Option<Duration>,
    /// How long to wait.
    pub patience: Patience,
}

impl<'s> Request<'s> {
    /// Enters `session`. Waits without a limit.
    pub fn new(session: &'s str) -> Self {
        Request {
            session,
            alone: false,
            at_most: None,
            priority: Priority::default(),
            expected: None,
            patience: Patience::default(),
        }
    }

    /// The same request with another session.
    pub(crate) fn with_session<'t>(&self, session: &'t str) -> Request<'t> {
        Request {
            session,
            alone: self.alone,
            at_most: self.at_most,
            priority: self.priority,
            expected: self.expected,
            patience: self.patience,
        }
    }
}
