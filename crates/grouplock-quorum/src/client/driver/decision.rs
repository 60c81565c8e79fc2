//! Whether a blocking request must wait.
//!
//! [`Backend::submit`](grouplock_room::Backend::submit) must know whether the request waits. If it
//! waits and has no patience, it ends. If it has patience, it shows its progress.
//!
//! The home alone cannot know that. It reports that the request is in its queue. But every request
//! that needs votes is in the queue, even in an idle room. The home also reports which of its own
//! sessions is inside. If that is another session, the request must wait.
//!
//! Otherwise the driver asks all members for a brief look, once for all requests of the room that
//! need one. The request must wait if another session is inside, or if a better claim for another
//! session waits. If neither is so, only messages are on their way: votes for the request, or the
//! news that its rivals have left. The home learns last that those rivals have left.

use std::time::Duration;

use grouplock_room::{Patience, RoomError};

use super::super::question::{Asker, Extent, Parts};
use super::super::request::{ClientRequest, Progress};
use super::super::view::{self, Obstacle};
use super::{Driver, Link};
use crate::name::ProcessId;
use crate::rank::Claim;
use crate::time::Time;

/// How long a blocking request waits for the first answer of its home. Then it counts as waiting.
pub(in super::super) const FIRST_WORD: Duration = Duration::from_secs(2);
/// For how long after it was queued it may turn out that it need not wait.
pub(in super::super) const DOUBT: Duration = Duration::from_secs(1);
/// When to look for other sessions. A request enters an idle room before that.
pub(in super::super) const FIRST_LOOK: Duration = Duration::from_millis(2);

/// What is known about a request.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Decision {
    /// It is known whether the request waits, or no thread needs to know.
    Made,
    /// The home has not answered yet.
    Open { by: Time },
    /// It is in the queue. At `at`, look whether another session is in the way.
    Look { at: Time, by: Time },
    /// The members were asked.
    Looking { by: Time },
}

impl Driver {
    /// Its home has put the request into the queue.
    pub(in super::super) fn queued(&mut self, id: ProcessId, claim: Claim, inside: Option<String>) {
        let now = self.clock.now();
        let Some(request) = self.requests.get_mut(&id) else { return };
        request.claim = Some(claim);
        request.introduced = true;
        if !matches!(request.progress, Progress::Asking(Decision::Open { .. })) {
            return;
        }
        if inside.as_ref().is_some_and(|inside| *inside != request.session) {
            self.conclude(id, inside);
        } else {
            let (at, by) = (now + FIRST_LOOK, now + DOUBT);
            request.progress = Progress::Asking(Decision::Look { at, by });
            self.arm(id);
        }
    }

    /// Asks all members about the room. If they are being asked already, this waits for the next
    /// look, because the answers may be older than this request.
    fn look(&mut self, id: ProcessId) {
        let Some(room) = self.requests.get(&id).map(|request| request.room.clone()) else { return };
        if let Some(next) = self.looks.get_mut(&room) {
            return next.push(id);
        }
        self.looks.insert(room.clone(), Vec::new());
        self.ask(Some(room), Extent::Brief, Asker::Requests(vec![id]));
    }

    /// All members have answered, for these requests.
    pub(in super::super) fn weigh_all(&mut self, room: &str, ids: &[ProcessId], parts: &Parts) {
        for id in ids {
            self.weigh(*id, parts);
        }
        if let Some(next) = self.looks.remove(room)
            && !next.is_empty()
        {
            self.looks.insert(room.to_owned(), Vec::new());
            self.ask(Some(room.to_owned()), Extent::Brief, Asker::Requests(next));
        }
    }

    /// The request must wait, or nothing shows that it need not.
    fn conclude(&mut self, id: ProcessId, inside: Option<String>) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        if request.desk.patience() == Patience::None {
            self.end(id, Some(RoomError::Occupied { inside }));
        } else {
            request.progress = Progress::Asking(Decision::Made);
            request.desk.queued();
            self.arm(id);
        }
    }

    /// Uses the answers of the members.
    fn weigh(&mut self, id: ProcessId, parts: &Parts) {
        let now = self.clock.now();
        let Some(request) = self.requests.get_mut(&id) else { return };
        let Progress::Asking(Decision::Looking { by }) = request.progress else { return };
        let admission = self.cluster.settings.admission;
        match view::in_the_way(request.claim, &request.session, admission, parts) {
            Obstacle::Session(inside) => self.conclude(id, Some(inside)),
            Obstacle::Waiters => self.conclude(id, None),
            Obstacle::None => {
                let at = now + FIRST_LOOK * 2;
                request.progress = Progress::Asking(Decision::Look { at, by });
                self.arm(id);
            }
        }
    }

    /// Handles the timer of a request.
    pub(in super::super) fn decide(&mut self, id: ProcessId, decision: Decision, now: Time) {
        match decision {
            Decision::Open { by } if by <= now => {
                let home = self.requests.get(&id).map(|request| request.home);
                let why = home.and_then(|home| match &self.links[home.index()] {
                    Link::Up { .. } => None,
                    Link::Down { why, .. } => Some(why.clone()),
                    Link::Unused | Link::Dialling => Some("no answer".to_owned()),
                });
                let impatient = |request: &ClientRequest| request.desk.patience() == Patience::None;
                match why {
                    Some(why) if self.requests.get(&id).is_some_and(impatient) => {
                        self.fail_unreachable(id, &why);
                    }
                    _ => self.conclude(id, None),
                }
            }
            Decision::Look { by, .. } | Decision::Looking { by } if by <= now => {
                self.conclude(id, None);
            }
            Decision::Look { at, by } if at <= now => {
                let Some(request) = self.requests.get_mut(&id) else { return };
                request.progress = Progress::Asking(Decision::Looking { by });
                self.look(id);
            }
            _ => {}
        }
    }
}
