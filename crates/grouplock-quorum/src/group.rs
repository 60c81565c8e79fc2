//! A member as group: the paper's passive player. Processes ask it, and it competes for them.
//!
//! ```text
//!             first process asks             a quorum has voted              last process left
//!      Idle ----------------------> Wanting ----------------------> Running ------------------> Idle
//!        ^     REQUEST to quorum       |     all of the best          |        RELEASE to quorum
//!        |                             |     session: ENTER           +-- later request: ENTER if
//!        +-----------------------------+                                  nobody competes or it fits
//!              all withdrew: RELEASE
//! ```
//!
//! A member has one group, even if it is the home of many sessions. Stages follow each other, and
//! each serves one session: the one with the best claim when the votes have arrived. So an arbiter
//! keeps one entry per member, not per session.
//!
//! Votes: LOCKED counts unless that grant was returned before (`yielded`: INQUIRE may overtake
//! LOCKED). A group answers an inquiry only while Wanting. Inside, RELEASE is the answer. The votes
//! of any quorum count ([`Ballots`]).
//!
//! Leases: asking again renews a vote. Processes learn that they are inside only while a quorum's
//! last answers are fresh. So their own leases end before an arbiter takes its vote back.
//!
//! Epochs: the epoch of a stage is one more than the highest that its arbiters know. The quorum of
//! the stage before has a common arbiter with this one. That arbiter voted again after the RELEASE
//! with that stage's epoch. Or it took its vote back and leapt past that epoch, which was at most
//! [`LEAP`] above what it knew. So epochs grow strictly from stage to stage in the whole room.

mod arbiters;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::arbiter::LEAP;
use crate::ballots::{Ballots, Rivals};
use crate::coterie::{Coterie, Quorum};
use crate::death::{DeadProcess, Death, KnownDeath};
use crate::message::{GroupMessage, PeerMessage};
use crate::name::{MemberId, ProcessId};
use crate::output::PendingOutputs;
use crate::rank::{Claim, Rank};
use crate::record::{Durable, OpenStage, Record};
use crate::settings::{Admission, Settings, Votes};
use crate::time::{Heard, Time};

/// A longer stay counts as this long.
const LONGEST_STAY: Duration = Duration::from_secs(3600);

/// What a member can see and do while it handles an event.
pub(crate) struct World<'a> {
    pub(crate) me: MemberId,
    pub(crate) coterie: &'a Coterie,
    pub(crate) settings: &'a Settings,
    /// Members that cannot be reached.
    pub(crate) away: &'a BTreeSet<MemberId>,
    pub(crate) now: Time,
    /// The last known death.
    pub(crate) died: &'a mut Option<KnownDeath>,
    pub(crate) out: &'a mut PendingOutputs,
}

impl<'a> World<'a> {
    /// The quorum of this member.
    pub(crate) fn quorum(&self) -> Option<&'a Quorum> {
        self.coterie.quorum(self.me)
    }

    fn tell<'m>(&mut self, members: impl IntoIterator<Item = &'m MemberId>, message: &PeerMessage) {
        members.into_iter().for_each(|member| self.out.send(*member, message.clone()));
    }

    /// Takes over news about deaths.
    pub(crate) fn learn(&mut self, died: Option<KnownDeath>) {
        if let Some(died) = died.filter(|died| died.is_news(self.died.as_ref())) {
            self.out.save(Record::Died(died.clone()));
            *self.died = Some(died);
        }
    }

    /// Notes that a process may have died in a stage. Nothing else is known of it.
    pub(crate) fn suspect(&mut self, epoch: u64) {
        let death = Death { epoch, noticed: self.now, who: None };
        self.learn(Some(KnownDeath { death, reported: false }));
    }

    /// The quorum to ask: our own, or another one that can be reached if our own cannot.
    fn reachable_quorum(&self) -> Option<&'a Quorum> {
        match self.settings.votes {
            Votes::OwnQuorum => self.quorum(),
            Votes::AnyQuorum => {
                let reachable = |member| !self.away.contains(&member);
                self.coterie.quorum_in(self.me, reachable).or(self.quorum())
            }
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    /// The number of the last stage.
    stage: u64,
    /// The highest epoch held.
    epoch: u64,
    state: GroupState,
    /// The members that were asked for their votes in this stage.
    asked: BTreeSet<MemberId>,
    waiting: BTreeMap<ProcessId, Waiting>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum GroupState {
    #[default]
    Idle,
    Wanting(Wanting),
    Running(RunningStage),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Wanting {
    claim: Claim,
    votes: Ballots,
    /// The last grant that was returned to each arbiter.
    yielded: BTreeMap<MemberId, u64>,
    rivals: Rivals,
}

/// A stage in which processes are inside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RunningStage {
    pub(crate) session: String,
    pub(crate) epoch: u64,
    claim: Claim,
    votes: Ballots,
    /// When it began, or when the member restarted.
    since: Time,
    /// The other members' groups that want the room.
    pub(crate) rivals: Rivals,
    pub(crate) inside: BTreeMap<ProcessId, Holder>,
    /// The death before this stage that its processes learn of.
    recovered: Option<Death>,
}

/// A process inside a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Holder {
    pub(crate) attempt: u64,
    heard: Heard,
    /// When it intends to leave.
    until: Time,
    pid: u32,
}

/// A process in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Waiting {
    pub(crate) attempt: u64,
    pub(crate) session: String,
    pub(crate) claim: Claim,
    stay: Option<Duration>,
    /// How long a message to it takes.
    delay: Duration,
    heard: Heard,
    pid: u32,
}

/// The content of a request.
pub(crate) struct Ask {
    pub(crate) attempt: u64,
    pub(crate) session: String,
    pub(crate) stay: Option<Duration>,
    pub(crate) priority: i32,
    pub(crate) sent: Time,
    pub(crate) delay: Duration,
    pub(crate) pid: u32,
}

impl Group {
    /// A group with saved data. A stage that had not begun is withdrawn. A stage that had begun
    /// goes on if its arbiters agree.
    pub(crate) fn recover(durable: &Durable, world: &mut World<'_>) -> Self {
        let heard = Heard { at: world.now, sent: Time::ZERO };
        // If it had asked other members too, they will ask about the stage.
        let asked = world.quorum().cloned().unwrap_or_default();
        let inside = |attempt| Holder { attempt, heard, until: world.now, pid: 0 };
        let running = durable.open.as_ref().map(|open| RunningStage {
            session: open.session.clone(),
            epoch: open.epoch,
            claim: Claim::FIRST,
            votes: Ballots::default(),
            since: world.now,
            rivals: Rivals::unknown(&asked),
            inside: open.inside.iter().map(|(p, attempt)| (*p, inside(*attempt))).collect(),
            recovered: open.recovered.clone(),
        });
        let mut group = Group {
            stage: durable.stage,
            epoch: durable.epoch,
            state: running.map_or(GroupState::Idle, GroupState::Running),
            asked,
            waiting: BTreeMap::new(),
        };
        if !matches!(group.state, GroupState::Idle) {
            group.keep(world);
        } else if group.stage > 0 {
            let over = group.release(group.stage, world);
            world.tell(&std::mem::take(&mut group.asked), &over);
        }
        group
    }

    pub(crate) fn stage(&self) -> u64 {
        self.stage
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, GroupState::Idle) && self.waiting.is_empty()
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(crate) fn running(&self) -> Option<&RunningStage> {
        match &self.state {
            GroupState::Running(running) => Some(running),
            GroupState::Idle | GroupState::Wanting(_) => None,
        }
    }

    pub(crate) fn votes(&self) -> Option<usize> {
        match &self.state {
            GroupState::Wanting(wanting) => Some(wanting.votes.len()),
            GroupState::Idle | GroupState::Running(_) => None,
        }
    }

    pub(crate) fn waiting(&self) -> &BTreeMap<ProcessId, Waiting> {
        &self.waiting
    }

    // ---- processes ----

    pub(crate) fn ask(&mut self, process: ProcessId, ask: Ask, world: &mut World<'_>) {
        let heard = Heard { at: world.now, sent: ask.sent };
        if let GroupState::Running(running) = &mut self.state
            && let Some(inside) = running.inside.get_mut(&process)
        {
            if inside.attempt == ask.attempt {
                inside.heard = heard;
                if running.is_sure(world) {
                    running.tell(process, ask.attempt, ask.sent, world);
                }
                return;
            }
            if inside.attempt > ask.attempt {
                return;
            }
            // It would not ask again if it had not left.
            let before = inside.attempt;
            self.leave(process, before, false, world);
        }
        if let Some(waiting) = self.waiting.get_mut(&process)
            && waiting.attempt >= ask.attempt
        {
            if waiting.attempt == ask.attempt {
                waiting.heard = heard;
            }
            return;
        }
        let waiting = Waiting {
            attempt: ask.attempt,
            session: ask.session,
            claim: world.settings.precedence.claim(world.now, ask.priority),
            stay: ask.stay.map(|stay| stay.min(LONGEST_STAY)),
            delay: ask.delay,
            heard,
            pid: ask.pid,
        };
        if self.can_join(&waiting, world) {
            self.admit(process, &waiting, world);
            return;
        }
        let claim = waiting.claim;
        self.waiting.insert(process, waiting);
        match &mut self.state {
            GroupState::Idle => self.start(world),
            GroupState::Wanting(wanting) if claim < wanting.claim => {
                wanting.claim = claim;
                self.request(world);
            }
            GroupState::Wanting(_) | GroupState::Running(_) => {}
        }
    }

    /// A process has left, withdrawn or died. `entered`: it knows that it was inside.
    pub(crate) fn leave(
        &mut self,
        process: ProcessId,
        attempt: u64,
        entered: bool,
        world: &mut World<'_>,
    ) {
        if self.waiting.get(&process).is_some_and(|waiting| waiting.attempt == attempt) {
            self.waiting.remove(&process);
            // If it had the best claim, the rank of the stage is too good: the stage starts again.
            let best = self.best_claim();
            if let GroupState::Wanting(wanting) = &self.state
                && best.is_none_or(|best| best > wanting.claim)
            {
                self.finish(world);
            }
            self.admit_waiting(world);
        }
        if let GroupState::Running(running) = &mut self.state
            && running.inside.get(&process).is_some_and(|inside| inside.attempt == attempt)
        {
            if entered {
                running.heeded(world);
            }
            running.inside.remove(&process);
            if running.inside.is_empty() {
                world.out.save(Record::Closed);
                self.finish(world);
            } else {
                world.out.save(Record::Left { process });
            }
        }
    }

    pub(crate) fn renew(
        &mut self,
        process: ProcessId,
        attempt: u64,
        sent: Time,
        world: &mut World<'_>,
    ) {
        let heard = Heard { at: world.now, sent };
        if let GroupState::Running(running) = &mut self.state
            && let Some(inside) = running.inside.get_mut(&process)
            && inside.attempt == attempt
        {
            inside.heard = heard;
            running.heeded(world);
            if running.is_sure(world) {
                world.out.tell(process, GroupMessage::Renewed { attempt, heard: sent });
            }
        } else {
            world.out.tell(process, GroupMessage::Gone { attempt });
        }
    }

    /// Removes the processes that were silent for a lease: they count as dead.
    pub(crate) fn expire(&mut self, lease: Duration, world: &mut World<'_>) {
        let silent = |heard: Heard| heard.at + lease <= world.now;
        let waiting = self.waiting.iter().map(|(process, w)| (*process, w.attempt, w.heard));
        let inside = self.running().map(|running| &running.inside).into_iter().flatten();
        let inside = inside.map(|(process, i)| (*process, i.attempt, i.heard));
        let dead: Vec<_> = waiting.chain(inside).filter(|(_, _, heard)| silent(*heard)).collect();
        for (process, attempt, _) in dead {
            self.note_death(process, world);
            self.leave(process, attempt, false, world);
        }
        // The arbiters were silent for so long that others may be inside. Our processes know it.
        if let GroupState::Running(running) = &self.state
            && let Some(lapse) = world.settings.lapse()
            && running.since + lapse < world.now
            && running.votes.quorum(Some(lapse), world).is_none()
        {
            if let Some(&process) = running.inside.keys().next() {
                self.note_death(process, world);
            }
            world.out.save(Record::Closed);
            self.finish(world);
        }
    }

    /// Notes the death of a process that is inside.
    fn note_death(&self, process: ProcessId, world: &mut World<'_>) {
        let Some(running) = self.running() else { return };
        let Some(inside) = running.inside.get(&process) else { return };
        let who = Some(DeadProcess { session: running.session.clone(), pid: inside.pid });
        let death = Death { epoch: running.epoch, noticed: world.now, who };
        world.learn(Some(KnownDeath { death, reported: false }));
    }

    /// Whether a new request can join the stage.
    fn can_join(&self, newcomer: &Waiting, world: &World<'_>) -> bool {
        let GroupState::Running(running) = &self.state else { return false };
        if running.session != newcomer.session || !running.is_sure(world) {
            return false;
        }
        let Some(others) = self.best_other(&running.session, &running.rivals) else { return true };
        if world.settings.admission == Admission::InOrder && newcomer.claim < others {
            return true;
        }
        let reaches = world.now + newcomer.delay;
        newcomer.stay.is_some_and(|stay| reaches + stay <= running.ends())
    }

    /// The best claim of the requests for other sessions.
    fn best_other(&self, session: &str, rivals: &Rivals) -> Option<Claim> {
        let here = self.waiting.values().filter(|waiting| waiting.session != session);
        here.map(|waiting| waiting.claim).chain(rivals.best()).min()
    }

    /// Admits waiting requests of the session inside, if fewer groups compete than before.
    fn admit_waiting(&mut self, world: &mut World<'_>) {
        let GroupState::Running(running) = &self.state else { return };
        let session = &running.session;
        let of_session = self.waiting.iter().filter(|(_, waiting)| waiting.session == *session);
        let mut candidates: Vec<_> = of_session.map(|(p, waiting)| (waiting.claim, *p)).collect();
        candidates.sort_unstable();
        for (_, process) in candidates {
            let Some(waiting) = self.waiting.get(&process) else { continue };
            if self.can_join(waiting, world)
                && let Some(waiting) = self.waiting.remove(&process)
            {
                self.admit(process, &waiting, world);
            }
        }
    }

    fn admit(&mut self, process: ProcessId, newcomer: &Waiting, world: &mut World<'_>) {
        let GroupState::Running(running) = &mut self.state else { return };
        let attempt = newcomer.attempt;
        running.inside.insert(process, newcomer.inside(world.now));
        world.out.save(Record::Admitted { process, attempt });
        running.tell(process, attempt, newcomer.heard.sent, world);
    }

    // ---- stages ----

    fn best_claim(&self) -> Option<Claim> {
        self.waiting.values().map(|waiting| waiting.claim).min()
    }

    fn start(&mut self, world: &mut World<'_>) {
        let Some(claim) = self.best_claim() else { return };
        self.stage += 1;
        self.state = GroupState::Wanting(Wanting {
            claim,
            votes: Ballots::default(),
            yielded: BTreeMap::new(),
            rivals: Rivals::default(),
        });
        self.asked = world.reachable_quorum().cloned().unwrap_or_default();
        world.out.save(Record::Wanting { stage: self.stage });
        self.request(world);
    }

    /// Asks all members again that were asked.
    fn request(&self, world: &mut World<'_>) {
        self.asked.iter().for_each(|arbiter| self.request_from(*arbiter, self.epoch, world));
    }

    fn request_from(&self, arbiter: MemberId, epoch: u64, world: &mut World<'_>) {
        let claim = match &self.state {
            GroupState::Idle => return,
            GroupState::Wanting(wanting) => wanting.claim,
            GroupState::Running(running) => running.claim,
        };
        let (rank, sent) = (Rank { claim, member: world.me, stage: self.stage }, world.now);
        world.out.send(arbiter, PeerMessage::Request { rank, sent, epoch });
    }

    /// Asks another quorum if the quorum that was asked can no longer be reached.
    pub(crate) fn widen(&mut self, world: &mut World<'_>) {
        if matches!(self.state, GroupState::Idle) || world.settings.votes == Votes::OwnQuorum {
            return;
        }
        let asked = |member| self.asked.contains(&member) && !world.away.contains(&member);
        if world.coterie.quorum_in(world.me, asked).is_some() {
            return;
        }
        for arbiter in world.reachable_quorum().into_iter().flatten() {
            if self.asked.insert(*arbiter) {
                self.request_from(*arbiter, self.epoch, world);
            }
        }
    }

    /// The message that a stage and all before it are over.
    fn release(&self, stage: u64, world: &World<'_>) -> PeerMessage {
        PeerMessage::Release { stage, epoch: self.epoch, died: world.died.clone() }
    }

    fn finish(&mut self, world: &mut World<'_>) {
        let over = self.release(self.stage, world);
        let asked = std::mem::take(&mut self.asked);
        self.state = GroupState::Idle;
        // The next request goes first, so that the next owner of the vote learns of it with the
        // vote.
        self.start(world);
        world.tell(&asked, &over);
    }

    /// Opens the stage if a quorum has voted.
    fn open(&mut self, world: &mut World<'_>) {
        let GroupState::Wanting(wanting) = &self.state else { return };
        let Some(quorum) = wanting.votes.quorum(world.settings.fresh(), world) else { return };
        let epoch = wanting.votes.epoch().max(self.epoch) + 1;
        // If our member dies, the arbiters leap. They must then be past this epoch.
        let behind = wanting.votes.behind(quorum, epoch.saturating_sub(LEAP));
        if !behind.is_empty() {
            return behind.iter().for_each(|it| self.request_from(*it, epoch - 1, world));
        }
        let best = self.waiting.values().min_by_key(|waiting| waiting.claim);
        let Some(session) = best.map(|waiting| waiting.session.clone()) else { return };
        self.epoch = epoch;
        let (claim, votes, rivals) = (wanting.claim, wanting.votes.clone(), wanting.rivals.clone());
        let others = self.best_other(&session, &rivals);
        // The process with the best claim enters in any case: the votes are for it.
        let best = best.map(|waiting| waiting.claim);
        let in_time = |claim: Claim| {
            world.settings.admission == Admission::Together
                || others.is_none_or(|others| claim < others)
                || Some(claim) == best
        };
        let (entering, others): (BTreeMap<_, _>, _) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(_, waiting)| waiting.session == session && in_time(waiting.claim));
        self.waiting = others;
        let now = world.now;
        let inside = entering.iter().map(|(process, waiting)| (*process, waiting.inside(now)));
        let inside = inside.collect();
        let unreported = world.died.as_ref().filter(|died| !died.reported);
        let recovered = unreported.map(|died| died.death.clone());
        let running =
            RunningStage { session, epoch, claim, votes, since: now, rivals, inside, recovered };
        world.out.save(Record::Opened(OpenStage {
            session: running.session.clone(),
            epoch: running.epoch,
            inside: running.inside.iter().map(|(process, i)| (*process, i.attempt)).collect(),
            recovered: None,
        }));
        world.out.save_if(running.recovered.clone().map(Record::Recovered));
        self.state = GroupState::Running(running);
        self.tell_inside(world);
        self.admit_waiting(world);
    }

    fn tell_inside(&self, world: &mut World<'_>) {
        let GroupState::Running(running) = &self.state else { return };
        if !running.is_sure(world) {
            return;
        }
        for (process, inside) in &running.inside {
            running.tell(*process, inside.attempt, inside.heard.sent, world);
        }
    }
}

impl RunningStage {
    /// Whether its processes may learn that they are inside. Their leases must end before the
    /// leases of the votes.
    fn is_sure(&self, world: &World<'_>) -> bool {
        world.settings.lease.is_none() || self.votes.quorum(world.settings.fresh(), world).is_some()
    }

    /// Tells a process that it is inside.
    fn tell(&self, process: ProcessId, attempt: u64, heard: Time, world: &mut World<'_>) {
        let here = world.died.as_ref().filter(|died| died.death.epoch == self.epoch);
        let recovered = here.map(|died| &died.death).or(self.recovered.as_ref()).cloned();
        let enter = GroupMessage::Enter { attempt, epoch: self.epoch, heard, recovered };
        world.out.tell(process, enter);
    }

    /// A process knows that it is inside, and knows the death before.
    fn heeded(&self, world: &mut World<'_>) {
        let reported = |death: &Death| KnownDeath { death: death.clone(), reported: true };
        world.learn(self.recovered.as_ref().map(reported));
    }

    /// When the last process inside intends to leave. A process that leaves before that delays
    /// nobody.
    fn ends(&self) -> Time {
        self.inside.values().map(|inside| inside.until).max().unwrap_or(Time::ZERO)
    }
}

impl Waiting {
    fn inside(&self, now: Time) -> Holder {
        let until = now + self.stay.unwrap_or_default();
        Holder { attempt: self.attempt, heard: self.heard, until, pid: self.pid }
    }
}
