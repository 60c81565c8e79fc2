//! Snapshots without the latch: they do not disturb the room, and the room cannot delay them.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use super::clock;
use super::latch_word::LatchWord as _;
use super::layout::{self, COMMAND_MAX, HOST_MAX, RING_LENGTH, SESSION_MAX, header, phase, state};
use super::room::FileRoom;
use super::words;
use crate::error::RoomError;
use crate::policy::{Policy, Priority};
use crate::snapshot::{Participant, PastPhase, Phase, Snapshot};

/// The number of attempts if the room changes in the meantime.
const ATTEMPTS: u32 = 20;

/// A participant in a slot.
struct Occupant {
    session: String,
    participant: Participant,
    /// Its position in the line.
    order: (i128, u64),
}

impl FileRoom {
    pub(crate) fn snapshot(&self) -> Result<Snapshot, RoomError> {
        self.still_there()?;
        self.verdict()?;
        for _ in 0..ATTEMPTS {
            let before = self.moment();
            let looked = self.look()?;
            if before.is_some() && before == self.moment() {
                return Ok(looked);
            }
            std::thread::yield_now();
        }
        Ok(Snapshot { exact: false, ..self.look()? })
    }

    /// It changes with everything that a snapshot shows. `None` in the middle of a change.
    fn moment(&self) -> Option<u64> {
        let latch = self.map.half(header::LATCH).get();
        (latch == 0).then(|| self.map.word(header::CHANGES).get())
    }

    fn look(&self) -> Result<Snapshot, RoomError> {
        let (mut inside, mut queue) = (Vec::new(), Vec::new());
        for number in self.used() {
            let list = match self.slot(number).state().get() {
                state::INSIDE => &mut inside,
                state::WAITING | state::NUDGED => &mut queue,
                state::FREE | state::IDLE => continue,
                _ => return Err(self.condemn("the state of a slot is not valid")),
            };
            // Dead owners are not shown, even if no process has freed their slots yet.
            if self.is_alive(number)? {
                list.extend(self.seen(number));
            }
        }
        inside.sort_by_key(|seen| (seen.participant.since, seen.order));
        let policy = self.fixed.policy;
        let mut snapshot = Snapshot::empty(self.name.as_str(), policy, SystemTime::now());
        snapshot.epoch = self.map.word(header::EPOCH).get();
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

    /// The participant of a slot. Its user is still a number. `None` while its owner writes.
    fn seen(&self, number: u16) -> Option<Occupant> {
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
        participant.alone = slot.alone().get() != 0;
        participant.at_most = u32::try_from(slot.most().get()).ok().and_then(NonZeroU32::new);
        let rank = match self.fixed.policy {
            Policy::Priority { aging } => {
                words::rank(aging.as_nanos(), slot.arrival().get(), participant.priority.0)
            }
            _ => 0,
        };
        let order = (rank, slot.ticket().get());
        (sequence.is_multiple_of(2) && sequence == slot.sequence().get()).then_some(Occupant {
            session,
            participant,
            order,
        })
    }

    /// The past phases, the oldest first.
    fn recent(&self) -> Vec<PastPhase> {
        let next = self.map.word(header::RING_NEXT).get();
        let first = next.saturating_sub(RING_LENGTH as u64);
        (first..next).filter_map(|number| self.past(layout::ring(number))).collect()
    }

    /// A record of the ring. `None` while it is written.
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

/// The waiters as phases: neighbours that can be inside together. With [`Policy::Batch`], all of
/// one session.
fn phases(policy: Policy, mut queue: Vec<Occupant>) -> Vec<Phase> {
    queue.sort_by_key(|seen| seen.order);
    let mut phases: Vec<Phase> = Vec::new();
    for seen in queue {
        let shares = |phase: &&mut Phase| {
            phase.session == seen.session && !seen.participant.alone && !phase.members[0].alone
        };
        let candidate = match policy {
            Policy::Batch { .. } => phases.iter_mut().find(shares),
            _ => phases.last_mut().filter(shares),
        };
        match candidate {
            Some(phase) => phase.members.push(seen.participant),
            None => phases.push(Phase::new(seen.session, vec![seen.participant])),
        }
    }
    phases
}

/// The name of a user, from the number.
fn user_name(uid: &str) -> String {
    uid.parse().map_or_else(|_| uid.to_owned(), crate::myself::user_name)
}
