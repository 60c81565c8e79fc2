//! The order of admission.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::duration::parse_duration;
use crate::error::RoomError;

/// The order in which a room admits requests. It belongs to the room, and is fixed when the room is
/// created. Rooms on servers have the policy of the servers.
///
/// Every policy promises: no request waits forever, unless a holder stays forever. A request that
/// finds the room empty and without waiters enters at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// First come, first served between requests of different sessions. A request enters after all
    /// earlier requests of other sessions have left or were withdrawn. So a request can join the
    /// session inside only while no other session waits.
    #[default]
    Fifo,

    /// As [`Fifo`](Policy::Fifo), but a request may pass waiters of other sessions to join its own
    /// session inside. No waiter is passed more than `passes` times.
    Batch {
        /// How often later requests may pass a waiter.
        passes: u32,
    },

    /// By rank: the time of arrival minus `aging` × [`Priority`]. The smallest rank is first. A
    /// request of priority 3 counts as if it had arrived three times `aging` earlier. So it goes
    /// before requests that arrived at about the same time, and no request is passed by others that
    /// arrive much later.
    Priority {
        /// The waiting time that equals one step of priority.
        aging: Duration,
    },
}

impl Policy {
    /// The syntax that [`FromStr`] accepts.
    pub const SYNTAX: &'static str = "`fifo`, `batch:PASSES` or `priority:AGING` with AGING a \
                                      length of time such as `30s`, `500ms` or `2m30s`";
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Fifo => f.write_str("fifo"),
            Policy::Batch { passes } => write!(f, "batch:{passes}"),
            Policy::Priority { aging } if aging.subsec_nanos() == 0 => {
                write!(f, "priority:{}s", aging.as_secs())
            }
            Policy::Priority { aging } if aging.subsec_nanos() % 1_000_000 == 0 => {
                write!(f, "priority:{}ms", aging.as_millis())
            }
            Policy::Priority { aging } => write!(f, "priority:{}ns", aging.as_nanos()),
        }
    }
}

impl FromStr for Policy {
    type Err = RoomError;

    /// As [`Display`](fmt::Display) writes it.
    ///
    /// ```
    /// use grouplock_room::Policy;
    ///
    /// assert_eq!("fifo".parse::<Policy>()?, Policy::Fifo);
    /// assert_eq!("batch:8".parse::<Policy>()?, Policy::Batch { passes: 8 });
    /// assert!("priority".parse::<Policy>().is_err());
    /// # Ok::<(), grouplock_room::RoomError>(())
    /// ```
    fn from_str(text: &str) -> Result<Self, RoomError> {
        match text.split_once(':') {
            None if text == "fifo" => Some(Policy::Fifo),
            Some(("batch", passes)) => passes.parse().ok().map(|passes| Policy::Batch { passes }),
            Some(("priority", aging)) => {
                parse_duration(aging).ok().map(|aging| Policy::Priority { aging })
            }
            _ => None,
        }
        .ok_or_else(|| RoomError::BadOption {
            what: "the policy",
            value: format!("`{text}`"),
            expected: format!("expected {}", Policy::SYNTAX),
        })
    }
}

/// The urgency of a request. Larger goes first. The default is 0, and negative numbers are for work
/// that can wait.
///
/// Rooms always record and show it. It changes the order only in rooms with [`Policy::Priority`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Priority(pub i32);

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<i32> for Priority {
    fn from(level: i32) -> Self {
        Priority(level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_reads_as_it_is_written() {
        for policy in [
            Policy::Fifo,
            Policy::Batch { passes: 0 },
            Policy::Batch { passes: 7 },
            Policy::Priority { aging: Duration::from_secs(30) },
            Policy::Priority { aging: Duration::from_millis(1500) },
            Policy::Priority { aging: Duration::from_nanos(1) },
        ] {
            assert_eq!(policy.to_string().parse::<Policy>().unwrap(), policy);
        }
    }

    #[test]
    fn what_is_no_policy_is_refused_with_what_would_be() {
        for text in
            ["", "lifo", "fifo:3", "batch", "batch:-1", "batch:x", "priority:5x", "priority:s"]
        {
            let message = text.parse::<Policy>().unwrap_err().to_string();
            assert!(message.contains(&format!("`{text}`")), "{message}");
            assert!(message.contains("batch:PASSES"), "{message}");
        }
    }
}
