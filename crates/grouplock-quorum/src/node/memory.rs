//! The memory of each member, and how a member that has lost it starts again.
//!
//! A member's data have a random name. A member presents it on each connection. The others store it
//! on disk before they accept messages. They refuse a member with other data than before: it may
//! have forgotten its votes.
//!
//! A member without data reports that. The others answer with the highest numbers that they know,
//! and with how many times it had data before. It waits until every quorum has a member that has
//! answered, and until the lease of a vote has passed. Then it continues above all of their
//! numbers, and its data are the next generation. If all others have answered and none has ever
//! known it, the cluster is new.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::engine::{ConnectionId, Engine, Who};
use super::storage::{Fact, StorageError};
use crate::coterie::Coterie;
use crate::member::above;
use crate::name::MemberId;
use crate::time::Time;
use crate::wire::{Frame, Memory, Reason, Recall};

/// How often to log what is missing.
const COMPLAIN: Duration = Duration::from_secs(10);

/// What a member without memory has learnt.
#[derive(Debug, Default)]
pub(super) struct Blank {
    since: Time,
    /// When to log next what is missing.
    silent_until: Time,
    answers: BTreeMap<MemberId, (Memory, Recall)>,
}

/// The numbers with which it starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beginning {
    generation: u32,
    floor: u64,
}

impl Blank {
    pub(super) fn new(since: Time) -> Self {
        Blank { since, silent_until: since + COMPLAIN / 10, answers: BTreeMap::new() }
    }

    /// When it has waited long enough.
    fn until(&self, vote_lease: Duration) -> Time {
        self.since + vote_lease
    }

    /// The start, if it is possible now.
    fn begin(
        &self,
        me: MemberId,
        coterie: &Coterie,
        vote_lease: Duration,
        now: Time,
    ) -> Option<Beginning> {
        let recalls = || self.answers.values().map(|(_, recall)| recall);
        let generation = recalls().map(|recall| recall.known.generation).max().unwrap_or(0) + 1;
        let floor = recalls().map(|recall| recall.floor).max().unwrap_or(0);
        let beginning = Beginning { generation, floor };
        if generation == 1 {
            let all = self.answers.len() + 1 == usize::from(coterie.members());
            return all.then_some(beginning);
        }
        let knows =
            |member| self.answers.get(&member).is_some_and(|(theirs, _)| !theirs.is_blank());
        let unknown = coterie.quorum_in(me, |member| !knows(member));
        (unknown.is_none() && self.until(vote_lease) <= now).then_some(beginning)
    }

    /// The members that have not answered.
    fn missing(&self, me: MemberId, members: u16) -> BTreeSet<MemberId> {
        let all = (0..members).map(MemberId);
        all.filter(|it| *it != me && !self.answers.contains_key(it)).collect()
    }
}

impl Engine {
    /// Tells a member which memory we have. If it has none, also what we know of it.
    pub(super) fn say_memory(&mut self, peer: MemberId) {
        let recall = self.blank_peers.contains(&peer).then(|| {
            let rooms = self.rooms.values().map(|room| room.member.floor(peer));
            let floor = rooms.max().unwrap_or(0).max(above(self.storage.floor()));
            Recall { known: self.storage.memory_of(peer), floor }
        });
        let frame = Frame::Memory { mine: self.storage.memory(), recall };
        if let Some(link) = self.links.get(peer.index()).and_then(Option::as_ref) {
            // It is one of the first frames, so the outbox has room.
            _ = link.push(frame);
        }
    }

    /// Handles the memory that another member presents.
    pub(super) fn hear_memory(
        &mut self,
        now: Time,
        connection: ConnectionId,
        theirs: Memory,
        recall: Option<Recall>,
    ) -> Result<(), StorageError> {
        let Some(Who::Member(peer)) = self.connections.get(&connection).map(|c| c.who) else {
            return Ok(());
        };
        let known = self.storage.memory_of(peer);
        if theirs.is_blank() {
            if self.blank_peers.insert(peer) && !known.is_blank() {
                tracing::warn!(
                    "{peer} has lost its memory ({known} before): it has no vote until it has asked the others and waited"
                );
            }
            self.set_present(now, peer, None);
            self.say_memory(peer);
        } else if theirs == known || theirs.generation > known.generation {
            if theirs != known {
                tracing::info!("{peer} has {theirs}");
                self.storage.note(Fact::Peer(peer, theirs))?;
            }
            self.blank_peers.remove(&peer);
            self.set_present(now, peer, Some(connection));
        } else {
            self.refuse(connection, Reason::OtherMemory { member: peer, theirs, known });
            return Ok(());
        }
        if let (Some(blank), Some(recall)) = (&mut self.blank, recall) {
            blank.answers.insert(peer, (theirs, recall));
            self.recall(now)?;
        }
        Ok(())
    }

    /// Starts, or starts again, as soon as it is possible.
    pub(super) fn recall(&mut self, now: Time) -> Result<(), StorageError> {
        let Some(blank) = &self.blank else { return Ok(()) };
        // Without leases no time is long enough.
        let vote_lease = self.cluster.settings.vote_lease().unwrap_or(Duration::MAX);
        let Some(Beginning { generation, floor }) =
            blank.begin(self.me, &self.coterie, vote_lease, now)
        else {
            return Ok(());
        };
        let memory = Memory { generation, ..self.storage.memory() };
        self.storage.note(Fact::Floor(floor))?;
        self.storage.note(Fact::Memory(memory))?;
        if generation > 1 {
            tracing::warn!(
                "this member had lost its memory; the others have answered, and it continues with {memory} above {floor}"
            );
        }
        self.blank = None;
        for peer in (0..self.coterie.members()).map(MemberId) {
            self.say_memory(peer);
        }
        Ok(())
    }

    /// Logs from time to time what is missing.
    pub(super) fn complain(&mut self, now: Time) {
        let Some(blank) = &mut self.blank else { return };
        if now < blank.silent_until {
            return;
        }
        blank.silent_until = now + COMPLAIN;
        let known = blank.answers.values().map(|(_, recall)| recall.known.generation).max();
        let missing = blank.missing(self.me, self.coterie.members());
        let names = missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match known {
            Some(1..) => tracing::warn!(
                "this member has no data, but others know it: it has lost its memory. It has no vote until every quorum has \
                 a member that has answered, and the lease of a vote has passed (no answer from: {names})"
            ),
            _ => {
                tracing::info!("a new cluster begins when all members have met (missing: {names})");
            }
        }
    }

    /// Sets the connection of a member with the expected memory, or that there is none.
    pub(super) fn set_present(&mut self, now: Time, peer: MemberId, by: Option<ConnectionId>) {
        let before = self.is_present(peer);
        if let Some(trusted) = self.trusted.get_mut(peer.index()) {
            *trusted = by;
        }
        self.presence_changed(now, peer, before);
    }

    pub(super) fn is_present(&self, peer: MemberId) -> bool {
        let linked = self.links.get(peer.index()).is_some_and(Option::is_some);
        linked && self.trusted.get(peer.index()).is_some_and(Option::is_some)
    }

    pub(super) fn presence_changed(&mut self, now: Time, peer: MemberId, before: bool) {
        let present = self.is_present(peer);
        self.resume.retain(|(other, _)| *other != peer);
        if present {
            let rooms = self.rooms.keys().cloned();
            self.resume.extend(rooms.map(|room| (peer, room)));
        } else if before {
            let names: Vec<_> = self.rooms.keys().cloned().collect();
            for name in names {
                if let Some(room) = self.rooms.get_mut(&name) {
                    room.member.handle_disconnect(now, peer);
                    self.settle(&name, now, None);
                }
            }
        }
    }
}
