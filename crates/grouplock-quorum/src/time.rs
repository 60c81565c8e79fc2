//! Time, as the caller gives it.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment, in microseconds since an origin that all members share (such as 1970).
///
/// The core has no clock. It compares times of different members only to rank requests. If a clock
/// is wrong by a second, the requests of its member count as a second older or younger. Nothing
/// worse happens, also if the clock of a member goes back when it restarts.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Time(u64);

impl Time {
    /// The origin.
    pub const ZERO: Time = Time(0);

    /// The moment `micros` microseconds after the origin.
    pub fn from_micros(micros: u64) -> Self {
        Time(micros)
    }

    /// Microseconds since the origin.
    pub fn as_micros(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this; zero if this is not later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// A sum that does not fit becomes the latest time, which means "never".
impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, later: Duration) -> Time {
        Time(self.0.saturating_add(u64::try_from(later.as_micros()).unwrap_or(u64::MAX)))
    }
}

/// A difference before the origin becomes the origin.
impl Sub<Duration> for Time {
    type Output = Time;

    fn sub(self, earlier: Duration) -> Time {
        Time(self.0.saturating_sub(u64::try_from(earlier.as_micros()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06} s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// When the last message of a sender arrived, by our clock, and when it was sent, by the clock of
/// the sender. Only the sender compares the latter. Its clock may go back when it restarts, so the
/// last message may have an earlier time than those before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Heard {
    pub(crate) at: Time,
    pub(crate) sent: Time,
}
