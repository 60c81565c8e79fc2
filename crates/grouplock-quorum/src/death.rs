//! Who died inside, and whether those who came after were told.
//!
//! A home notices that a process inside is silent for a lease. RELEASE tells the arbiters of the stage, and LOCKED tells it on. The next
//! stage has an arbiter in common with this one, so it knows, and its processes are told with ENTER. Once one of them has been
//! inside the death counts as told, and what is known of it goes on with that mark, so that no third stage tells it again.
//!
//! Nothing of this is asked for, and what is known only ever grows, so messages may be lost, repeated and reordered. If what is known of a
//! stage is lost with its home, the arbiters that take their votes back say that somebody may have died. It is better to
//! tell a death twice than never.

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Somebody died inside.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Death {
    /// The epoch of the stage. If that is not known, one that is not smaller, and smaller than that of the next stage.
    pub epoch: u64,
    /// When it was noticed, by the clock of who did.
    pub noticed: Time,
    /// Who it was. `None` if the home of the stage is gone too: then it is not even known that somebody was inside.
    pub who: Option<Dead>,
}

/// Who died.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Dead {
    /// Its session.
    pub session: String,
    /// What the process is called on its machine. 0 if its home has started again since it entered.
    pub pid: u32,
}

/// The last death that is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Died {
    /// It.
    pub death: Death,
    /// A process of a later stage was told, and was inside.
    pub told: bool,
}

impl Died {
    /// Whether the other one is news: a later death, or that this one was told.
    pub(crate) fn is_news(&self, known: Option<&Died>) -> bool {
        known.is_none_or(|known| {
            let later = self.death.epoch > known.death.epoch;
            later || (self.death.epoch == known.death.epoch && self.told && !known.told)
        })
    }
}
