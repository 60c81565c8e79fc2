//! A look at the room, without the latch: it disturbs nobody, and nobody can hold it up.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use super::clock;
use super::gate::Gate;
use super::layout::{self, COMMAND_MAX, HOST_MAX, RING_LENGTH, SESSION_MAX, header, phase, state};
use super::order::{self, Waiter};
use super::room::FileRoom;
use crate::error::RoomError;
use crate::policy::{Policy, Priority};
use crate::snapshot::{Participant, PastPhase, Phase, Snapshot};

/// How often to look again if something changed meanwhile.
const ATTEMPTS: u32 = 20;

/// Someone in a slot.
struct Seen {
    session: String,
    participant: Participant,
    /// What orders it.
    waiter: Waiter,
}

impl FileRoom {
    pub(crate) fn snapshot(&self) -> Result<Snapshot, RoomError> {
        self.still_there()?;
        self.verdict()?;
        let mut snapshot = None;
        for _ in 0..ATTEMPTS {
            let before = self.moment();
            let looked = self.look()?;
            if before.is_some() && before == self.moment() {
                return Ok(looked);
            }
            snapshot = Some(looked);
            std::thread::yield_now();
        }
        let snapshot = snapshot.map_or_else(|| self.look(), Ok)?;
        Ok(Snapshot { exact: false, ..snapshot })
    }

    /// Changes with everything that can be seen; `None` in the middle of a change.
    fn moment(&self) -> Option<(u64, u64)> {
        let latch = self.map.half(header::LATCH).get();
        let moment = (self.map.word(header::CHANGES).get(), self.gate().get());
        (latch == 0).then_some(moment)
    }

    fn look(&self) -> Result<Snapshot, RoomError> {
        let Some(gate) = Gate::unpack(self.gate().get()) else {
            return Err(self.condemn("its gate makes no sense"));
        };
        let sole = match gate {
            Gate::Sole { slot, .. } | Gate::Converting { slot, .. } => Some(slot),
            _ => None,
        };
        let (mut inside, mut queue) = (Vec::new(), Vec::new());
        for number in self.used() {
            let list = match self.slot(number).state().get() {
                state::INSIDE => &mut inside,
                state::HELD if sole == Some(number) => &mut inside,
                state::WAITING => &mut queue,
                state::FREE | state::IDLE | state::CLAIM | state::HELD => continue,
                _ => return Err(self.condemn("the state of a slot is none")),
            };
            // The dead are not shown, even if nobody has buried them yet.
            let alive = self.life.is_alive(number).map_err(|error| self.io("probe", error))?;
            list.extend(alive.then(|| self.seen(number)).flatten());
        }
        inside.sort_by_key(|seen| (seen.participant.since, seen.waiter.ticket));
        let policy = self.fixed.policy;
        let mut snapshot = Snapshot::empty(self.name.as_str(), policy, SystemTime::now());
        snapshot.epoch = gate.epoch();
        snapshot.deaths = self.map.word(header::DEATHS).get();
        snapshot.inside = inside.first().map(|first| first.session.clone()).map(|session| {
            Phase::new(session, inside.into_iter().map(|seen| seen.participant).collect())
        });
        snapshot.waiting = phases(policy, queue);
        snapshot.recent = self.recent();
        let mut names = HashMap::new();
        let people = snapshot.waiting.iter_mut().chain(&mut snapshot.inside);
        for participant in people.flat_map(|phase| &mut phase.members) {
            let uid = std::mem::take(&mut participant.user);
            let name: &mut String = names.entry(uid).or_insert_with_key(|uid| user_name(uid));
            participant.user.clone_from(name);
        }
        Ok(snapshot)
    }

    /// What a slot says, with the user still a number. `None` if its owner is writing.
    fn seen(&self, number: u16) -> Option<Seen> {
        let slot = self.slot(number);
        let sequence = slot.sequence().get();
        let text = |offset, max| {
            let bytes = self.map.text(offset, max)?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        let mut participant =
            Participant::new(slot.holder(), clock::system_time(slot.since().get()));
        participant.pid = slot.pid().get();
        participant.user = slot.uid().get().to_string();
        participant.host = text(slot.host(), HOST_MAX)?;
        participant.command = text(slot.command(), COMMAND_MAX)?;
        participant.priority = Priority(slot.priority().get().cast_signed());
        let expected = slot.expected().get();
        participant.expected = (expected != u64::MAX).then(|| Duration::from_nanos(expected));
        let session = text(slot.session(), SESSION_MAX)?;
        let waiter = Waiter {
            slot: number,
            ticket: slot.ticket().get(),
            arrival: slot.arrival().get(),
            priority: participant.priority.0,
            passed: slot.passed().get(),
        };
        (sequence.is_multiple_of(2) && sequence == slot.sequence().get()).then_some(Seen {
            session,
            participant,
            waiter,
        })
    }

    /// The ring, the oldest first.
    fn recent(&self) -> Vec<PastPhase> {
        let next = self.map.word(header::RING_NEXT).get();
        let first = next.saturating_sub(RING_LENGTH as u64);
        (first..next).filter_map(|number| self.past(layout::ring(number))).collect()
    }

    /// A record of the ring, unless it is being written.
    fn past(&self, record: usize) -> Option<PastPhase> {
        let sequence = self.map.half(record + phase::SEQUENCE);
        let before = sequence.get();
        let word = |field| self.map.word(record + field).get();
        let past = PastPhase {
            session: self.session_text(record + phase::SESSION)?,
            epoch: word(phase::EPOCH),
            began: clock::system_time(word(phase::BEGAN)),
            ended: clock::system_time(word(phase::ENDED)),
            entries: word(phase::ENTRIES),
            died: self.map.half(record + phase::FLAGS).get() & phase::DIED != 0,
        };
        (before.is_multiple_of(2) && before == sequence.get()).then_some(past)
    }
}

/// The queue as phases: neighbours of one session, for [`Policy::Batch`] all of one session.
fn phases(policy: Policy, queue: Vec<Seen>) -> Vec<Phase> {
    let mut order: Vec<Waiter> = queue.iter().map(|seen| seen.waiter).collect();
    order::sort(policy, &mut order);
    let mut by_slot: HashMap<u16, Seen> =
        queue.into_iter().map(|seen| (seen.waiter.slot, seen)).collect();
    let mut phases: Vec<Phase> = Vec::new();
    for seen in order.iter().filter_map(|waiter| by_slot.remove(&waiter.slot)) {
        let candidate = match policy {
            Policy::Batch { .. } => phases.iter_mut().find(|phase| phase.session == seen.session),
            _ => phases.last_mut().filter(|phase| phase.session == seen.session),
        };
        match candidate {
            Some(phase) => phase.members.push(seen.participant),
            None => phases.push(Phase::new(seen.session, vec![seen.participant])),
        }
    }
    phases
}

/// The name behind the number of a user.
fn user_name(uid: &str) -> String {
    let known = uid.parse().ok().and_then(|uid| {
        nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(uid)).ok().flatten()
    });
    known.map_or_else(|| uid.to_owned(), |user| user.name)
}
