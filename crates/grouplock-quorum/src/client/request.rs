//! One request, from the first message until it has left.

use std::time::Duration;

use grouplock_room::RoomError;
use grouplock_room::remote::Desk;

use super::driver::decision::Decision;
use crate::name::MemberId;
use crate::process::Process;
use crate::rank::Claim;
use crate::time::Time;
use crate::wire::About;

/// How long before the end of its patience a request learns that its home is down.
pub(super) const FAREWELL: Duration = Duration::from_millis(20);

/// A request and its progress.
pub(super) struct ClientRequest {
    pub(super) room: String,
    pub(super) session: String,
    pub(super) home: MemberId,
    pub(super) process: Process,
    pub(super) about: About,
    pub(super) desk: Desk,
    pub(super) progress: Progress,
    /// Its claim, once the home has reported it.
    pub(super) claim: Option<Claim>,
    /// The home has answered on this connection, so it knows the details of the process.
    pub(super) introduced: bool,
    /// When the request fails if its home is down then.
    pub(super) farewell: Option<Time>,
    /// When its patience ends, until that is reported.
    pub(super) deadline: Option<Time>,
    /// When its timer is set.
    pub(super) armed: Option<Time>,
    /// It was admitted when the program no longer wanted it, so the program has not learnt of
    /// deaths.
    pub(super) unwanted: bool,
}

pub(super) enum Progress {
    Asking(Decision),
    Inside {
        /// When others may be admitted, unless the home renews the lease.
        ends: Option<Time>,
        /// The holder knows that it lost the holding.
        lost: bool,
    },
    /// It is over, and its home must learn of it.
    Ending {
        /// The error to report then.
        error: Option<RoomError>,
        /// When the home knows it without a message.
        until: Time,
    },
}

/// How long before others may be admitted a holder learns of its loss. It can use this time to
/// stop.
pub(super) fn notice(lease: Duration) -> Duration {
    lease / 8
}

/// How far two clocks may move apart during a lease.
pub(super) fn drift(lease: Duration) -> Duration {
    lease / 64
}

impl ClientRequest {
    /// When the timer must fire.
    pub(super) fn due(&self, lease: Duration) -> Option<Time> {
        match &self.progress {
            Progress::Asking(decision) => {
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
            // The holder may run until `ends`. The home learns of it when it would have ended the
            // holding by itself.
            Progress::Inside { ends, lost: true } => ends.map(|ends| ends + drift(lease)),
            Progress::Inside { ends, lost: false } => {
                let told = ends.map(|ends| ends - notice(lease));
                told.into_iter().chain(self.process.poll_timeout()).min()
            }
            Progress::Ending { until, .. } => Some(*until),
        }
    }
}
