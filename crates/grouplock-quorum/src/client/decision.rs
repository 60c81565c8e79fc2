//! Whether a blocking request has to wait.
//!
//! [`Backend::submit`](grouplock_room::Backend::submit) has to know: who has no patience goes away then, and others are told
//! how the wait goes. The home of a session does not know it by itself. It says that the request is in its queue,
//! as it is whenever votes have to be asked for, also in an idle room, and which of its own sessions is inside. If that is
//! another one, the request has to wait. Otherwise the members are asked what they see, in brief, once for all requests in that room
//! that want to know: if somebody of another session is inside, or waits and comes first, it has to wait. If nobody does, the votes are
//! on their way. Those for whose sake the home lets nobody join may be gone: it is told of that last.

use std::time::Duration;

use grouplock_room::{Patience, RoomError};

use super::driver::{Driver, Link};
use super::entry::{Entry, Phase};
use super::parts::Parts;
use super::question::{Asker, Extent};
use super::view::{self, Obstacle};
use crate::name::ProcessId;
use crate::rank::Claim;
use crate::time::Time;

/// How long a blocking request waits for its home's first word before it counts as one that waits.
pub(super) const FIRST_WORD: Duration = Duration::from_secs(2);
/// How long after it was queued it may turn out that nobody is in the way.
pub(super) const DOUBT: Duration = Duration::from_secs(1);
/// When to look who is in the way: an idle room is entered before that.
pub(super) const FIRST_LOOK: Duration = Duration::from_millis(2);
/// How far it is known.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decision {
    /// Nobody asks.
    Made,
    /// The home has not said anything yet.
    Open { by: Time },
    /// It is in the queue, and will be let in if nobody is in the way: look then.
    Look { at: Time, by: Time },
    /// The members have been asked.
    Looking { by: Time },
}

impl Driver {
    /// Its home has put it in the queue.
    pub(super) fn queued(&mut self, id: ProcessId, claim: Claim, inside: Option<String>) {
        let now = self.clock.now();
        let Some(entry) = self.entries.get_mut(&id) else { return };
        entry.claim = Some(claim);
        entry.introduced = true;
        if !matches!(entry.phase, Phase::Asking(Decision::Open { .. })) {
            return;
        }
        if inside.as_ref().is_some_and(|inside| *inside != entry.session) {
            self.conclude(id, inside);
        } else {
            let (at, by) = (now + FIRST_LOOK, now + DOUBT);
            entry.phase = Phase::Asking(Decision::Look { at, by });
            self.arm(id);
        }
    }

    /// Asks what members see of its room; if they are being asked already, when they have answered, as what they say may be older
    /// than this request.
    fn look(&mut self, id: ProcessId) {
        let Some(room) = self.entries.get(&id).map(|entry| entry.room.clone()) else { return };
        if let Some(next) = self.looks.get_mut(&room) {
            return next.push(id);
        }
        self.looks.insert(room.clone(), Vec::new());
        self.ask(Some(room), Extent::Brief, Asker::Entries(vec![id]));
    }

    /// All have answered, for these.
    pub(super) fn weigh_all(&mut self, room: &str, ids: &[ProcessId], parts: &Parts) {
        for id in ids {
            self.weigh(*id, parts);
        }
        if let Some(next) = self.looks.remove(room)
            && !next.is_empty()
        {
            self.looks.insert(room.to_owned(), Vec::new());
            self.ask(Some(room.to_owned()), Extent::Brief, Asker::Entries(next));
        }
    }

    /// It does, or nothing is known to the contrary.
    fn conclude(&mut self, id: ProcessId, inside: Option<String>) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if entry.desk.patience() == Patience::None {
            self.end(id, Some(RoomError::Occupied { inside }));
        } else {
            entry.phase = Phase::Asking(Decision::Made);
            entry.desk.queued();
            self.arm(id);
        }
    }

    /// The members have answered.
    fn weigh(&mut self, id: ProcessId, parts: &Parts) {
        let now = self.clock.now();
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let Phase::Asking(Decision::Looking { by }) = entry.phase else { return };
        let admission = self.cluster.settings.admission;
        match view::in_the_way(entry.claim, &entry.session, admission, parts) {
            Obstacle::Session(inside) => self.conclude(id, Some(inside)),
            Obstacle::Waiters => self.conclude(id, None),
            Obstacle::None => {
                let at = now + FIRST_LOOK * 2;
                entry.phase = Phase::Asking(Decision::Look { at, by });
                self.arm(id);
            }
        }
    }

    /// When the timer of a request has gone off.
    pub(super) fn decide(&mut self, id: ProcessId, decision: Decision, now: Time) {
        match decision {
            Decision::Open { by } if by <= now => {
                let home = self.entries.get(&id).map(|entry| entry.home);
                let why = home.and_then(|home| match &self.links[home.index()] {
                    Link::Up { .. } => None,
                    Link::Down { why, .. } => Some(why.clone()),
                    Link::Unused | Link::Dialling => Some("no answer".to_owned()),
                });
                let impatient = |entry: &Entry| entry.desk.patience() == Patience::None;
                match why {
                    Some(why) if self.entries.get(&id).is_some_and(impatient) => {
                        self.fail_unreachable(id, &why);
                    }
                    _ => self.conclude(id, None),
                }
            }
            Decision::Look { by, .. } | Decision::Looking { by } if by <= now => {
                self.conclude(id, None);
            }
            Decision::Look { at, by } if at <= now => {
                let Some(entry) = self.entries.get_mut(&id) else { return };
                entry.phase = Phase::Asking(Decision::Looking { by });
                self.look(id);
            }
            _ => {}
        }
    }
}
