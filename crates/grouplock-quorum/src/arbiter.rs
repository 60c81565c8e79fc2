//! A member as arbiter: one vote, given to one stage at a time.
//!
//! ```text
//!  owner: who has the vote, by which grant · queue: who waits for it, best rank first · done[member]: last stage over
//!
//!  REQUEST(rank)     over already: drop · owner's, again: LOCKED once more · else into the queue, then
//!                    nobody has the vote → grant · else the owner is told
//!  RELINQUISH(s, g)  if the owner is (from, s) by grant g: back into the queue, grant
//!  RELEASE(s, e)     done[from] and the epoch grow; from's entries up to s go; if it had the vote: grant
//!                    else the owner is told
//!  owner is told     somebody is better → INQUIRE, once per grant · else, if who waits is not who the owner
//!                    thinks → CONTESTED
//!  grant             the best of the queue is the owner; g := g + 1; on disk; LOCKED(s, g, epoch)
//! ```
//!
//! Why each guard is there: without `g` a RELINQUISH that comes twice takes away a vote that was given anew; without
//! `done` a REQUEST that comes after its RELEASE gets a vote that nobody will give back.

use std::collections::BTreeSet;

use crate::message::PeerMessage;
use crate::name::MemberId;
use crate::output::Outbox;
use crate::rank::{Claim, Rank};
use crate::record::{Record, Vote};
use crate::settings::Admission;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Arbiter {
    vote: Vote,
    /// One entry per member at most: the latest stage of each that was heard of.
    queue: BTreeSet<Rank>,
    /// The owner was asked to give the vote back.
    inquired: bool,
    /// Who waits, as the owner knows it.
    told: Option<Claim>,
    /// Whether it matters to owners who waits, or only if anybody does.
    admission: Admission,
}

impl Arbiter {
    /// With what was saved. Who waits for the vote will ask again.
    pub(crate) fn recover(vote: Vote, admission: Admission) -> Self {
        Arbiter { vote, admission, ..Arbiter::default() }
    }

    pub(crate) fn vote(&self) -> &Vote {
        &self.vote
    }

    pub(crate) fn queue(&self) -> impl Iterator<Item = &Rank> {
        self.queue.iter()
    }

    pub(crate) fn request(&mut self, rank: Rank, out: &mut Outbox) {
        let (from, stage) = (rank.member, rank.stage);
        if stage <= self.done(from) {
            return;
        }
        if let Some((owner, grant)) = self.vote.owner
            && owner.member == from
            && owner.stage >= stage
        {
            if owner.stage > stage {
                return;
            }
            if rank < owner {
                self.vote.owner = Some((rank, grant));
            } else {
                self.send_locked(from, stage, grant, out);
            }
            return;
        }
        if let Some(known) = self.queue.iter().find(|known| known.member == from).copied() {
            if known.stage > stage || (known.stage == stage && known <= rank) {
                return;
            }
            self.queue.remove(&known);
        }
        self.queue.insert(rank);
        match self.vote.owner {
            None => self.grant(out),
            Some((owner, _)) if owner.member == from => {} // its RELEASE is on the way
            Some(_) => self.tell_owner(out),
        }
    }

    pub(crate) fn relinquish(&mut self, from: MemberId, stage: u64, grant: u64, out: &mut Outbox) {
        let Some((owner, granted)) = self.vote.owner else { return };
        if owner.member != from || owner.stage != stage || granted != grant {
            return;
        }
        // If a later stage of the owner waits already then this one is over.
        if !self.queue.iter().any(|rank| rank.member == from) {
            self.queue.insert(owner);
        }
        self.grant(out);
    }

    pub(crate) fn release(&mut self, from: MemberId, stage: u64, epoch: u64, out: &mut Outbox) {
        let done = self.vote.done.entry(from).or_insert(0);
        *done = stage.max(*done);
        self.vote.epoch = self.vote.epoch.max(epoch);
        self.queue.retain(|rank| rank.member != from || rank.stage > stage);
        if self.vote.owner.is_some_and(|(owner, _)| owner.member == from && owner.stage <= stage) {
            self.grant(out);
        } else {
            self.tell_owner(out);
        }
    }

    /// Somebody waits, so the owner had better be asked again.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.vote.owner.is_some() && !self.queue.is_empty()
    }

    /// Nothing has happened for long: what was sent to the owner, or its answer, may be lost.
    pub(crate) fn retry(&mut self, out: &mut Outbox) {
        let (Some((owner, grant)), Some(best)) = (self.vote.owner, self.queue.first()) else {
            return;
        };
        let (stage, again, claim) = (owner.stage, true, best.claim);
        if *best < owner {
            self.inquired = true;
            self.told = Some(claim);
            out.send(owner.member, PeerMessage::Inquire { stage, grant, rival: claim, again });
        } else {
            let rival = self.rival(owner.member).map(|rank| rank.claim);
            self.told = rival;
            out.send(owner.member, PeerMessage::Contested { stage, grant, rival, again });
        }
    }

    /// The first of those who wait that is not `member`.
    fn rival(&self, member: MemberId) -> Option<Rank> {
        self.queue.iter().find(|rank| rank.member != member).copied()
    }

    /// Who waits has changed.
    fn tell_owner(&mut self, out: &mut Outbox) {
        let Some((owner, grant)) = self.vote.owner else { return };
        let best = self.rival(owner.member);
        let (stage, again, rival) = (owner.stage, false, best.map(|rank| rank.claim));
        let news = match self.admission {
            Admission::Together => self.told.is_some() != rival.is_some(),
            Admission::InOrder => self.told != rival,
        };
        match best {
            Some(best) if best < owner && !self.inquired => {
                self.inquired = true;
                let rival = best.claim;
                out.send(owner.member, PeerMessage::Inquire { stage, grant, rival, again });
            }
            _ if news => {
                out.send(owner.member, PeerMessage::Contested { stage, grant, rival, again });
            }
            _ => {}
        }
        self.told = rival;
    }

    /// What was sent to `peer` last may be lost.
    pub(crate) fn reconnect(&mut self, peer: MemberId, out: &mut Outbox) {
        let Some((owner, grant)) = self.vote.owner.filter(|(owner, _)| owner.member == peer) else {
            return;
        };
        let stage = owner.stage;
        match self.rival(peer) {
            Some(best) if best < owner => {
                self.inquired = true;
                self.told = Some(best.claim);
                let (rival, again) = (best.claim, true);
                out.send(peer, PeerMessage::Inquire { stage, grant, rival, again });
            }
            _ => self.send_locked(peer, stage, grant, out),
        }
    }

    fn done(&self, member: MemberId) -> u64 {
        self.vote.done.get(&member).copied().unwrap_or(0)
    }

    fn grant(&mut self, out: &mut Outbox) {
        self.inquired = false;
        self.vote.owner = None;
        let Some(best) = self.queue.pop_first() else { return };
        self.vote.grant += 1;
        self.vote.owner = Some((best, self.vote.grant));
        out.save(Record::Vote(self.vote.clone()));
        self.send_locked(best.member, best.stage, self.vote.grant, out);
    }

    fn send_locked(&mut self, to: MemberId, stage: u64, grant: u64, out: &mut Outbox) {
        let rival = self.rival(to).map(|rank| rank.claim);
        self.told = rival;
        let epoch = self.vote.epoch;
        out.send(to, PeerMessage::Locked { stage, grant, epoch, rival });
    }
}
