//! What the members of a cluster agree on.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::rank::Precedence;

/// Who enters with a stage, of those who wait for its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Admission {
    /// All of them, also those who came after somebody who waits for another session. This is the paper's rule: the
    /// most are inside together. A newcomer joins a stage under way if nobody competes.
    #[default]
    Together,
    /// Those whose claim is better than that of everyone who waits for another session, at the beginning and
    /// later: first come, first served between sessions, as far as the clocks of the members agree.
    InOrder,
}

/// Whose votes a member may count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Votes {
    /// Those of any quorum of the coterie. A member asks its own quorum, and another one while somebody in its own cannot be
    /// reached. So a dead member stops nobody as long as a quorum stands.
    #[default]
    AnyQuorum,
    /// Those of its own quorum only, as in the paper. A dead member stops all whose quorum it is in.
    OwnQuorum,
}

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
    /// Who enters with a stage. Whichever it is, a newcomer also joins if it will be out before those inside are, by
    /// what they said: that delays nobody.
    pub admission: Admission,
    /// Whose votes count.
    pub votes: Votes,
    /// How long to wait for an answer before asking again. Longer than a message and its answer take.
    pub retry: Duration,
    /// How long a process may be silent before it is taken for dead; `None` if the transport tells deaths by
    /// sending [`Leave`](crate::ProcessMessage::Leave) itself. At least four times `retry`. With it votes are leased too: a home
    /// that is silent for about one and a half leases loses them, and its processes have lost their places before.
    pub lease: Option<Duration>,
}

impl Default for Settings {
    /// A step of priority is worth ten seconds; answers are expected within one; no leases.
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
    /// How old the last word of an arbiter may be for its vote to count: then a process may be told that it is inside
    /// for another lease.
    pub(crate) fn fresh(&self) -> Option<Duration> {
        self.lease.map(|lease| lease / 2)
    }

    /// After so long without a word of its arbiters a home has lost its stage. All its processes know it by then.
    pub(crate) fn lapse(&self) -> Option<Duration> {
        self.lease.map(|lease| lease + lease / 2)
    }

    /// After so long without a word of its owner an arbiter takes its vote back: later than the owner gives
    /// up, though its clock may be the slower one. A member without its memory waits as long before it votes.
    pub fn vote_lease(&self) -> Option<Duration> {
        self.lease.map(|lease| lease + lease / 2 + lease / 32)
    }
}
