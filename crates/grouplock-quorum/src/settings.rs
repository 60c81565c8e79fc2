//! What the members of a cluster agree on.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::rank::Precedence;

/// Must be the same at all members and processes of a cluster.
///
/// ```
/// use std::time::Duration;
/// use grouplock_quorum::{Precedence, Settings};
///
/// let settings = Settings {
///     precedence: Precedence::Aged { weight: Duration::from_secs(30) },
///     ..Settings::default()
/// };
/// assert_eq!(settings.lease, None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Settings {
    /// How priority and waiting are weighed.
    pub precedence: Precedence,
    /// How long a message to a process takes, for the admission rule: the paper's tc.
    pub link_delay: Duration,
    /// How long to wait for an answer before asking again. Longer than a message and its answer take.
    pub retry: Duration,
    /// How long a process may be silent before it is taken for dead; `None` if the transport tells deaths by
    /// sending [`Leave`](crate::ProcessMessage::Leave) itself. At least four times `retry`.
    pub lease: Option<Duration>,
}

impl Default for Settings {
    /// A step of priority is worth ten seconds; answers are expected within one; no leases.
    fn default() -> Self {
        Settings {
            precedence: Precedence::Aged { weight: Duration::from_secs(10) },
            link_delay: Duration::ZERO,
            retry: Duration::from_secs(1),
            lease: None,
        }
    }
}
