//! One room at one member: its part in the protocol, and what there is to show of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::member::Member;
use crate::message::{GroupMessage, PeerMessage, ProcessMessage};
use crate::name::{MemberId, ProcessId};
use crate::output::Output;
use crate::rank::Claim;
use crate::record::{Durable, Record};
use crate::time::Time;
use crate::wire::{About, Frame, Inside, Participant, PastStage, Seen, Stage, Waiter};

/// How many stages that are over are remembered.
const PAST: usize = 32;
/// How many entries of a list go into one frame: with the longest names they fit.
const PIECE: usize = 48;

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Member(MemberId),
    /// By its secret.
    Client(u64),
}

/// What a room wants done.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    pub(super) save: Vec<(Arc<str>, Record)>,
    pub(super) send: Vec<(To, Frame, bool)>,
}

/// What has happened in a room, for the metrics.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) stages: u64,
    pub(super) entries: u64,
    pub(super) votes: u64,
    pub(super) deaths: u64,
    pub(super) nobody: u64,
}

/// Someone who waits or is inside.
#[derive(Debug)]
struct Person {
    /// Whose process it is; unknown after a restart until it is heard.
    client: Option<u64>,
    about: Option<About>,
    since: Time,
    /// The request for which it was told to enter.
    told: Option<u64>,
}

/// The stage that is under way.
#[derive(Debug)]
struct Running {
    session: String,
    epoch: u64,
    began: Time,
    entries: u64,
    died: bool,
}

/// What was said last to each member, to tell what is said again.
type Said = BTreeMap<(MemberId, u8), (u64, Option<Claim>)>;

#[derive(Debug)]
pub(super) struct Room {
    pub(super) name: Arc<str>,
    pub(super) member: Member,
    people: BTreeMap<ProcessId, Person>,
    running: Option<Running>,
    past: VecDeque<PastStage>,
    deaths: u64,
    said: Said,
    /// When the engine means to wake it.
    pub(super) wake: Option<Time>,
}

/// A process that another client speaks for.
pub(super) struct NotItsProcess;

impl Room {
    pub(super) fn new(
        name: Arc<str>,
        member: Member,
        durable: Option<&Durable>,
        now: Time,
    ) -> Self {
        let open = durable.and_then(|durable| durable.open.as_ref());
        let running = open.map(|open| Running {
            session: open.session.clone(),
            epoch: open.epoch,
            began: now,
            entries: open.inside.len() as u64,
            died: false,
        });
        let inside = open.map(|open| open.inside.keys()).into_iter().flatten();
        let stranger = |process: &ProcessId| {
            (*process, Person { client: None, about: None, since: now, told: None })
        };
        let people = inside.map(stranger).collect();
        let (past, said, wake) = (VecDeque::new(), Said::new(), None);
        Room { name, member, people, running, past, deaths: 0, said, wake }
    }

    /// Whether this client may speak for this process. If nobody has so far, it does from now on.
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
        let person = self.people.entry(process).or_insert(Person {
            client: Some(client),
            about: None,
            since: now,
            told: None,
        });
        if *person.client.get_or_insert(client) != client {
            return Err(NotItsProcess);
        }
        if about.is_some() {
            person.about = about;
        }
        Ok(())
    }

    /// Whether such a message has been heard before.
    pub(super) fn is_repeated(&self, process: ProcessId, message: &ProcessMessage) -> bool {
        match message {
            ProcessMessage::Ask { .. } | ProcessMessage::Renew { .. } => {
                self.people.contains_key(&process)
            }
            ProcessMessage::Leave { .. } => !self.people.contains_key(&process),
        }
    }

    /// Takes what the member wants done. `asker` is who was heard last: it gets answers even if it is unknown here.
    pub(super) fn drain(
        &mut self,
        now: Time,
        asker: Option<(ProcessId, u64)>,
        wishes: &mut Wishes,
    ) -> Tally {
        let mut tally = Tally::default();
        while let Some(output) = self.member.poll_transmit() {
            match output {
                Output::Save(record) => {
                    self.observe(now, &record, &mut tally);
                    wishes.save.push((self.name.clone(), record));
                }
                Output::ToMember(to, message) => {
                    let repeated = self.says_again(to, &message);
                    let room = self.name.to_string();
                    wishes.send.push((To::Member(to), Frame::Peer { room, message }, repeated));
                }
                Output::ToProcess(process, message) => {
                    let (client, repeated) = self.tells_again(process, &message);
                    let asker = asker.filter(|(asker, _)| *asker == process);
                    let Some(client) = client.or(asker.map(|(_, client)| client)) else {
                        tally.nobody += 1;
                        continue;
                    };
                    let room = self.name.to_string();
                    let frame = Frame::Group { room, process, message };
                    wishes.send.push((To::Client(client), frame, repeated));
                }
            }
        }
        tally
    }

    /// Forgets a process that is neither inside nor waiting.
    pub(super) fn forget(&mut self, process: ProcessId) {
        if !self.member.is_inside(process) && self.member.waits(process).is_none() {
            self.people.remove(&process);
        }
    }

    /// Whether nothing of it has to be remembered.
    pub(super) fn is_idle(&self) -> bool {
        self.people.is_empty() && self.member.is_idle()
    }

    /// The epoch of the stage under way and who is in it, to be compared by [`bury`](Room::bury).
    pub(super) fn living(&self) -> (u64, Vec<ProcessId>) {
        let epoch = self.running.as_ref().map_or(0, |running| running.epoch);
        (epoch, self.member.inside().map(|(process, _)| process).collect())
    }

    /// The clock has been told: who is not here any more has died. How many of those inside.
    pub(super) fn bury(&mut self, (epoch, before): (u64, Vec<ProcessId>)) -> u64 {
        let member = &self.member;
        let gone =
            |process: &ProcessId| !member.is_inside(*process) && member.waits(*process).is_none();
        self.people.retain(|process, _| !gone(process));
        let died = before.iter().filter(|process| gone(process)).count() as u64;
        self.deaths += died;
        if died > 0 {
            // The stage may have ended with them, and the next have begun.
            let past = self.past.iter_mut().rev().find(|past| past.epoch == epoch);
            match (&mut self.running, past) {
                (_, Some(past)) => past.died = true,
                (Some(running), None) => running.died = true,
                (None, None) => {}
            }
        }
        died
    }

    /// Records tell all that happens to stages.
    fn observe(&mut self, now: Time, record: &Record, tally: &mut Tally) {
        match record {
            Record::Vote(_) => tally.votes += 1,
            Record::Wanting { .. }
            | Record::Returned(_)
            | Record::Left { .. }
            | Record::Died(_)
            | Record::Recovered(_) => {}
            Record::Opened(open) => {
                tally.stages += 1;
                tally.entries += open.inside.len() as u64;
                self.running = Some(Running {
                    session: open.session.clone(),
                    epoch: open.epoch,
                    began: now,
                    entries: open.inside.len() as u64,
                    died: false,
                });
                for process in open.inside.keys() {
                    self.entered(now, *process);
                }
            }
            Record::Admitted { process, .. } => {
                tally.entries += 1;
                if let Some(running) = &mut self.running {
                    running.entries += 1;
                }
                self.entered(now, *process);
            }
            Record::Closed => {
                let Some(Running { session, epoch, began, entries, died }) = self.running.take()
                else {
                    return;
                };
                if self.past.len() == PAST {
                    self.past.pop_front();
                }
                self.past.push_back(PastStage { session, epoch, began, ended: now, entries, died });
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

    /// Who speaks for the process, and whether it has been told that before.
    fn tells_again(&mut self, process: ProcessId, message: &GroupMessage) -> (Option<u64>, bool) {
        let Some(person) = self.people.get_mut(&process) else { return (None, false) };
        let repeated = match *message {
            GroupMessage::Enter { attempt, .. } => person.told.replace(attempt) == Some(attempt),
            GroupMessage::Renewed { .. } | GroupMessage::Gone { .. } => false,
        };
        (person.client, repeated)
    }

    // ---- what there is to see ----

    /// This member's part, and those who have to do with it, in the pieces that are sent.
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

    pub(super) fn inside(&self) -> Vec<Participant> {
        let participant = |(process, _)| {
            let person = self.people.get(&process);
            Participant {
                process,
                since: person.map_or(Time::ZERO, |person| person.since),
                about: person.and_then(|person| person.about.clone()),
            }
        };
        let mut inside: Vec<_> = self.member.inside().map(participant).collect();
        inside.sort_by_key(|participant| (participant.since, participant.process));
        inside
    }

    pub(super) fn waiting(&self) -> Vec<Waiter> {
        let waiting = self.member.waiting().into_iter();
        waiting
            .filter_map(|(process, session)| {
                let (_, claim) = self.member.waits(process)?;
                let person = self.people.get(&process);
                Some(Waiter {
                    process,
                    session: session.to_owned(),
                    claim,
                    since: person.map_or(Time::ZERO, |person| person.since),
                    about: person.and_then(|person| person.about.clone()),
                })
            })
            .collect()
    }

    /// The best claim for each session, and nothing said of whose it is.
    fn best_waiters(&self) -> Vec<Waiter> {
        let mut best: BTreeMap<&str, Waiter> = BTreeMap::new();
        for (process, session) in self.member.waiting() {
            let Some((_, claim)) = self.member.waits(process) else { continue };
            if best.get(session).is_none_or(|other| claim < other.claim) {
                let (since, about) = (claim.asked(), None);
                let session_name = session.to_owned();
                best.insert(
                    session,
                    Waiter { process, session: session_name, claim, since, about },
                );
            }
        }
        best.into_values().collect()
    }

    pub(super) fn past(&self) -> impl Iterator<Item = &PastStage> {
        self.past.iter()
    }
}
