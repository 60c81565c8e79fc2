//! The settings that all members of a cluster share.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::rank::Precedence;

/// Which waiting requests of a session enter with its stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Admission {
    /// All of them, also those that came after a request for another session. This is the paper's
    /// rule: it lets the most processes share. A later request joins a stage if no other group
    /// competes.
    #[default]
    Together,
    /// Those with a better claim than all requests for other sessions, when the stage begins and
    /// later. So sessions are first come, first served, as far as the clocks of the members agree.
    InOrder,
}

/// Whose votes count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Votes {
    /// The votes of any quorum of the coterie. A member asks its own quorum first. It asks another
    /// one while its own cannot be reached. So a dead member stops nobody as long as one quorum is
    /// up.
    #[default]
    AnyQuorum,
    /// Only the votes of its own quorum, as in the paper. A dead member stops every member whose
    /// quorum it is in.
    OwnQuorum,
}

/// The settings. They must be the same at all members and processes of a cluster.
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
    /// How priority and waiting time compare.
    pub precedence: Precedence,
    /// Which requests enter with a stage. With both rules, a request also joins if it will leave
    /// before those inside, by their declared stays: that delays nobody.
    pub admission: Admission,
    /// Whose votes count.
    pub votes: Votes,
    /// How long to wait for an answer before asking again. It must be longer than a message and its
    /// answer take.
    pub retry: Duration,
    /// How long a process may be silent before it counts as dead; at least four times `retry`.
    /// `None` if the transport reports deaths by [`Leave`](crate::ProcessMessage::Leave). With
    /// leases, votes are leased too: a home that is silent for about one and a half leases loses
    /// them. Its processes have lost their holdings before that.
    pub lease: Option<Duration>,
}

impl Default for Settings {
    /// A step of priority is worth ten seconds. Answers take at most one second. There are no
    /// leases.
    fn default() -> Self {
        Settings {
            precedence: Precedence::Aged { weight: Duration::from_secs(10) },
            admission: Admission::Together,
            votes: Votes::AnyQuorum,
            retry: Duration::from_secs(1),
            lease: None,
        }
    }
}

impl Settings {
    /// How old the last answer of an arbiter may be for its vote to count. Then a process may be
    /// inside for one more lease.
    pub(crate) fn fresh(&self) -> Option<Duration> {
        self.lease.map(|lease| lease / 2)
    }

    /// After this time without an answer of its arbiters, a home has lost its stage. All its
    /// processes know it by then.
    pub(crate) fn lapse(&self) -> Option<Duration> {
        self.lease.map(|lease| lease + lease / 2)
    }

    /// After this time without a message of its owner, an arbiter takes its vote back. This is
    /// later than the owner stops, even if the clock of the owner is slower. A member without
    /// memory waits for the same time before it votes.
    pub fn vote_lease(&self) -> Option<Duration> {
        self.lease.map(|lease| lease + lease / 2 + lease / 32)
    }
}
