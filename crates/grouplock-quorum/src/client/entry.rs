//! One request, from asking to having left.

use std::time::Duration;

use grouplock_room::RoomError;
use grouplock_room::remote::Desk;

use super::clock::before;
use super::decision::Decision;
use crate::name::MemberId;
use crate::process::Process;
use crate::rank::Claim;
use crate::time::Time;
use crate::wire::About;

/// How long before its patience ends a request whose home is down is told so.
pub(super) const FAREWELL: Duration = Duration::from_millis(20);

/// A request and what has become of it.
pub(super) struct Entry {
    pub(super) room: String,
    pub(super) session: String,
    pub(super) home: MemberId,
    pub(super) process: Process,
    pub(super) about: About,
    pub(super) desk: Desk,
    pub(super) phase: Phase,
    /// How it stands, once its home has told.
    pub(super) claim: Option<Claim>,
    /// Whether its home has answered on this connection, and so knows what it is.
    pub(super) introduced: bool,
    /// When it is told if its home is down, until then.
    pub(super) farewell: Option<Time>,
    /// When its patience ends, until that has been told.
    pub(super) deadline: Option<Time>,
    /// When its timer goes off.
    pub(super) armed: Option<Time>,
    /// It was let in when it did not want to be any more: nobody was told who had died.
    pub(super) unwanted: bool,
}

pub(super) enum Phase {
    Asking(Decision),
    Inside {
        /// When others may be let in unless the home is heard before.
        ends: Option<Time>,
        /// The holder has been told that it lost the place.
        lost: bool,
    },
    /// It is over, and its home has to hear of it.
    Ending {
        /// What to tell then.
        error: Option<RoomError>,
        /// When the home knows without being told.
        until: Time,
    },
}

/// How long before others may be let in a holder is told of its loss: time to end what it does.
pub(super) fn notice(lease: Duration) -> Duration {
    lease / 8
}

/// How much two clocks may go apart during a lease.
pub(super) fn drift(lease: Duration) -> Duration {
    lease / 64
}

impl Entry {
    /// When the timer has to go off.
    pub(super) fn due(&self, lease: Duration) -> Option<Time> {
        match &self.phase {
            Phase::Asking(decision) => {
                let decision = match decision {
                    Decision::Made => None,
                    Decision::Open { by } | Decision::Looking { by } => Some(*by),
                    Decision::Look { at, by } => Some(*at.min(by)),
                };
                [decision, self.process.poll_timeout(), self.farewell, self.deadline]
                    .into_iter()
                    .flatten()
                    .min()
            }
            // The holder has until `ends`; the home hears of it when it would have given the place away by itself.
            Phase::Inside { ends, lost: true } => ends.map(|ends| ends + drift(lease)),
            Phase::Inside { ends, lost: false } => {
                let told = ends.map(|ends| before(ends, notice(lease)));
                told.into_iter().chain(self.process.poll_timeout()).min()
            }
            Phase::Ending { until, .. } => Some(*until),
        }
    }
}
