//! Who goes first.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::duration::parse_duration;
use crate::error::RoomError;

/// The order in which a room admits. It belongs to the room and is fixed when the room is created.
///
/// Whatever the policy: nobody waits for ever unless a holder stays for ever, and a request that finds the
/// room empty with nobody waiting enters at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// First come, first served between requests of different sessions: a request enters only after every
    /// request of another session that came before it has entered and left, or has given up. So the
    /// session inside can be joined only as long as no other session waits.
    #[default]
    Fifo,

    /// As [`Fifo`](Policy::Fifo), except that a request may pass those of other sessions that wait in front
    /// of it to join its own session inside, as long as none of them is passed more than `passes` times.
    Batch {
        /// How often a waiting request may be passed by later ones.
        passes: u32,
    },

    /// By rank: time of arrival minus `aging` × [`Priority`], the smallest first. A request of priority 3
    /// is treated as if it had come three times `aging` earlier, so it goes first among those that
    /// came about when it did, and nobody is passed by requests that come long after.
    Priority {
        /// How much waiting outweighs one step of priority.
        aging: Duration,
    },
}

impl Policy {
    /// What [`FromStr`] understands.
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
        let bad = || RoomError::BadOption {
            what: "the policy",
            value: format!("`{text}`"),
            expected: format!("expected {}", Policy::SYNTAX),
        };
        let (kind, value) = match text.split_once(':') {
            Some((kind, value)) => (kind, Some(value)),
            None => (text, None),
        };
        match (kind, value) {
            ("fifo", None) => Ok(Policy::Fifo),
            ("batch", Some(passes)) => {
                passes.parse().map(|passes| Policy::Batch { passes }).map_err(|_| bad())
            }
            ("priority", Some(aging)) => {
                parse_duration(aging).map(|aging| Policy::Priority { aging }).map_err(|_| bad())
            }
            _ => Err(bad()),
        }
    }
}

/// How urgent a request is. Larger goes first; 0 is the default, negative is for what can wait.
///
/// It is always recorded and shown. It changes the order only in rooms with [`Policy::Priority`].
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
