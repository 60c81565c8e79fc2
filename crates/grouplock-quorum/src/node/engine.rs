//! The core task of a member: it owns all rooms and the disk.
//!
//! It takes the frames that have arrived, up to a limit, and lets the rooms handle them. Then it
//! writes all records, flushes once, and only then sends messages.

mod out;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::hooks;
use super::memory::Blank;
use super::metrics::{Direction, Gauges, Metrics};
use super::room::{NotItsProcess, Outputs, Room, To};
use super::storage::{Storage, StorageError};
use crate::clock::Clock;
use crate::coterie::Coterie;
use crate::member::{Member, Refused};
use crate::message::{GroupMessage, PeerMessage, ProcessMessage};
use crate::name::{MemberId, ProcessId};
use crate::time::Time;
use crate::wire::{About, Cluster, Frame, Outbox, Reason};

/// How many inputs may wait. If the inbox is full, connections are not read.
pub(super) const INBOX: usize = 1024;
/// How many frames for one connection may wait.
pub(super) const OUTBOX: usize = 1024;
/// How many inputs share a flush.
const TOGETHER: usize = 128;
/// The largest number of rooms.
const MOST_ROOMS: usize = 65_536;
/// How often the time of day is compared with the clock.
const LOOK_AT_CLOCK: Duration = Duration::from_secs(1);
/// How many times in a row they must differ before the member restarts.
const BELIEVED_AFTER: u32 = 5;

/// How long an unused room is remembered.
const KEPT: Duration = Duration::from_secs(3600);

/// The pause for other work while many messages must be repeated.
const BREATH: Duration = Duration::from_millis(5);

/// The number of an accepted connection.
pub(super) type ConnectionId = u64;

/// The other side of an accepted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Member(MemberId),
    Client(u64),
}

/// The inputs of the engine.
#[derive(Debug)]
pub(super) enum Input {
    /// A connection was accepted.
    Joined { connection: ConnectionId, who: Who, address: String, outbox: Outbox },
    /// A frame arrived.
    Said { connection: ConnectionId, frame: Frame },
    /// A connection ended.
    Left { connection: ConnectionId },
    /// The connection that we dialled is up.
    LinkUp { peer: MemberId, outbox: Outbox },
    /// The connection that we dialled is down.
    LinkDown { peer: MemberId },
    /// A reader of the status page wants the gauges, and the status if the flag is set.
    Show(oneshot::Sender<(Gauges, Option<serde_json::Value>)>, bool),
    /// The member must stop.
    Stop,
}

/// Why the engine ended without a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Stopped,
    /// The clock differs from the time of day.
    ClockIsWrong,
}

/// A connection that was accepted, and who is at its other end.
pub(super) struct Accepted {
    pub(super) who: Who,
    address: String,
    outbox: Outbox,
}

/// See the module.
pub(super) struct Engine {
    pub(super) me: MemberId,
    pub(super) cluster: Cluster,
    pub(super) coterie: Arc<Coterie>,
    clock: Clock,
    metrics: Arc<Metrics>,
    pub(super) storage: Storage,
    pub(super) rooms: BTreeMap<Arc<str>, Room>,
    wakes: BTreeSet<(Time, Arc<str>)>,
    pub(super) links: Vec<Option<Outbox>>,
    /// For each member, the connection over which it presented the expected memory.
    pub(super) trusted: Vec<Option<ConnectionId>>,
    /// The members that have no memory.
    pub(super) blank_peers: BTreeSet<MemberId>,
    /// Set if this member has no memory.
    pub(super) blank: Option<Blank>,
    /// Set if the disk has failed.
    failed: Option<StorageError>,
    pub(super) connections: HashMap<ConnectionId, Accepted>,
    /// The connection of each client, by its secret.
    clients: HashMap<u64, ConnectionId>,
    outputs: Outputs,
    /// Requests of this round. If they still wait at its end, the client is told.
    fresh: Vec<(Arc<str>, ProcessId, u64, u64)>,
    /// Members that can be reached again, and rooms in which they may have missed messages.
    pub(super) resume: VecDeque<(MemberId, Arc<str>)>,
    /// How many times in a row the clock differed from the time of day.
    off: u32,
}

impl Engine {
    /// Starts with the data on disk.
    pub(super) fn new(
        me: MemberId,
        cluster: Cluster,
        coterie: Arc<Coterie>,
        clock: Clock,
        metrics: Arc<Metrics>,
        storage: Storage,
    ) -> Result<Self, Refused> {
        let now = clock.now();
        let mut rooms = BTreeMap::new();
        for (name, durable) in storage.rooms() {
            let (quorums, settings) = (coterie.clone(), cluster.settings);
            let mut member = Member::recover(me, quorums, settings, durable.clone(), now)?;
            others(me, &coterie).for_each(|other| member.handle_disconnect(now, other));
            rooms.insert(name.clone(), Room::new(name.clone(), member, Some(durable), now));
        }
        let links: Vec<_> = cluster.members.iter().map(|_| None).collect();
        let blank = storage.memory().is_blank().then(|| Blank::new(now));
        let mut engine = Engine {
            me,
            cluster,
            coterie,
            clock,
            metrics,
            storage,
            rooms,
            wakes: BTreeSet::new(),
            trusted: links.iter().map(|_| None).collect(),
            links,
            blank_peers: BTreeSet::new(),
            blank,
            failed: None,
            connections: HashMap::new(),
            clients: HashMap::new(),
            outputs: Outputs::default(),
            fresh: Vec::new(),
            resume: VecDeque::new(),
            off: 0,
        };
        let names: Vec<_> = engine.rooms.keys().cloned().collect();
        for name in names {
            engine.settle(&name, now, None);
        }
        Ok(engine)
    }

    /// Runs until it must stop, or the disk fails. Then nothing was sent that depends on unsaved
    /// data.
    pub(super) async fn run(
        mut self,
        mut inbox: mpsc::Receiver<Input>,
    ) -> Result<Ended, StorageError> {
        let mut look = tokio::time::interval(LOOK_AT_CLOCK);
        loop {
            let sleep = self.until_next_wake();
            let input = tokio::select! {
                input = inbox.recv() => input,
                () = tokio::time::sleep(sleep) => None,
                _ = look.tick() => {
                    let now = self.clock.now();
                    self.recall(now)?;
                    self.complain(now);
                    self.storage.rest()?;
                    if self.clock_is_wrong() {
                        self.flush(true)?;
                        self.say_goodbye();
                        return Ok(Ended::ClockIsWrong);
                    }
                    None
                }
            };
            let mut next = input;
            for _ in 0..TOGETHER {
                let Some(input) = next else { break };
                if matches!(input, Input::Stop) {
                    self.flush(true)?;
                    self.say_goodbye();
                    return Ok(Ended::Stopped);
                }
                self.handle(input);
                next = inbox.try_recv().ok();
            }
            if let Some(input) = next {
                self.handle(input);
            }
            self.wake();
            self.say_again();
            if let Some(failed) = self.failed.take() {
                return Err(failed);
            }
            self.flush(false)?;
        }
    }

    fn handle(&mut self, input: Input) {
        let now = self.clock.now();
        match input {
            Input::Joined { connection, who, address, outbox } => {
                if let Who::Client(client) = who
                    && let Some(old) = self.clients.insert(client, connection)
                    && let Some(old) = self.connections.get(&old)
                {
                    // The client has dialled again, so its old connection is dead even if we have
                    // not noticed.
                    old.outbox.cut();
                }
                self.connections.insert(connection, Accepted { who, address, outbox });
            }
            Input::Left { connection } => {
                if let Some(peer) = self.trusted.iter().position(|by| *by == Some(connection)) {
                    self.set_present(now, MemberId(peer as u16), None);
                }
                if let Some(Accepted { who: Who::Client(client), .. }) =
                    self.connections.remove(&connection)
                    && self.clients.get(&client) == Some(&connection)
                {
                    self.clients.remove(&client);
                }
            }
            Input::Said { connection, frame } => self.said(now, connection, frame),
            Input::LinkUp { peer, outbox } => self.link(now, peer, Some(outbox)),
            Input::LinkDown { peer } => self.link(now, peer, None),
            Input::Show(answer, all) => {
                // The reader may be gone.
                _ = answer.send((self.gauges(), all.then(|| self.status(now))));
            }
            Input::Stop => {}
        }
    }

    fn link(&mut self, now: Time, peer: MemberId, outbox: Option<Outbox>) {
        let before = self.is_present(peer);
        if let Some(link) = self.links.get_mut(peer.index()) {
            *link = outbox;
        }
        self.say_memory(peer);
        self.presence_changed(now, peer, before);
    }

    fn said(&mut self, now: Time, connection: ConnectionId, frame: Frame) {
        // The connection may have been refused while more of its frames were on the way.
        let Some(Accepted { who, .. }) = self.connections.get(&connection) else { return };
        let named = frame.check_names().map_err(|bad| Reason::BadName(bad.to_string()));
        // Only this message is refused. Other messages on the connection may be correct, and
        // holders depend on them.
        match (*who, frame) {
            (Who::Member(_), Frame::Memory { mine, recall }) => {
                if let Err(error) = self.hear_memory(now, connection, mine, recall) {
                    self.failed = Some(error);
                }
            }
            // Nothing else counts before the member has presented its memory, or while we have
            // none.
            (Who::Member(peer), Frame::Peer { .. })
                if self.blank.is_some() || self.trusted[peer.index()] != Some(connection) => {}
            // Its processes ask again. A process that was inside has lost its holding.
            (Who::Client(client), Frame::Process { room, process, message, .. })
                if self.blank.is_some() && named.is_ok() =>
            {
                self.unknown_room(client, &room, process, &message);
            }
            (Who::Member(peer), Frame::Peer { room, message }) => {
                if let Err(reason) = named.and_then(|()| self.peer(now, peer, &room, message)) {
                    self.metrics.refuse(&peer.to_string(), &reason);
                }
            }
            (Who::Client(client), Frame::Process { room, process, message, about }) => {
                let attempt = message.attempt();
                let handled =
                    named.and_then(|()| self.process(now, client, &room, process, message, about));
                if let Err(reason) = handled {
                    self.deny(connection, Frame::Denied { room, process, attempt, reason });
                }
            }
            (Who::Client(_), Frame::Look { question, room, brief }) => {
                self.look(now, connection, question, room.as_deref(), brief);
            }
            (who, frame) => {
                let role = match who {
                    Who::Member(_) => "member",
                    Who::Client(_) => "client",
                };
                let (frame, role) = (frame.kind().to_owned(), role.to_owned());
                self.refuse(connection, Reason::NotItsRole { frame, role });
            }
        }
    }

    fn peer(
        &mut self,
        now: Time,
        peer: MemberId,
        room: &str,
        message: PeerMessage,
    ) -> Result<(), Reason> {
        if let PeerMessage::Request { rank, .. } = &message {
            // The request may be old, but not from the future.
            let ahead = rank.claim.asked().since(now);
            self.cluster.check_clock(ahead)?;
        }
        let name = self.room(room, now)?;
        self.metrics.message(message.kind(), Direction::Received, false);
        if let Some(room) = self.rooms.get_mut(&name) {
            let handled = room.member.handle(now, peer, message);
            handled.map_err(|refused| Reason::Protocol(refused.to_string()))?;
            self.settle(&name, now, None);
        }
        Ok(())
    }

    fn process(
        &mut self,
        now: Time,
        client: u64,
        room: &str,
        process: ProcessId,
        message: ProcessMessage,
        about: Option<About>,
    ) -> Result<(), Reason> {
        let attempt = match &message {
            ProcessMessage::Ask { attempt, .. } => Some(*attempt),
            ProcessMessage::Leave { .. } | ProcessMessage::Renew { .. } => None,
        };
        let name = if attempt.is_some() {
            self.room(room, now)?
        } else {
            let Some((name, _)) = self.rooms.get_key_value(room) else {
                self.unknown_room(client, room, process, &message);
                return Ok(());
            };
            name.clone()
        };
        let Some(room) = self.rooms.get_mut(&name) else { return Ok(()) };
        let repeated = room.is_repeated(process, &message);
        let (kind, renewal) = (message.kind(), matches!(message, ProcessMessage::Renew { .. }));
        self.metrics.message(kind, Direction::Received, repeated && !renewal);
        if let Err(NotItsProcess) = room.hear(now, process, client, &message, about) {
            return Err(Reason::NotItsProcess(process));
        }
        let handled = room.member.handle_process(now, process, message);
        if let Err(refused) = handled {
            room.forget(process);
            return Err(Reason::Protocol(refused.to_string()));
        }
        if let Some(attempt) = attempt.filter(|_| !repeated) {
            self.fresh.push((name.clone(), process, attempt, client));
        }
        self.settle(&name, now, Some((process, client)));
        if let Some(room) = self.rooms.get_mut(&name) {
            room.forget(process);
        }
        self.arm(&name, now);
        Ok(())
    }

    /// Answers for a room that is unknown or forgotten: nobody is inside.
    fn unknown_room(
        &mut self,
        client: u64,
        room: &str,
        process: ProcessId,
        message: &ProcessMessage,
    ) {
        self.metrics.message(message.kind(), Direction::Received, true);
        if let ProcessMessage::Renew { attempt, .. } = *message {
            let message = GroupMessage::Gone { attempt };
            let frame = Frame::Group { room: room.to_owned(), process, message };
            self.outputs.send.push((To::Client(client), frame, false));
        }
    }

    /// Returns the room of that name. Makes it if there is none.
    fn room(&mut self, name: &str, now: Time) -> Result<Arc<str>, Reason> {
        if let Some((name, _)) = self.rooms.get_key_value(name) {
            return Ok(name.clone());
        }
        if self.rooms.len() >= MOST_ROOMS && !self.make_place() {
            return Err(Reason::TooMany { what: "rooms".to_owned(), most: MOST_ROOMS as u64 });
        }
        let name: Arc<str> = name.into();
        let (floor, coterie) = (self.storage.floor(), self.coterie.clone());
        let member = Member::above(floor, self.me, coterie, self.cluster.settings, now);
        let mut member = member.map_err(|refused| Reason::Protocol(refused.to_string()))?;
        others(self.me, &self.coterie)
            .filter(|other| !self.is_present(*other))
            .for_each(|other| member.handle_disconnect(now, other));
        self.rooms.insert(name.clone(), Room::new(name.clone(), member, None, now));
        Ok(name)
    }

    /// Forgets the room that was unused for the longest time, if there is one.
    fn make_place(&mut self) -> bool {
        let idle = |name: &Arc<str>| self.rooms.get(name).is_some_and(Room::is_idle);
        let first = self.wakes.iter().map(|(_, name)| name).find(|name| idle(name)).cloned();
        first.is_some_and(|first| self.retire(&[first]))
    }

    /// Forgets rooms. Returns `false` if the disk has failed.
    fn retire(&mut self, names: &[Arc<str>]) -> bool {
        let mut highest = 0;
        for name in names {
            let Some(room) = self.rooms.remove(name) else { continue };
            highest = highest.max(room.member.highest());
            room.wake.map(|at| self.wakes.remove(&(at, name.clone())));
        }
        let Engine { outputs, rooms, .. } = self;
        outputs.save.retain(|(room, _)| rooms.contains_key(room));
        let retired = self.storage.retire(names, highest);
        self.failed = self.failed.take().or(retired.err());
        self.failed.is_none()
    }

    /// Takes the outputs of a room, and sets its timer.
    pub(super) fn settle(&mut self, name: &Arc<str>, now: Time, asker: Option<(ProcessId, u64)>) {
        let Some(room) = self.rooms.get_mut(name) else { return };
        room.drain(now, asker, &mut self.outputs, &self.metrics);
        self.arm(name, now);
    }

    /// Sets the timer of a room: for its next timeout, or for when it can be forgotten.
    fn arm(&mut self, name: &Arc<str>, now: Time) {
        let Some(room) = self.rooms.get_mut(name) else { return };
        let forget = room.is_idle().then(|| now + hooks::kept(KEPT));
        let wake = room.member.poll_timeout().or(forget);
        if wake != room.wake {
            if let Some(old) = room.wake {
                self.wakes.remove(&(old, name.clone()));
            }
            if let Some(new) = wake {
                self.wakes.insert((new, name.clone()));
            }
            room.wake = wake;
        }
    }

    // ---- time ----

    fn until_next_wake(&self) -> Duration {
        if !self.resume.is_empty() {
            return BREATH;
        }
        let now = self.clock.now();
        let wake = self.wakes.first().map(|(at, _)| *at);
        wake.map_or(Duration::from_secs(3600), |at| at.since(now))
    }

    fn wake(&mut self) {
        let now = self.clock.now();
        let mut unused = Vec::new();
        while let Some((at, name)) = self.wakes.first()
            && *at <= now
        {
            let name = name.clone();
            let Some(room) = self.rooms.get_mut(&name) else { return };
            if room.is_idle() {
                self.wakes.pop_first();
                unused.push(name);
                continue;
            }
            let before = room.living();
            room.member.handle_timeout(now);
            self.settle(&name, now, None);
            if let Some(room) = self.rooms.get_mut(&name) {
                let deaths = room.bury(before);
                if deaths > 0 {
                    tracing::warn!(
                        "room `{name}`: {deaths} inside were silent for a lease and are taken for dead"
                    );
                }
                self.metrics.deaths.fetch_add(deaths, Relaxed);
            }
            self.arm(&name, now);
        }
        if !unused.is_empty() {
            self.retire(&unused);
        }
    }

    /// Repeats messages to members that can be reached again, for some rooms at a time: an outbox
    /// is bounded.
    fn say_again(&mut self) {
        let now = self.clock.now();
        for _ in 0..TOGETHER.min(self.resume.len()) {
            let Some((peer, name)) = self.resume.pop_front() else { return };
            let link = self.links.get(peer.index()).and_then(Option::as_ref);
            if !link.is_some_and(Outbox::has_room) {
                self.resume.push_back((peer, name));
                continue;
            }
            if let Some(room) = self.rooms.get_mut(&name) {
                room.member.handle_reconnect(now, peer);
                self.settle(&name, now, None);
            }
        }
    }

    /// Whether the clock stood still, as on a paused machine, or the time of day was set.
    fn clock_is_wrong(&mut self) -> bool {
        let drift = self.clock.drift();
        if drift <= self.cluster.clock_tolerance {
            self.off = 0;
            return false;
        }
        self.off += 1;
        if self.off == 1 {
            self.metrics.clock_jumps.fetch_add(1, Relaxed);
            tracing::warn!(
                "the time of day differs by {:.3} s from the clock of this member; if this lasts for {} s, the member starts again with the time of day",
                drift.as_secs_f64(),
                LOOK_AT_CLOCK.as_secs() * u64::from(BELIEVED_AFTER)
            );
        }
        self.off >= BELIEVED_AFTER
    }
}

fn others(me: MemberId, coterie: &Coterie) -> impl Iterator<Item = MemberId> {
    (0..coterie.members()).map(MemberId).filter(move |other| *other != me)
}
