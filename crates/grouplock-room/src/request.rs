//! What someone who wants to enter says.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use crate::policy::Priority;

/// How long to wait for admission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Patience {
    /// As long as it takes.
    #[default]
    Unlimited,
    /// Until then. A moment that has passed already is as good as [`None`](Patience::None).
    Until(Instant),
    /// Enter at once or not at all.
    None,
}

impl Patience {
    /// For that long from now; without limit if the clock cannot count that far.
    pub fn for_time(time: Duration) -> Self {
        Instant::now().checked_add(time).map_or(Patience::Unlimited, Patience::Until)
    }

    /// Whether there is none left.
    pub fn exhausted(self) -> bool {
        match self {
            Patience::Unlimited => false,
            Patience::Until(deadline) => deadline <= Instant::now(),
            Patience::None => true,
        }
    }

    /// When it ends, if it ends at a time.
    pub fn deadline(self) -> Option<Instant> {
        match self {
            Patience::Until(deadline) => Some(deadline),
            Patience::Unlimited | Patience::None => None,
        }
    }
}

/// A request for entry, as the [backends](crate::Backend) get it.
///
/// Two requests are **compatible** if they name the same session, neither is [alone](Request::alone), and the number of
/// holders exceeds nobody's [`at_most`](Request::at_most). Those inside are the longest compatible beginning of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request<'s> {
    /// The session.
    pub session: &'s str,
    /// Nobody else may be inside, not even the same session. Then the session is only a name.
    pub alone: bool,
    /// How many holders there may be while this one is inside, itself included.
    pub at_most: Option<NonZeroU32>,
    /// How urgent it is.
    pub priority: Priority,
    /// How long the holder expects to stay.
    pub expected: Option<Duration>,
    /// How long to wait.
    pub patience: Patience,
}

impl<'s> Request<'s> {
    /// To enter `session`, waiting as long as it takes.
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
}
