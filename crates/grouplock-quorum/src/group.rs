//! A member as group: the paper's passive player. Processes ask it, and it competes for them.
//!
//! ```text
//!             first process asks             a quorum has voted              last process left
//!      Idle ----------------------> Wanting ----------------------> Holding ------------------> Idle
//!        ^     REQUEST to quorum       |     everyone of the best     |        RELEASE to quorum
//!        |                             |     session: ENTER           +-- newcomer of the session: ENTER if
//!        +-----------------------------+                                  nobody competes or it fits
//!              all gave up: RELEASE
//! ```
//!
//! One group per member, though many sessions may be at home there: stages follow each other and each serves one session,
//! the one with the best claim when the votes are in. So an arbiter keeps one entry per member, not per session.
//!
//! Votes: LOCKED counts unless that grant was given back before (`yielded`: INQUIRE may overtake LOCKED). An inquiry
//! is answered only while Wanting; once inside, RELEASE is the answer. Any quorum will do ([`Ballots`]).
//!
//! Leases: a vote is renewed by asking for it again. Processes are told that they are inside only while a quorum's last words
//! are fresh, so that they are out, by their own leases, before an arbiter takes its vote back.
//!
//! Epochs: a stage's epoch is one more than the highest that its arbiters have heard of. The quorum of the stage before had
//! an arbiter in common with this one. It votes again after the RELEASE that tells that stage's epoch, or it took its vote
//! back and has leapt past that epoch: which was at most [`LEAP`] above what the arbiter knew. So epochs grow strictly from stage to
//! stage in the whole cluster.

mod arbiters;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::arbiter::LEAP;
use crate::ballots::Ballots;
use crate::coterie::{Coterie, Quorum};
use crate::death::{Dead, Death, Died};
use crate::message::{GroupMessage, PeerMessage};
use crate::name::{MemberId, ProcessId};
use crate::output::Outbox;
use crate::rank::{Claim, Rank};
use crate::record::{Durable, OpenStage, Record};
use crate::rivals::Rivals;
use crate::settings::{Admission, Settings, Votes};
use crate::time::{Heard, Time};

/// The longest stay that is believed.
const LONGEST_STAY: Duration = Duration::from_secs(3600);

/// What a member needs to know of the world when something happens.
pub(crate) struct World<'a> {
    pub(crate) me: MemberId,
    pub(crate) coterie: &'a Coterie,
    pub(crate) settings: &'a Settings,
    /// Members that cannot be reached.
    pub(crate) away: &'a BTreeSet<MemberId>,
    pub(crate) now: Time,
    /// The last death that is known.
    pub(crate) died: &'a mut Option<Died>,
    pub(crate) out: &'a mut Outbox,
}

impl<'a> World<'a> {
    /// Our own.
    pub(crate) fn quorum(&self) -> Option<&'a Quorum> {
        self.coterie.quorum(self.me)
    }

    fn tell<'m>(&mut self, members: impl IntoIterator<Item = &'m MemberId>, message: &PeerMessage) {
        members.into_iter().for_each(|member| self.out.send(*member, message.clone()));
    }

    /// Takes in what is known elsewhere, or noticed here, of deaths.
    pub(crate) fn learn(&mut self, died: Option<Died>) {
        if let Some(died) = died.filter(|died| died.is_news(self.died.as_ref())) {
            self.out.save(Record::Died(died.clone()));
            *self.died = Some(died);
        }
    }

    /// Somebody may have died in a stage, and nothing else is known of it.
    pub(crate) fn suspect(&mut self, epoch: u64) {
        let death = Death { epoch, noticed: self.now, who: None };
        self.learn(Some(Died { death, told: false }));
    }

    /// Whom to ask: our own quorum, or another one if somebody of ours cannot be reached and all of that one can.
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
    /// The number of the last stage that was started.
    stage: u64,
    /// The highest epoch held.
    epoch: u64,
    state: State,
    /// Whom it has asked for their votes in that stage.
    asked: BTreeSet<MemberId>,
    waiting: BTreeMap<ProcessId, Waiting>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum State {
    #[default]
    Idle,
    Wanting(Wanting),
    Holding(Holding),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Wanting {
    claim: Claim,
    votes: Ballots,
    /// The last grant that was given back to each.
    yielded: BTreeMap<MemberId, u64>,
    rivals: Rivals,
}

/// A stage under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Holding {
    pub(crate) session: String,
    pub(crate) epoch: u64,
    claim: Claim,
    votes: Ballots,
    /// When it began, or was found again after a restart.
    since: Time,
    /// The other members' groups that want the room.
    pub(crate) rivals: Rivals,
    pub(crate) inside: BTreeMap<ProcessId, Inside>,
    /// The death before this stage that its processes are told of.
    recovered: Option<Death>,
}

/// A process in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Inside {
    pub(crate) attempt: u64,
    heard: Heard,
    /// Until when it means to stay.
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

/// What a process asks for.
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
    /// With what was saved. A stage that had not begun is given up; one that had goes on if its arbiters say so.
    pub(crate) fn recover(durable: &Durable, world: &mut World<'_>) -> Self {
        let heard = Heard { at: world.now, sent: Time::ZERO };
        // If it had asked others too, they will ask what has become of it.
        let asked = world.quorum().cloned().unwrap_or_default();
        let inside = |attempt| Inside { attempt, heard, until: world.now, pid: 0 };
        let holding = durable.open.as_ref().map(|open| Holding {
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
            state: holding.map_or(State::Idle, State::Holding),
            asked,
            waiting: BTreeMap::new(),
        };
        if !matches!(group.state, State::Idle) {
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
        matches!(self.state, State::Idle) && self.waiting.is_empty()
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(crate) fn holding(&self) -> Option<&Holding> {
        match &self.state {
            State::Holding(holding) => Some(holding),
            State::Idle | State::Wanting(_) => None,
        }
    }

    pub(crate) fn votes(&self) -> Option<usize> {
        match &self.state {
            State::Wanting(wanting) => Some(wanting.votes.len()),
            State::Idle | State::Holding(_) => None,
        }
    }

    pub(crate) fn waiting(&self) -> &BTreeMap<ProcessId, Waiting> {
        &self.waiting
    }

    // ---- processes ----

    pub(crate) fn ask(&mut self, process: ProcessId, ask: Ask, world: &mut World<'_>) {
        let heard = Heard { at: world.now, sent: ask.sent };
        if let State::Holding(holding) = &mut self.state
            && let Some(inside) = holding.inside.get_mut(&process)
        {
            if inside.attempt == ask.attempt {
                inside.heard = heard;
                if holding.is_sure(world) {
                    holding.tell(process, ask.attempt, ask.sent, world);
                }
                return;
            }
            if inside.attempt > ask.attempt {
                return;
            }
            // It would not ask anew if it had not left.
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
        if self.fits(&waiting, world) {
            self.admit(process, &waiting, world);
            return;
        }
        let claim = waiting.claim;
        self.waiting.insert(process, waiting);
        match &mut self.state {
            State::Idle => self.start(world),
            State::Wanting(wanting) if claim < wanting.claim => {
                wanting.claim = claim;
                self.request(world);
            }
            State::Wanting(_) | State::Holding(_) => {}
        }
    }

    /// A process is out, has given up or is dead. `entered`: it knows that it was inside.
    pub(crate) fn leave(
        &mut self,
        process: ProcessId,
        attempt: u64,
        entered: bool,
        world: &mut World<'_>,
    ) {
        if self.waiting.get(&process).is_some_and(|waiting| waiting.attempt == attempt) {
            self.waiting.remove(&process);
            // If it had the best claim, the arbiters rank the stage too high: it begins again.
            let best = self.best_claim();
            if let State::Wanting(wanting) = &self.state
                && best.is_none_or(|best| best > wanting.claim)
            {
                self.finish(world);
            }
            self.admit_waiting(world);
        }
        if let State::Holding(holding) = &mut self.state
            && holding.inside.get(&process).is_some_and(|inside| inside.attempt == attempt)
        {
            if entered {
                holding.heeded(world);
            }
            holding.inside.remove(&process);
            if holding.inside.is_empty() {
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
        if let State::Holding(holding) = &mut self.state
            && let Some(inside) = holding.inside.get_mut(&process)
            && inside.attempt == attempt
        {
            inside.heard = heard;
            holding.heeded(world);
            if holding.is_sure(world) {
                world.out.tell(process, GroupMessage::Renewed { attempt, heard: sent });
            }
        } else {
            world.out.tell(process, GroupMessage::Gone { attempt });
        }
    }

    /// Those who have not been heard of for the length of a lease are taken for dead.
    pub(crate) fn expire(&mut self, lease: Duration, world: &mut World<'_>) {
        let silent = |heard: Heard| heard.at + lease <= world.now;
        let waiting = self.waiting.iter().map(|(process, w)| (*process, w.attempt, w.heard));
        let inside = self.holding().map(|holding| &holding.inside).into_iter().flatten();
        let inside = inside.map(|(process, i)| (*process, i.attempt, i.heard));
        let dead: Vec<_> = waiting.chain(inside).filter(|(_, _, heard)| silent(*heard)).collect();
        for (process, attempt, _) in dead {
            self.note_death(process, world);
            self.leave(process, attempt, false, world);
        }
        // Its arbiters have been silent for so long that others may be inside. Its processes know.
        if let State::Holding(holding) = &self.state
            && let Some(lapse) = world.settings.lapse()
            && holding.since + lapse < world.now
            && holding.votes.quorum(Some(lapse), world).is_none()
        {
            if let Some(&process) = holding.inside.keys().next() {
                self.note_death(process, world);
            }
            world.out.save(Record::Closed);
            self.finish(world);
        }
    }

    /// A process is inside, and will not leave by itself.
    fn note_death(&self, process: ProcessId, world: &mut World<'_>) {
        let Some(holding) = self.holding() else { return };
        let Some(inside) = holding.inside.get(&process) else { return };
        let who = Some(Dead { session: holding.session.clone(), pid: inside.pid });
        let death = Death { epoch: holding.epoch, noticed: world.now, who };
        world.learn(Some(Died { death, told: false }));
    }

    /// Whether a newcomer can join the stage under way.
    fn fits(&self, newcomer: &Waiting, world: &World<'_>) -> bool {
        let State::Holding(holding) = &self.state else { return false };
        if holding.session != newcomer.session || !holding.is_sure(world) {
            return false;
        }
        let Some(others) = self.best_other(&holding.session, &holding.rivals) else { return true };
        if world.settings.admission == Admission::InOrder && newcomer.claim < others {
            return true;
        }
        let reaches = world.now + newcomer.delay;
        newcomer.stay.is_some_and(|stay| reaches + stay <= holding.ends())
    }

    /// The best claim of those who want the room for another session.
    fn best_other(&self, session: &str, rivals: &Rivals) -> Option<Claim> {
        let here = self.waiting.values().filter(|waiting| waiting.session != session);
        here.map(|waiting| waiting.claim).chain(rivals.best()).min()
    }

    /// Fewer compete than before: who waits for the session inside may join now.
    fn admit_waiting(&mut self, world: &mut World<'_>) {
        let State::Holding(holding) = &self.state else { return };
        let session = &holding.session;
        let of_session = self.waiting.iter().filter(|(_, waiting)| waiting.session == *session);
        let mut candidates: Vec<_> = of_session.map(|(p, waiting)| (waiting.claim, *p)).collect();
        candidates.sort_unstable();
        for (_, process) in candidates {
            let Some(waiting) = self.waiting.get(&process) else { continue };
            if self.fits(waiting, world)
                && let Some(waiting) = self.waiting.remove(&process)
            {
                self.admit(process, &waiting, world);
            }
        }
    }

    fn admit(&mut self, process: ProcessId, newcomer: &Waiting, world: &mut World<'_>) {
        let State::Holding(holding) = &mut self.state else { return };
        let attempt = newcomer.attempt;
        holding.inside.insert(process, newcomer.inside(world.now));
        world.out.save(Record::Admitted { process, attempt });
        holding.tell(process, attempt, newcomer.heard.sent, world);
    }

    // ---- stages ----

    fn best_claim(&self) -> Option<Claim> {
        self.waiting.values().map(|waiting| waiting.claim).min()
    }

    fn start(&mut self, world: &mut World<'_>) {
        let Some(claim) = self.best_claim() else { return };
        self.stage += 1;
        self.state = State::Wanting(Wanting {
            claim,
            votes: Ballots::default(),
            yielded: BTreeMap::new(),
            rivals: Rivals::default(),
        });
        self.asked = world.reachable_quorum().cloned().unwrap_or_default();
        world.out.save(Record::Wanting { stage: self.stage });
        self.request(world);
    }

    /// Asks all again who were asked.
    fn request(&self, world: &mut World<'_>) {
        self.asked.iter().for_each(|arbiter| self.request_from(*arbiter, self.epoch, world));
    }

    fn request_from(&self, arbiter: MemberId, epoch: u64, world: &mut World<'_>) {
        let claim = match &self.state {
            State::Idle => return,
            State::Wanting(wanting) => wanting.claim,
            State::Holding(holding) => holding.claim,
        };
        let (rank, sent) = (Rank { claim, member: world.me, stage: self.stage }, world.now);
        world.out.send(arbiter, PeerMessage::Request { rank, sent, epoch });
    }

    /// Who can be reached has changed: asks another quorum if one that was asked is not whole any more.
    pub(crate) fn widen(&mut self, world: &mut World<'_>) {
        if matches!(self.state, State::Idle) || world.settings.votes == Votes::OwnQuorum {
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

    /// That a stage and all before are over.
    fn release(&self, stage: u64, world: &World<'_>) -> PeerMessage {
        PeerMessage::Release { stage, epoch: self.epoch, died: world.died.clone() }
    }

    fn finish(&mut self, world: &mut World<'_>) {
        let over = self.release(self.stage, world);
        let asked = std::mem::take(&mut self.asked);
        self.state = State::Idle;
        // The next request goes first, so that who gets the vote now learns of it with the vote.
        self.start(world);
        world.tell(&asked, &over);
    }

    /// If a quorum has voted the room is ours.
    fn open(&mut self, world: &mut World<'_>) {
        let State::Wanting(wanting) = &self.state else { return };
        let Some(quorum) = wanting.votes.quorum(world.settings.fresh(), world) else { return };
        let epoch = wanting.votes.epoch().max(self.epoch) + 1;
        // If our home dies the arbiters leap, and have to be past this epoch then.
        let behind = wanting.votes.behind(quorum, epoch.saturating_sub(LEAP));
        if !behind.is_empty() {
            return behind.iter().for_each(|it| self.request_from(*it, epoch - 1, world));
        }
        let best = self.waiting.values().min_by_key(|waiting| waiting.claim);
        let Some(session) = best.map(|waiting| waiting.session.clone()) else { return };
        self.epoch = epoch;
        let (claim, votes, rivals) = (wanting.claim, wanting.votes.clone(), wanting.rivals.clone());
        let others = self.best_other(&session, &rivals);
        // Whoever has the best claim here enters in any case: the votes are for it.
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
        let untold = world.died.as_ref().filter(|died| !died.told);
        let recovered = untold.map(|died| died.death.clone());
        let holding =
            Holding { session, epoch, claim, votes, since: now, rivals, inside, recovered };
        world.out.save(Record::Opened(OpenStage {
            session: holding.session.clone(),
            epoch: holding.epoch,
            inside: holding.inside.iter().map(|(process, i)| (*process, i.attempt)).collect(),
            recovered: None,
        }));
        world.out.save_if(holding.recovered.clone().map(Record::Recovered));
        self.state = State::Holding(holding);
        self.tell_inside(world);
        self.admit_waiting(world);
    }

    fn tell_inside(&self, world: &mut World<'_>) {
        let State::Holding(holding) = &self.state else { return };
        if !holding.is_sure(world) {
            return;
        }
        for (process, inside) in &holding.inside {
            holding.tell(*process, inside.attempt, inside.heard.sent, world);
        }
    }
}

impl Holding {
    /// Whether its processes may be told that they are inside: their leases will be over before those of its votes.
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

    /// A process knows that it is inside, and who died before.
    fn heeded(&self, world: &mut World<'_>) {
        let told = |death: &Death| Died { death: death.clone(), told: true };
        world.learn(self.recovered.as_ref().map(told));
    }

    /// Until when those inside mean to stay: who leaves before delays nobody.
    fn ends(&self) -> Time {
        self.inside.values().map(|inside| inside.until).max().unwrap_or(Time::ZERO)
    }
}

impl Waiting {
    fn inside(&self, now: Time) -> Inside {
        let until = now + self.stay.unwrap_or_default();
        Inside { attempt: self.attempt, heard: self.heard, until, pid: self.pid }
    }
}
