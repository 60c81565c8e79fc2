//! One member's part in one room.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use thiserror::Error;

use crate::arbiter::{Arbiter, LEAP};
use crate::coterie::Coterie;
use crate::death::KnownDeath;
use crate::group::{Ask, Group, World};
use crate::message::{PeerMessage, ProcessMessage};
use crate::name::{MemberId, ProcessId, home};
use crate::output::{Output, PendingOutputs};
use crate::rank::{Claim, Rank};
use crate::record::Durable;
use crate::settings::{Settings, Votes};
use crate::time::Time;

/// One member's part in one room: an arbiter with a vote, and a group for the sessions whose home
/// it is.
///
/// It does nothing by itself. Hand it what arrives ([`handle`](Member::handle),
/// [`handle_process`](Member::handle_process)) and the time
/// ([`handle_timeout`](Member::handle_timeout)). Then do what it asks for
/// ([`poll_transmit`](Member::poll_transmit)).
///
/// ```
/// use std::sync::Arc;
/// use grouplock_quorum::{Coterie, Member, MemberId, Output, ProcessId, ProcessMessage, Settings, Time};
///
/// // A cluster of one: its own vote is all it needs.
/// let coterie = Arc::new(Coterie::majority(1)?);
/// let mut member = Member::new(MemberId(0), coterie, Settings::default())?;
/// let ask = ProcessMessage::Ask {
///     attempt: 1, session: "release".into(), stay: None, priority: 0, sent: Time::ZERO,
///     delay: std::time::Duration::ZERO, pid: 4711,
/// };
/// member.handle_process(Time::ZERO, ProcessId(7), ask)?;
///
/// let mut outputs = std::iter::from_fn(|| member.poll_transmit());
/// assert!(outputs.any(|output| matches!(output, Output::ToProcess(ProcessId(7), _))));
/// drop(outputs);
/// assert_eq!(member.stage_inside().map(|stage| stage.epoch), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    me: MemberId,
    coterie: Arc<Coterie>,
    settings: Settings,
    arbiter: Arbiter,
    group: Group,
    out: PendingOutputs,
    /// The last known death.
    died: Option<KnownDeath>,
    /// Members that cannot be reached.
    away: BTreeSet<MemberId>,
    /// When to ask again for a missing answer.
    retry_at: Option<Time>,
    /// When to look for dead processes.
    sweep_at: Option<Time>,
    /// When to renew the leases of our votes.
    keep_at: Option<Time>,
}

/// Without what is equal for all members and never changes: explorers hash millions of members.
impl Hash for Member {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.me.hash(state);
        self.arbiter.hash(state);
        self.group.hash(state);
        self.out.hash(state);
        self.died.hash(state);
        self.away.hash(state);
        self.retry_at.hash(state);
        self.sweep_at.hash(state);
        self.keep_at.hash(state);
    }
}

/// A message that cannot be correct. It has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// The member is not in the coterie.
    #[error("{member} is not one of the {members} members, 0 to {last}", last = members - 1)]
    UnknownMember {
        /// The member.
        member: MemberId,
        /// How many there are.
        members: u16,
    },
    /// The sender asks an arbiter that is not in its quorum.
    #[error("{from} asks {me} for its vote, but {me} is not in its quorum: the coteries differ")]
    NotInItsQuorum {
        /// The sender.
        from: MemberId,
        /// The receiver.
        me: MemberId,
    },
    /// An arbiter answers that was not asked.
    #[error(
        "{from} answers {me} about its vote, but {from} is not in the quorum of {me}: the coteries differ"
    )]
    NotInMyQuorum {
        /// The sender.
        from: MemberId,
        /// The receiver.
        me: MemberId,
    },
    /// A request in the name of another member.
    #[error("{from} sent a request in the name of {named}")]
    InAnothersName {
        /// The sender.
        from: MemberId,
        /// The member that it names.
        named: MemberId,
    },
    /// The message is about a stage that did not exist.
    #[error(
        "{from} names stage {stage}, but the last stage of {me} is {last}: one of the two has an old disk"
    )]
    NeverAsked {
        /// The sender.
        from: MemberId,
        /// The receiver.
        me: MemberId,
        /// The stage of the message.
        stage: u64,
        /// The last stage.
        last: u64,
    },
    /// The home of the session is another member.
    #[error("the home of session `{session}` is {home}, not {me}")]
    NotItsHome {
        /// The session.
        session: String,
        /// Its home.
        home: MemberId,
        /// The receiver.
        me: MemberId,
    },
}

/// The stage in which processes are inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageInside<'a> {
    /// Its session.
    pub session: &'a str,
    /// Its epoch.
    pub epoch: u64,
    /// How many processes are inside.
    pub inside: usize,
    /// A group of another member wants the room.
    pub contested: bool,
}

/// A number above all that others may have, if the known numbers go up to `last`.
pub(crate) fn above(last: u64) -> u64 {
    if last == 0 { 0 } else { last + LEAP + 1 }
}

impl Member {
    /// A member that has never run before.
    ///
    /// # Errors
    /// [`Refused::UnknownMember`] if `me` is not in the coterie.
    pub fn new(me: MemberId, coterie: Arc<Coterie>, settings: Settings) -> Result<Self, Refused> {
        Self::above(0, me, coterie, settings, Time::ZERO)
    }

    /// A member that has lost its memory. All numbers that others may remember of it in this room
    /// are below `floor`: it has asked [all of them](Member::floor).
    ///
    /// # Errors
    /// [`Refused::UnknownMember`] if `me` is not in the coterie.
    pub fn above(
        floor: u64,
        me: MemberId,
        coterie: Arc<Coterie>,
        settings: Settings,
        now: Time,
    ) -> Result<Self, Refused> {
        let mut member = Self::recover(me, coterie, settings, Durable::above(floor), now)?;
        // There is no stage that could be over.
        member.out = PendingOutputs::new(me);
        Ok(member)
    }

    /// A member that restarts with the data that it [saved](Output::Save).
    ///
    /// # Errors
    /// [`Refused::UnknownMember`] if `me` is not in the coterie.
    pub fn recover(
        me: MemberId,
        coterie: Arc<Coterie>,
        settings: Settings,
        durable: Durable,
        now: Time,
    ) -> Result<Self, Refused> {
        let members = coterie.members();
        if coterie.quorum(me).is_none() {
            return Err(Refused::UnknownMember { member: me, members });
        }
        let mut member = Member {
            me,
            coterie,
            settings,
            arbiter: Arbiter::default(),
            group: Group::default(),
            out: PendingOutputs::new(me),
            died: durable.died.clone(),
            away: BTreeSet::new(),
            retry_at: None,
            sweep_at: None,
            keep_at: None,
        };
        member.group = Group::recover(&durable, &mut member.parts(now).2);
        member.arbiter = Arbiter::recover(durable.vote, now);
        member.settle(now);
        Ok(member)
    }

    /// Handles a message from another member.
    ///
    /// # Errors
    /// If the message cannot be correct. Then nothing has changed.
    pub fn handle(
        &mut self,
        now: Time,
        from: MemberId,
        message: PeerMessage,
    ) -> Result<(), Refused> {
        self.check(from, &message)?;
        self.dispatch(now, from, message);
        self.settle(now);
        Ok(())
    }

    /// Handles a message from a process.
    ///
    /// # Errors
    /// [`Refused::NotItsHome`] if another member is the home of the session and none may stand in
    /// for it ([`Votes::OwnQuorum`]). Then nothing has changed.
    pub fn handle_process(
        &mut self,
        now: Time,
        from: ProcessId,
        message: ProcessMessage,
    ) -> Result<(), Refused> {
        if let ProcessMessage::Ask { session, .. } = &message {
            let home = home(session, self.coterie.members());
            if home != self.me && self.settings.votes == Votes::OwnQuorum {
                return Err(Refused::NotItsHome { session: session.clone(), home, me: self.me });
            }
        }
        let (group, mut world) = self.group(now);
        match message {
            ProcessMessage::Ask { attempt, session, stay, priority, sent, delay, pid } => {
                let ask = Ask { attempt, session, stay, priority, sent, delay, pid };
                group.ask(from, ask, &mut world);
            }
            ProcessMessage::Leave { attempt, entered } => {
                group.leave(from, attempt, entered, &mut world);
            }
            ProcessMessage::Renew { attempt, sent } => {
                group.renew(from, attempt, sent, &mut world);
            }
        }
        self.settle(now);
        Ok(())
    }

    /// Handles the passing of time. Call it at [`poll_timeout`](Member::poll_timeout); at other
    /// times it does no harm.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.sweep_at.is_some_and(|at| at <= now)
            && let Some(lease) = self.settings.lease
        {
            self.sweep_at = None;
            let (group, mut world) = self.group(now);
            group.expire(lease, &mut world);
        }
        let (arbiter, _, mut world) = self.parts(now);
        if arbiter.expires(world.settings).is_some_and(|at| at <= now) {
            arbiter.expire(&mut world);
        }
        if self.keep_at.is_some_and(|at| at <= now) {
            self.keep_at = None;
            let (group, mut world) = self.group(now);
            group.keep(&mut world);
        }
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_at = None;
            let (arbiter, group, mut world) = self.parts(now);
            arbiter.retry(&mut world);
            group.retry(&mut world);
        }
        self.settle(now);
    }

    /// `peer` cannot be reached: asks other members for their votes, if the settings allow it.
    pub fn handle_disconnect(&mut self, now: Time, peer: MemberId) {
        if self.away.insert(peer) {
            let (group, mut world) = self.group(now);
            group.widen(&mut world);
            self.settle(now);
        }
    }

    /// `peer` can be reached again, and messages to it may be lost: repeats them at once, instead
    /// of after `retry`.
    pub fn handle_reconnect(&mut self, now: Time, peer: MemberId) {
        if peer == self.me || peer.0 >= self.coterie.members() {
            return;
        }
        self.away.remove(&peer);
        let (arbiter, group, mut world) = self.parts(now);
        arbiter.reconnect(peer, &mut world);
        group.reconnect(peer, &mut world);
        group.widen(&mut world);
        self.settle(now);
    }

    /// The next thing to do, in order; `None` if there is none.
    pub fn poll_transmit(&mut self) -> Option<Output> {
        self.out.pop()
    }

    /// When to call [`handle_timeout`](Member::handle_timeout) if nothing else happens.
    pub fn poll_timeout(&self) -> Option<Time> {
        let expires = self.arbiter.expires(&self.settings);
        [self.retry_at, self.sweep_at, self.keep_at, expires].into_iter().flatten().min()
    }

    /// Which member this is.
    pub fn id(&self) -> MemberId {
        self.me
    }

    /// The stage in which processes of this member are inside.
    pub fn stage_inside(&self) -> Option<StageInside<'_>> {
        self.group.running().map(|running| StageInside {
            session: &running.session,
            epoch: running.epoch,
            inside: running.inside.len(),
            contested: !running.rivals.is_empty(),
        })
    }

    /// The processes inside, with the numbers of their requests.
    pub fn inside(&self) -> impl Iterator<Item = (ProcessId, u64)> {
        let inside = self.group.running().map(|running| &running.inside).into_iter().flatten();
        inside.map(|(process, inside)| (*process, inside.attempt))
    }

    /// The processes that wait here with their sessions and claims, the best claim first.
    pub fn waiting(&self) -> Vec<(ProcessId, &str, Claim)> {
        let waiting = self.group.waiting().iter();
        let mut waiting: Vec<_> =
            waiting.map(|(process, it)| (*process, it.session.as_str(), it.claim)).collect();
        waiting.sort_by_key(|(process, _, claim)| (*claim, *process));
        waiting
    }

    /// The number and the claim of a waiting request.
    pub fn waits(&self, process: ProcessId) -> Option<(u64, Claim)> {
        self.group.waiting().get(&process).map(|waiting| (waiting.attempt, waiting.claim))
    }

    /// Whether a process is inside here.
    pub fn is_inside(&self, process: ProcessId) -> bool {
        self.group.running().is_some_and(|running| running.inside.contains_key(&process))
    }

    /// The highest epoch that was held here or that this arbiter knows to be over.
    pub fn epoch(&self) -> u64 {
        self.group.epoch().max(self.arbiter.vote().epoch)
    }

    /// A number above all that this member remembers of `peer` and of the room. A `peer` that has
    /// lost its memory continues [above](Member::above) it, after it has asked every quorum.
    pub fn floor(&self, peer: MemberId) -> u64 {
        let stage = self.arbiter.last_stage(peer);
        let last = self.epoch().max(stage).max(self.group.yielded(peer));
        above(last)
    }

    /// Whether nothing of the room must be remembered: nobody is inside or waits, nobody has or
    /// wants the vote, and every death is reported. Then one [number](Member::highest) is enough.
    pub fn is_idle(&self) -> bool {
        let reported = self.died.as_ref().is_none_or(|died| died.reported);
        reported && self.group.is_idle() && self.arbiter.is_idle()
    }

    /// The highest number that this member has used or heard in the room. After it has forgotten
    /// the room it continues [above](Member::above) it.
    pub fn highest(&self) -> u64 {
        self.group.stage().max(self.epoch()).max(self.arbiter.highest())
    }

    /// The number of the last stage that began here.
    pub fn stage(&self) -> u64 {
        self.group.stage()
    }

    /// How many votes have arrived, while the group competes.
    pub fn votes(&self) -> Option<usize> {
        self.group.votes()
    }

    /// The stage that has this member's vote.
    pub fn voted_for(&self) -> Option<&Rank> {
        self.arbiter.vote().owner.as_ref().map(|(rank, _)| rank)
    }

    /// The stages that wait for this member's vote, the first first.
    pub fn electors(&self) -> impl Iterator<Item = &Rank> {
        self.arbiter.queue()
    }

    fn check(&self, from: MemberId, message: &PeerMessage) -> Result<(), Refused> {
        let (me, members) = (self.me, self.coterie.members());
        let Some(its) = self.coterie.quorum(from) else {
            return Err(Refused::UnknownMember { member: from, members });
        };
        let own = self.settings.votes == Votes::OwnQuorum;
        if own && message.is_for_arbiter() && !its.contains(&me) {
            return Err(Refused::NotInItsQuorum { from, me });
        }
        match *message {
            PeerMessage::Request { rank, .. } if rank.member != from => {
                Err(Refused::InAnothersName { from, named: rank.member })
            }
            PeerMessage::Locked { stage, .. }
            | PeerMessage::Inquire { stage, .. }
            | PeerMessage::Contested { stage, .. } => {
                let last = self.group.stage();
                if own && !self.coterie.all()[me.index()].contains(&from) {
                    Err(Refused::NotInMyQuorum { from, me })
                } else if stage > last || stage == 0 {
                    Err(Refused::NeverAsked { from, me, stage, last })
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }

    fn dispatch(&mut self, now: Time, from: MemberId, message: PeerMessage) {
        let (arbiter, group, mut world) = self.parts(now);
        let world = &mut world;
        match message {
            PeerMessage::Request { rank, sent, epoch } => arbiter.request(rank, sent, epoch, world),
            PeerMessage::Relinquish { stage, grant } => {
                arbiter.relinquish(from, stage, grant, world);
            }
            PeerMessage::Release { stage, epoch, died } => {
                arbiter.release(from, stage, epoch, died, world);
            }
            PeerMessage::Locked { stage, grant, epoch, heard, rival, died } => {
                group.locked(from, (stage, grant), (epoch, heard), rival, died, world);
            }
            PeerMessage::Inquire { stage, grant, rival, again } => {
                group.inquire(from, (stage, grant), rival, again, world);
            }
            PeerMessage::Contested { stage, rival, again, .. } => {
                group.contested(from, stage, rival, again, world);
            }
        }
    }

    /// Delivers what the member sent to itself, and sets its timers.
    fn settle(&mut self, now: Time) {
        while let Some(message) = self.out.pop_loopback() {
            self.dispatch(now, self.me, message);
        }
        let retry = self.arbiter.is_waited_for() || self.group.is_waiting_for_answers();
        let again = self.retry_at.unwrap_or(now + self.settings.retry);
        self.retry_at = retry.then_some(again);
        let anybody = !self.group.waiting().is_empty() || self.group.running().is_some();
        let quarter = self.settings.lease.map(|lease| lease / 4);
        let every = |at: Option<Time>, needed: bool| match quarter {
            Some(quarter) if needed => Some(at.unwrap_or(now + quarter)),
            _ => None,
        };
        self.sweep_at = every(self.sweep_at, anybody);
        self.keep_at = every(self.keep_at, self.group.has_votes());
    }

    fn group(&mut self, now: Time) -> (&mut Group, World<'_>) {
        let (_, group, world) = self.parts(now);
        (group, world)
    }

    fn parts(&mut self, now: Time) -> (&mut Arbiter, &mut Group, World<'_>) {
        let Member { me, coterie, settings, arbiter, group, out, died, away, .. } = self;
        (arbiter, group, World { me: *me, coterie, settings, away, now, died, out })
    }
}
