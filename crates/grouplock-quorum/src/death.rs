//! Deaths inside, and whether the next holders have learnt of them.
//!
//! A home notices that a process inside has been silent for a lease. RELEASE tells the arbiters of
//! the stage, and LOCKED passes it on. The next stage has a common arbiter with this one, so it
//! learns of the death. ENTER reports it to its processes. When one of them has been inside, the
//! death counts as reported. This also spreads, so that no third stage reports it again.
//!
//! No message asks for this, and the knowledge only grows. So messages may be lost, repeated and
//! reordered. If the knowledge of a stage is lost with its home, the arbiters that take their votes
//! back report a possible death. To report a death twice is better than never.

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// A death inside.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Death {
    /// The epoch of the stage. If it is not known: a number that is not smaller, and is smaller
    /// than the epoch of the next stage.
    pub epoch: u64,
    /// When it was noticed, by the clock of the member that noticed it.
    pub noticed: Time,
    /// The process that died. `None` if the home of the stage is gone too. Then it is not known
    /// whether a process was inside.
    pub who: Option<DeadProcess>,
}

/// The process that died.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeadProcess {
    /// Its session.
    pub session: String,
    /// The id of the process on its machine. 0 if its home has restarted since it entered.
    pub pid: u32,
}

/// The last known death.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KnownDeath {
    /// The death.
    pub death: Death,
    /// A process of a later stage was inside and has learnt of it.
    pub reported: bool,
}

impl KnownDeath {
    /// Whether this is newer than `known`: a later death, or the report of the same one.
    pub(crate) fn is_news(&self, known: Option<&KnownDeath>) -> bool {
        known.is_none_or(|known| {
            let later = self.death.epoch > known.death.epoch;
            later || (self.death.epoch == known.death.epoch && self.reported && !known.reported)
        })
    }
}
