//! A member as group: the paper's passive player. Processes ask it, and it competes for them.
//!
//! ```text
//!             first process asks             whole quorum voted              last process left
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
//! is answered only while Wanting; once inside, RELEASE is the answer.
//!
//! Epochs: a stage's epoch is one more than the highest that its quorum has heard of. The quorum of the stage before had
//! an arbiter in common with this one, which votes again only after the RELEASE that tells it that stage's epoch. So
//! epochs grow strictly from stage to stage in the whole cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::coterie::Quorum;
use crate::message::{GroupMessage, PeerMessage};
use crate::name::{MemberId, ProcessId};
use crate::output::Outbox;
use crate::rank::{Claim, Rank};
use crate::record::{Durable, OpenStage, Record};
use crate::rivals::Rivals;
use crate::settings::{Admission, Settings};
use crate::time::Time;

/// What a group needs to know of the world when something happens.
pub(crate) struct World<'a> {
    pub(crate) me: MemberId,
    pub(crate) quorum: &'a Quorum,
    pub(crate) settings: &'a Settings,
    pub(crate) now: Time,
    pub(crate) out: &'a mut Outbox,
}

impl World<'_> {
    fn tell_quorum(&mut self, message: PeerMessage) {
        self.quorum.iter().for_each(|arbiter| self.out.send(*arbiter, message));
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    /// The number of the last stage that was started.
    stage: u64,
    /// The highest epoch held.
    epoch: u64,
    state: State,
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
    /// Who voted, and the epoch it told.
    votes: BTreeMap<MemberId, u64>,
    /// The last grant that was given back to each.
    yielded: BTreeMap<MemberId, u64>,
    rivals: Rivals,
}

/// A stage under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Holding {
    pub(crate) session: String,
    pub(crate) epoch: u64,
    /// Until when those inside mean to stay, so that who leaves before delays nobody.
    pub(crate) ends: Time,
    /// The other members' groups that want the room.
    pub(crate) rivals: Rivals,
    pub(crate) inside: BTreeMap<ProcessId, Inside>,
}

/// A process in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Inside {
    pub(crate) attempt: u64,
    heard: Heard,
}

/// A process in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Waiting {
    pub(crate) attempt: u64,
    pub(crate) session: String,
    pub(crate) claim: Claim,
    stay: Option<Duration>,
    heard: Heard,
}

/// The last message from a process: by our clock and by its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Heard {
    pub(crate) at: Time,
    pub(crate) sent: Time,
}

/// What a process asks for.
pub(crate) struct Ask {
    pub(crate) attempt: u64,
    pub(crate) session: String,
    pub(crate) stay: Option<Duration>,
    pub(crate) priority: i32,
    pub(crate) sent: Time,
}

impl Group {
    /// With what was saved. A stage that had not begun is given up; one that had goes on.
    pub(crate) fn recover(durable: &Durable, world: &mut World<'_>) -> Self {
        let heard = Heard { at: world.now, sent: Time::ZERO };
        let holding = durable.open.as_ref().map(|open| Holding {
            session: open.session.clone(),
            epoch: open.epoch,
            ends: world.now,
            rivals: Rivals::unknown(world.quorum),
            inside: open
                .inside
                .iter()
                .map(|(process, attempt)| (*process, Inside { attempt: *attempt, heard }))
                .collect(),
        });
        let group = Group {
            stage: durable.stage,
            epoch: durable.epoch,
            state: holding.map_or(State::Idle, State::Holding),
            waiting: BTreeMap::new(),
        };
        if matches!(group.state, State::Idle) && group.stage > 0 {
            world.tell_quorum(PeerMessage::Release { stage: group.stage, epoch: group.epoch });
        }
        group
    }

    pub(crate) fn stage(&self) -> u64 {
        self.stage
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
                let (attempt, epoch) = (ask.attempt, holding.epoch);
                world.out.tell(process, GroupMessage::Enter { attempt, epoch, heard: ask.sent });
                return;
            }
            if inside.attempt > ask.attempt {
                return;
            }
            // It would not ask anew if it had not left.
            let before = inside.attempt;
            self.leave(process, before, world);
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
            stay: ask.stay,
            heard,
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

    /// A process is out, has given up or is dead.
    pub(crate) fn leave(&mut self, process: ProcessId, attempt: u64, world: &mut World<'_>) {
        if self.waiting.get(&process).is_some_and(|waiting| waiting.attempt == attempt) {
            self.waiting.remove(&process);
            if self.waiting.is_empty() && matches!(self.state, State::Wanting(_)) {
                self.finish(world);
            }
            self.admit_waiting(world);
        }
        if let State::Holding(holding) = &mut self.state
            && holding.inside.get(&process).is_some_and(|inside| inside.attempt == attempt)
        {
            holding.inside.remove(&process);
            if holding.inside.is_empty() {
                world.out.save(Record::Closed);
                self.finish(world);
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
            world.out.tell(process, GroupMessage::Renewed { attempt, heard: sent });
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
            self.leave(process, attempt, world);
        }
    }

    /// Whether a newcomer can join the stage under way.
    fn fits(&self, newcomer: &Waiting, world: &World<'_>) -> bool {
        let State::Holding(holding) = &self.state else { return false };
        if holding.session != newcomer.session {
            return false;
        }
        let Some(others) = self.best_other(&holding.session, &holding.rivals) else { return true };
        if world.settings.admission == Admission::InOrder && newcomer.claim < others {
            return true;
        }
        let reaches = world.now + world.settings.link_delay;
        newcomer.stay.is_some_and(|stay| reaches + stay <= holding.ends)
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
        let (attempt, heard) = (newcomer.attempt, newcomer.heard);
        // Without competition who stays long makes the stage longer.
        holding.ends = holding.ends.max(world.now + newcomer.stay.unwrap_or_default());
        holding.inside.insert(process, Inside { attempt, heard });
        world.out.save(Record::Admitted { process, attempt });
        let enter = GroupMessage::Enter { attempt, epoch: holding.epoch, heard: heard.sent };
        world.out.tell(process, enter);
    }

    // ---- stages ----

    fn start(&mut self, world: &mut World<'_>) {
        let Some(claim) = self.waiting.values().map(|waiting| waiting.claim).min() else { return };
        self.stage += 1;
        self.state = State::Wanting(Wanting {
            claim,
            votes: BTreeMap::new(),
            yielded: BTreeMap::new(),
            rivals: Rivals::default(),
        });
        world.out.save(Record::Wanting { stage: self.stage });
        self.request(world);
    }

    fn request(&mut self, world: &mut World<'_>) {
        if let Some(rank) = self.rank(world.me) {
            world.tell_quorum(PeerMessage::Request { rank });
        }
    }

    fn rank(&self, member: MemberId) -> Option<Rank> {
        let State::Wanting(wanting) = &self.state else { return None };
        Some(Rank { claim: wanting.claim, member, stage: self.stage })
    }

    fn finish(&mut self, world: &mut World<'_>) {
        let over = PeerMessage::Release { stage: self.stage, epoch: self.epoch };
        self.state = State::Idle;
        // The next request goes first, so that who gets the vote now learns of it with the vote.
        self.start(world);
        world.tell_quorum(over);
    }

    /// All votes are in: the room is ours.
    fn open(&mut self, world: &mut World<'_>) {
        let State::Wanting(wanting) = &self.state else { return };
        let best = self.waiting.values().min_by_key(|waiting| waiting.claim);
        let Some(session) = best.map(|waiting| waiting.session.clone()) else { return };
        let heard_of = wanting.votes.values().copied().max().unwrap_or(0);
        self.epoch = heard_of + 1;
        let rivals = wanting.rivals.clone();
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
        let longest = entering.values().filter_map(|waiting| waiting.stay).max();
        let inside = entering
            .iter()
            .map(|(process, w)| (*process, Inside { attempt: w.attempt, heard: w.heard }));
        let holding = Holding {
            session,
            epoch: self.epoch,
            ends: world.now + longest.unwrap_or_default(),
            rivals,
            inside: inside.collect(),
        };
        world.out.save(Record::Opened(OpenStage {
            session: holding.session.clone(),
            epoch: holding.epoch,
            inside: holding.inside.iter().map(|(process, i)| (*process, i.attempt)).collect(),
        }));
        self.state = State::Holding(holding);
        self.tell_inside(world);
        self.admit_waiting(world);
    }

    fn tell_inside(&self, world: &mut World<'_>) {
        let State::Holding(holding) = &self.state else { return };
        for (process, inside) in &holding.inside {
            let (attempt, heard) = (inside.attempt, inside.heard.sent);
            world.out.tell(*process, GroupMessage::Enter { attempt, epoch: holding.epoch, heard });
        }
    }

    // ---- arbiters ----

    pub(crate) fn locked(
        &mut self,
        arbiter: MemberId,
        (stage, grant): (u64, u64),
        epoch: u64,
        rival: Option<Claim>,
        world: &mut World<'_>,
    ) {
        if stage != self.stage {
            return;
        }
        match &mut self.state {
            State::Wanting(wanting) => {
                if wanting.yielded.get(&arbiter).is_some_and(|yielded| grant <= *yielded) {
                    return;
                }
                wanting.votes.insert(arbiter, epoch);
                wanting.rivals.hear(arbiter, rival);
                if wanting.votes.len() == world.quorum.len() {
                    self.open(world);
                }
            }
            State::Holding(holding) => {
                holding.rivals.hear(arbiter, rival);
                self.admit_waiting(world);
            }
            State::Idle => {}
        }
    }

    pub(crate) fn inquire(
        &mut self,
        arbiter: MemberId,
        (stage, grant): (u64, u64),
        rival: Claim,
        again: bool,
        world: &mut World<'_>,
    ) {
        if self.answer_if_over(arbiter, stage, again, world) {
            return;
        }
        match &mut self.state {
            State::Wanting(wanting) => {
                wanting.rivals.hear(arbiter, Some(rival));
                let yielded = wanting.yielded.entry(arbiter).or_insert(0);
                // If it was yielded before, the vote that is here now was given after that. Whether our answer was lost is not
                // for the arbiter to say: who sent it says it again.
                if grant > *yielded {
                    *yielded = grant;
                    wanting.votes.remove(&arbiter);
                    world.out.send(arbiter, PeerMessage::Relinquish { stage, grant });
                }
            }
            State::Holding(holding) => holding.rivals.hear(arbiter, Some(rival)),
            State::Idle => {}
        }
    }

    pub(crate) fn contested(
        &mut self,
        arbiter: MemberId,
        stage: u64,
        rival: Option<Claim>,
        again: bool,
        world: &mut World<'_>,
    ) {
        if self.answer_if_over(arbiter, stage, again, world) {
            return;
        }
        match &mut self.state {
            State::Wanting(wanting) => wanting.rivals.hear(arbiter, rival),
            State::Holding(holding) => {
                holding.rivals.hear(arbiter, rival);
                self.admit_waiting(world);
            }
            State::Idle => {}
        }
    }

    /// Whether that stage is over. An arbiter that asks for the second time has missed the RELEASE.
    fn answer_if_over(
        &self,
        arbiter: MemberId,
        stage: u64,
        again: bool,
        world: &mut World<'_>,
    ) -> bool {
        let over = self.over();
        if again && stage <= over {
            world.out.send(arbiter, PeerMessage::Release { stage: over, epoch: self.epoch });
        }
        stage <= over
    }

    /// The last stage that is over.
    fn over(&self) -> u64 {
        if matches!(self.state, State::Idle) { self.stage } else { self.stage - 1 }
    }

    /// What was sent to `arbiter` last may be lost.
    pub(crate) fn reconnect(&self, arbiter: MemberId, world: &mut World<'_>) {
        if !world.quorum.contains(&arbiter) {
            return;
        }
        let over = self.over();
        if over > 0 {
            world.out.send(arbiter, PeerMessage::Release { stage: over, epoch: self.epoch });
        }
        self.ask_again(arbiter, world);
    }

    /// Asks an arbiter again that has not answered.
    fn ask_again(&self, arbiter: MemberId, world: &mut World<'_>) {
        let (State::Wanting(wanting), Some(rank)) = (&self.state, self.rank(world.me)) else {
            return;
        };
        if wanting.votes.contains_key(&arbiter) {
            return;
        }
        if let Some(&grant) = wanting.yielded.get(&arbiter) {
            world.out.send(arbiter, PeerMessage::Relinquish { stage: self.stage, grant });
        }
        world.out.send(arbiter, PeerMessage::Request { rank });
    }

    // ---- time ----

    /// Whether something was asked that has not been answered.
    pub(crate) fn is_waiting_for_answers(&self) -> bool {
        match &self.state {
            State::Idle => false,
            State::Wanting(_) => true,
            State::Holding(holding) => !holding.rivals.is_empty() || !self.waiting.is_empty(),
        }
    }

    /// Nothing has happened for long: asks again whoever has not answered.
    pub(crate) fn retry(&mut self, world: &mut World<'_>) {
        world.quorum.iter().for_each(|arbiter| self.ask_again(*arbiter, world));
        self.tell_inside(world);
    }
}
