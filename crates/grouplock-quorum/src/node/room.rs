//! One room at one member: its part in the protocol, and what others can see of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::metrics::Metrics;
use crate::member::Member;
use crate::message::{GroupMessage, PeerMessage, ProcessMessage};
use crate::name::{MemberId, ProcessId};
use crate::output::Output;
use crate::rank::Claim;
use crate::record::{Durable, OpenStage, Record};
use crate::time::Time;
use crate::wire::{About, Frame, Inside, Participant, PastStage, Seen, Stage, Waiter};

/// How many past stages are remembered.
const PAST: usize = 32;
/// How many entries of a list are in one frame. They fit even with the longest names.
const PIECE: usize = 48;

/// The receiver of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Member(MemberId),
    /// By its secret.
    Client(u64),
}

/// The outputs of rooms.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    pub(super) save: Vec<(Arc<str>, Record)>,
    pub(super) send: Vec<(To, Frame, bool)>,
}

/// A process that waits or is inside.
#[derive(Debug, Default)]
struct Person {
    /// The client of the process; not known after a restart until the process is heard.
    client: Option<u64>,
    about: Option<About>,
    since: Time,
    /// The request for which ENTER was sent.
    told: Option<u64>,
}

/// The last message of each kind to each member, to recognise repeated ones.
type Said = BTreeMap<(MemberId, u8), (u64, Option<Claim>)>;

#[derive(Debug)]
pub(super) struct Room {
    pub(super) name: Arc<str>,
    pub(super) member: Member,
    people: BTreeMap<ProcessId, Person>,
    /// The open stage. It has not ended yet.
    running: Option<PastStage>,
    past: VecDeque<PastStage>,
    deaths: u64,
    said: Said,
    /// When the engine will wake it.
    pub(super) wake: Option<Time>,
}

/// The process belongs to another client.
pub(super) struct NotItsProcess;

impl Room {
    pub(super) fn new(
        name: Arc<str>,
        member: Member,
        durable: Option<&Durable>,
        now: Time,
    ) -> Self {
        let open = durable.and_then(|durable| durable.open.as_ref());
        let running = open.map(|open| begun(open, now));
        let inside = open.map(|open| open.inside.keys()).into_iter().flatten();
        let people = inside.map(|process| (*process, Person { since: now, ..Person::default() }));
        let people = people.collect();
        let (past, said, wake) = (VecDeque::new(), Said::new(), None);
        Room { name, member, people, running, past, deaths: 0, said, wake }
    }

    /// Checks that this client owns the process. The first client that speaks for it owns it.
    pub(super) fn hear(
        &mut self,
        now: Time,
        process: ProcessId,
        client: u64,
        message: &ProcessMessage,
        about: Option<About>,
    ) -> Result<(), NotItsProcess> {
        if !self.people.contains_key(&process) && !matches!(message, ProcessMessage::Ask { .. }) {
            return Ok(());
        }
        let person =
            self.people.entry(process).or_insert(Person { since: now, ..Person::default() });
        if *person.client.get_or_insert(client) != client {
            return Err(NotItsProcess);
        }
        if about.is_some() {
            person.about = about;
        }
        Ok(())
    }

    /// Whether such a message was heard before.
    pub(super) fn is_repeated(&self, process: ProcessId, message: &ProcessMessage) -> bool {
        match message {
            ProcessMessage::Ask { .. } | ProcessMessage::Renew { .. } => {
                self.people.contains_key(&process)
            }
            ProcessMessage::Leave { .. } => !self.people.contains_key(&process),
        }
    }

    /// Takes the outputs of the member. `asker` is the process that was heard last. It gets answers
    /// even if it is not known here.
    pub(super) fn drain(
        &mut self,
        now: Time,
        asker: Option<(ProcessId, u64)>,
        outputs: &mut Outputs,
        metrics: &Metrics,
    ) {
        while let Some(output) = self.member.poll_transmit() {
            match output {
                Output::Save(record) => {
                    self.observe(now, &record, metrics);
                    outputs.save.push((self.name.clone(), record));
                }
                Output::ToMember(to, message) => {
                    let repeated = self.says_again(to, &message);
                    let room = self.name.to_string();
                    outputs.send.push((To::Member(to), Frame::Peer { room, message }, repeated));
                }
                Output::ToProcess(process, message) => {
                    let (client, repeated) = self.tells_again(process, &message);
                    let asker = asker.filter(|(asker, _)| *asker == process);
                    let Some(client) = client.or(asker.map(|(_, client)| client)) else {
                        metrics.unsent.fetch_add(1, Relaxed);
                        continue;
                    };
                    let room = self.name.to_string();
                    let frame = Frame::Group { room, process, message };
                    outputs.send.push((To::Client(client), frame, repeated));
                }
            }
        }
    }

    /// Forgets a process that is neither inside nor waiting.
    pub(super) fn forget(&mut self, process: ProcessId) {
        if !self.member.is_inside(process) && self.member.waits(process).is_none() {
            self.people.remove(&process);
        }
    }

    /// Whether nothing of it must be remembered.
    pub(super) fn is_idle(&self) -> bool {
        self.people.is_empty() && self.member.is_idle()
    }

    /// The epoch of the open stage and its processes, for [`bury`](Room::bury).
    pub(super) fn living(&self) -> (u64, Vec<ProcessId>) {
        let epoch = self.running.as_ref().map_or(0, |running| running.epoch);
        (epoch, self.member.inside().map(|(process, _)| process).collect())
    }

    /// Counts the processes inside that are gone after a timeout: they have died.
    pub(super) fn bury(&mut self, (epoch, before): (u64, Vec<ProcessId>)) -> u64 {
        let member = &self.member;
        let gone =
            |process: &ProcessId| !member.is_inside(*process) && member.waits(*process).is_none();
        self.people.retain(|process, _| !gone(process));
        let died = before.iter().filter(|process| gone(process)).count() as u64;
        self.deaths += died;
        if died > 0 {
            // The stage may have ended with them, and the next may have begun.
            let past = self.past.iter_mut().rev().find(|past| past.epoch == epoch);
            match (&mut self.running, past) {
                (_, Some(past)) => past.died = true,
                (Some(running), None) => running.died = true,
                (None, None) => {}
            }
        }
        died
    }

    /// Follows the stages by their records.
    fn observe(&mut self, now: Time, record: &Record, metrics: &Metrics) {
        match record {
            Record::Vote(_) => _ = metrics.votes.fetch_add(1, Relaxed),
            Record::Wanting { .. }
            | Record::Returned(_)
            | Record::Left { .. }
            | Record::Died(_)
            | Record::Recovered(_) => {}
            Record::Opened(open) => {
                metrics.stages.fetch_add(1, Relaxed);
                metrics.entries.fetch_add(open.inside.len() as u64, Relaxed);
                self.running = Some(begun(open, now));
                for process in open.inside.keys() {
                    self.entered(now, *process);
                }
            }
            Record::Admitted { process, .. } => {
                metrics.entries.fetch_add(1, Relaxed);
                if let Some(running) = &mut self.running {
                    running.entries += 1;
                }
                self.entered(now, *process);
            }
            Record::Closed => {
                let Some(stage) = self.running.take() else { return };
                if self.past.len() == PAST {
                    self.past.pop_front();
                }
                self.past.push_back(PastStage { ended: now, ..stage });
            }
        }
    }

    fn entered(&mut self, now: Time, process: ProcessId) {
        if let Some(person) = self.people.get_mut(&process) {
            person.since = now;
        }
    }

    fn says_again(&mut self, to: MemberId, message: &PeerMessage) -> bool {
        let (kind, key) = match *message {
            PeerMessage::Request { rank, .. } => (0, (rank.stage, Some(rank.claim))),
            PeerMessage::Locked { grant, .. } => (1, (grant, None)),
            PeerMessage::Inquire { grant, .. } => (2, (grant, None)),
            PeerMessage::Contested { grant, rival, .. } => (3, (grant, rival)),
            PeerMessage::Relinquish { grant, .. } => (4, (grant, None)),
            PeerMessage::Release { stage, .. } => (5, (stage, None)),
        };
        self.said.insert((to, kind), key) == Some(key)
    }

    /// The client of the process, and whether ENTER was sent before.
    fn tells_again(&mut self, process: ProcessId, message: &GroupMessage) -> (Option<u64>, bool) {
        let Some(person) = self.people.get_mut(&process) else { return (None, false) };
        let repeated = match *message {
            GroupMessage::Enter { attempt, .. } => person.told.replace(attempt) == Some(attempt),
            GroupMessage::Renewed { .. } | GroupMessage::Gone { .. } => false,
        };
        (person.client, repeated)
    }

    // ---- what others see ----

    /// This member's part of the room, in the pieces that are sent.
    pub(super) fn look(&self, now: Time, brief: bool) -> Vec<Seen> {
        let mut pieces = vec![Seen::Stage(self.stage(now))];
        if brief {
            let best = self.best_waiters();
            pieces.extend(best.chunks(PIECE).map(|piece| Seen::Waiting(piece.to_vec())));
            return pieces;
        }
        let (inside, waiting) = (self.inside(), self.waiting());
        pieces.extend(inside.chunks(PIECE).map(|piece| Seen::Inside(piece.to_vec())));
        pieces.extend(waiting.chunks(PIECE).map(|piece| Seen::Waiting(piece.to_vec())));
        let (first, second) = self.past.as_slices();
        let past = [first, second].concat();
        pieces.extend(past.chunks(PIECE).map(|piece| Seen::Past(piece.to_vec())));
        pieces
    }

    pub(super) fn stage(&self, now: Time) -> Stage {
        let inside = self.member.stage_inside().map(|stage| Inside {
            session: stage.session.to_owned(),
            epoch: stage.epoch,
            contested: stage.contested,
            began: self.running.as_ref().map_or(now, |running| running.began),
        });
        Stage {
            stage: self.member.stage(),
            epoch: self.member.epoch(),
            inside,
            votes: self.member.votes().map(|votes| votes as u16),
            voted_for: self.member.voted_for().copied(),
            electors: self.member.electors().copied().collect(),
            deaths: self.deaths,
            now,
        }
    }

    fn shown(&self, process: ProcessId) -> (Time, Option<About>) {
        let person = self.people.get(&process);
        person.map_or((Time::ZERO, None), |person| (person.since, person.about.clone()))
    }

    pub(super) fn inside(&self) -> Vec<Participant> {
        let participant = |(process, _)| {
            let (since, about) = self.shown(process);
            Participant { process, since, about }
        };
        let mut inside: Vec<_> = self.member.inside().map(participant).collect();
        inside.sort_by_key(|participant| (participant.since, participant.process));
        inside
    }

    pub(super) fn waiting(&self) -> Vec<Waiter> {
        let waiter = |(process, session, claim): (_, &str, _)| {
            let (since, about) = self.shown(process);
            Waiter { process, session: session.to_owned(), claim, since, about }
        };
        self.member.waiting().into_iter().map(waiter).collect()
    }

    /// The best claim for each session, without details of the process.
    fn best_waiters(&self) -> Vec<Waiter> {
        let mut best: BTreeMap<&str, Waiter> = BTreeMap::new();
        // The best claim of each session is the first.
        for (process, session, claim) in self.member.waiting() {
            best.entry(session).or_insert_with(|| {
                let (since, about) = (claim.asked(), None);
                Waiter { process, session: session.to_owned(), claim, since, about }
            });
        }
        best.into_values().collect()
    }

    pub(super) fn past(&self) -> impl Iterator<Item = &PastStage> {
        self.past.iter()
    }
}

fn begun(open: &OpenStage, now: Time) -> PastStage {
    let (session, entries) = (open.session.clone(), open.inside.len() as u64);
    PastStage { session, epoch: open.epoch, began: now, ended: now, entries, died: false }
}
