//! Time as the caller tells it.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment, in microseconds since an origin that all members share (such as 1970).
///
/// The core has no clock. It compares the times of different members only to rank requests: a clock that is
/// wrong by a second makes its member's requests a second older or younger than they are, and nothing worse.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Time(u64);

impl Time {
    /// The origin.
    pub const ZERO: Time = Time(0);

    /// That many microseconds after the origin.
    pub fn from_micros(micros: u64) -> Self {
        Time(micros)
    }

    /// Microseconds since the origin.
    pub fn as_micros(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// The latest time there is stands for "never" when a sum does not fit.
impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, later: Duration) -> Time {
        Time(self.0.saturating_add(u64::try_from(later.as_micros()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06} s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// The last message from somebody: when it came, by our clock, and when it was sent, by the sender's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Heard {
    pub(crate) at: Time,
    pub(crate) sent: Time,
}

impl Heard {
    /// The one that was sent later: messages may overtake each other.
    pub(crate) fn later(self, other: Heard) -> Heard {
        if other.sent >= self.sent { other } else { self }
    }
}
