//! A member as arbiter: one vote, given to one stage at a time, and leased.
//!
//! ```text
//!  owner: who has the vote, by which grant · queue: who waits for it, best rank first · done[member]: last stage over
//!
//!  REQUEST(rank, e)  over already: drop · the epoch grows · owner's, again: LOCKED once more, and the lease begins anew ·
//!                    else into the queue, then nobody has the vote → grant · else the owner is told
//!  RELINQUISH(s, g)  if the owner is (from, s) by grant g: back into the queue, grant
//!  RELEASE(s, e)     done[from] and the epoch grow; from's entries up to s go; if it had the vote: grant
//!                    else the owner is told
//!  owner is told     somebody is better → INQUIRE, once per grant · else, if who waits is not who the owner
//!                    thinks → CONTESTED
//!  grant             the best of the queue is the owner; g := g + 1; on disk; LOCKED(s, g, epoch)
//!  lease ran out     the owner was silent for a vote's lease: epoch := epoch + LEAP + 1; grant
//! ```
//!
//! Why each guard is there: without `g` a RELINQUISH that comes twice takes away a vote that was given anew; without
//! `done` a REQUEST that comes after its RELEASE gets a vote that nobody will give back; without the leap a stage whose home
//! died has an epoch that its successor may get too.

use std::collections::BTreeMap;

use crate::death::Died;
use crate::group::World;
use crate::message::PeerMessage;
use crate::name::MemberId;
use crate::rank::{Claim, Rank};
use crate::record::{Record, Vote};
use crate::settings::{Admission, Settings};
use crate::time::{Heard, Time};

/// How far a stage's epoch may be above what each of its arbiters knew when it voted. An arbiter whose vote comes back
/// without a RELEASE skips that many, and so is past the epoch of the stage it does not know.
pub(crate) const LEAP: u64 = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Arbiter {
    vote: Vote,
    /// When the owner was heard of last.
    heard: Heard,
    /// One entry per member at most: the latest stage of each that was heard of, and when.
    queue: BTreeMap<Rank, Heard>,
    /// The owner was asked to give the vote back.
    inquired: bool,
    /// Who waits, as the owner knows it.
    told: Option<Claim>,
}

impl Arbiter {
    /// With what was saved. Who waits for the vote will ask again; the lease of a vote that is out begins anew.
    pub(crate) fn recover(vote: Vote, now: Time) -> Self {
        let heard = Heard { at: now, sent: Time::ZERO };
        Arbiter { vote, heard, ..Arbiter::default() }
    }

    pub(crate) fn vote(&self) -> &Vote {
        &self.vote
    }

    pub(crate) fn queue(&self) -> impl Iterator<Item = &Rank> {
        self.queue.keys()
    }

    /// Nobody has the vote or wants it.
    pub(crate) fn is_idle(&self) -> bool {
        self.vote.owner.is_none() && self.queue.is_empty()
    }

    /// The highest number that it has given or heard of.
    pub(crate) fn highest(&self) -> u64 {
        let Vote { grant, epoch, done, .. } = &self.vote;
        done.values().copied().chain([*grant, *epoch]).max().unwrap_or(0)
    }

    /// The last stage of a member that this arbiter has heard of.
    pub(crate) fn last_stage(&self, member: MemberId) -> u64 {
        let owner = self.vote.owner.iter().map(|(rank, _)| rank);
        let ranks = owner.chain(self.queue.keys()).filter(|rank| rank.member == member);
        ranks.map(|rank| rank.stage).chain([self.done(member)]).max().unwrap_or(0)
    }

    pub(crate) fn request(&mut self, rank: Rank, sent: Time, epoch: u64, world: &mut World<'_>) {
        let (from, stage) = (rank.member, rank.stage);
        if stage <= self.done(from) {
            return;
        }
        let heard = Heard { at: world.now, sent };
        let learnt = epoch > self.vote.epoch;
        self.vote.epoch = self.vote.epoch.max(epoch);
        if let Some((owner, grant)) = self.vote.owner
            && owner.member == from
            && owner.stage >= stage
        {
            if owner.stage > stage {
                return;
            }
            self.heard = self.heard.later(heard);
            if rank < owner {
                self.vote.owner = Some((rank, grant));
            }
            if learnt {
                world.out.save(Record::Vote(self.vote.clone()));
            }
            if learnt || rank >= owner {
                self.send_locked(from, stage, grant, world);
            }
            return;
        }
        if let Some(known) = self.queue.keys().find(|known| known.member == from).copied() {
            if known.stage > stage || (known.stage == stage && known <= rank) {
                if known.stage == stage
                    && let Some(last) = self.queue.get_mut(&known)
                {
                    *last = last.later(heard);
                }
                return;
            }
            self.queue.remove(&known);
        }
        self.queue.insert(rank, heard);
        match self.vote.owner {
            None => self.grant(world),
            Some((owner, _)) if owner.member == from => {} // its RELEASE is on the way
            Some(_) => self.tell_owner(world),
        }
    }

    pub(crate) fn relinquish(
        &mut self,
        from: MemberId,
        stage: u64,
        grant: u64,
        world: &mut World<'_>,
    ) {
        let Some((owner, granted)) = self.vote.owner else { return };
        if owner.member != from || owner.stage != stage || granted != grant {
            return;
        }
        // If a later stage of the owner waits already then this one is over.
        if !self.queue.keys().any(|rank| rank.member == from) {
            self.queue.insert(owner, self.heard);
        }
        self.grant(world);
    }

    pub(crate) fn release(
        &mut self,
        from: MemberId,
        stage: u64,
        epoch: u64,
        died: Option<Died>,
        world: &mut World<'_>,
    ) {
        world.learn(died);
        let done = self.vote.done.entry(from).or_insert(0);
        *done = stage.max(*done);
        self.vote.epoch = self.vote.epoch.max(epoch);
        self.queue.retain(|rank, _| rank.member != from || rank.stage > stage);
        if self.vote.owner.is_some_and(|(owner, _)| owner.member == from && owner.stage <= stage) {
            self.grant(world);
        } else {
            self.tell_owner(world);
        }
    }

    // ---- time ----

    /// Somebody waits, so the owner had better be asked again.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.vote.owner.is_some() && !self.queue.is_empty()
    }

    /// When a lease runs out, of the vote or of somebody in the queue.
    pub(crate) fn expires(&self, settings: &Settings) -> Option<Time> {
        let lease = settings.lease?;
        let owner = self.vote.owner.and(settings.vote_lease());
        let owner = owner.map(|vote_lease| self.heard.at + vote_lease);
        self.queue.values().map(|heard| heard.at + lease).chain(owner).min()
    }

    /// Whose lease has run out gets no vote, and keeps none.
    pub(crate) fn expire(&mut self, world: &mut World<'_>) {
        let (Some(lease), Some(vote_lease)) = (world.settings.lease, world.settings.vote_lease())
        else {
            return;
        };
        let before = self.queue.len();
        self.queue.retain(|_, heard| heard.at + lease > world.now);
        if self.vote.owner.is_some() && self.heard.at + vote_lease <= world.now {
            self.vote.epoch += LEAP + 1;
            // What happened in the stage is not known, if there was one.
            world.suspect(self.vote.epoch);
            self.grant(world);
        } else if self.queue.len() < before {
            self.tell_owner(world);
        }
    }

    /// Nothing has happened for long: what was sent to the owner, or its answer, may be lost.
    pub(crate) fn retry(&mut self, world: &mut World<'_>) {
        let (Some((owner, grant)), Some((best, _))) =
            (self.vote.owner, self.queue.first_key_value())
        else {
            return;
        };
        let (stage, again, claim) = (owner.stage, true, best.claim);
        if *best < owner {
            self.inquired = true;
            self.told = Some(claim);
            world
                .out
                .send(owner.member, PeerMessage::Inquire { stage, grant, rival: claim, again });
        } else {
            let rival = self.rival(owner.member).map(|rank| rank.claim);
            self.told = rival;
            world.out.send(owner.member, PeerMessage::Contested { stage, grant, rival, again });
        }
    }

    /// The first of those who wait that is not `member`.
    fn rival(&self, member: MemberId) -> Option<Rank> {
        self.queue.keys().find(|rank| rank.member != member).copied()
    }

    /// Who waits has changed.
    fn tell_owner(&mut self, world: &mut World<'_>) {
        let Some((owner, grant)) = self.vote.owner else { return };
        let best = self.rival(owner.member);
        let (stage, again, rival) = (owner.stage, false, best.map(|rank| rank.claim));
        let news = match world.settings.admission {
            // Whether anybody waits, not who.
            Admission::Together => self.told.is_some() != rival.is_some(),
            Admission::InOrder => self.told != rival,
        };
        match best {
            Some(best) if best < owner && !self.inquired => {
                self.inquired = true;
                let rival = best.claim;
                world.out.send(owner.member, PeerMessage::Inquire { stage, grant, rival, again });
            }
            _ if news => {
                world.out.send(owner.member, PeerMessage::Contested { stage, grant, rival, again });
            }
            _ => {}
        }
        self.told = rival;
    }

    /// What was sent to `peer` last may be lost.
    pub(crate) fn reconnect(&mut self, peer: MemberId, world: &mut World<'_>) {
        let Some((owner, grant)) = self.vote.owner.filter(|(owner, _)| owner.member == peer) else {
            return;
        };
        let stage = owner.stage;
        match self.rival(peer) {
            Some(best) if best < owner => {
                self.inquired = true;
                self.told = Some(best.claim);
                let (rival, again) = (best.claim, true);
                world.out.send(peer, PeerMessage::Inquire { stage, grant, rival, again });
            }
            _ => self.send_locked(peer, stage, grant, world),
        }
    }

    fn done(&self, member: MemberId) -> u64 {
        self.vote.done.get(&member).copied().unwrap_or(0)
    }

    fn grant(&mut self, world: &mut World<'_>) {
        self.inquired = false;
        self.vote.owner = None;
        let Some((best, heard)) = self.queue.pop_first() else {
            return world.out.save(Record::Returned(self.vote.clone()));
        };
        self.heard = heard;
        self.vote.grant += 1;
        self.vote.owner = Some((best, self.vote.grant));
        world.out.save(Record::Vote(self.vote.clone()));
        self.send_locked(best.member, best.stage, self.vote.grant, world);
    }

    fn send_locked(&mut self, to: MemberId, stage: u64, grant: u64, world: &mut World<'_>) {
        let rival = self.rival(to).map(|rank| rank.claim);
        self.told = rival;
        let (epoch, heard) = (self.vote.epoch, self.heard.sent);
        let died = world.died.clone();
        world.out.send(to, PeerMessage::Locked { stage, grant, epoch, heard, rival, died });
    }
}
