//! The task that talks to the members for all requests of a client.
//!
//! It has a [`Process`] of the protocol core for each request, and a link to each member that it
//! needs. Messages on a link that broke may be lost. So when the link is up again, the driver
//! repeats everything that is outstanding there: a waiter keeps its position, a holder stays
//! inside. A request that is over stays until its home knows it: a Ping follows the Leave, and the
//! Pong proves that the home has read both.

pub(super) mod decision;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use grouplock_room::remote::{Desk, Grant};
use grouplock_room::{Loss, Patience, RoomError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use self::decision::{Decision, FIRST_WORD};
use super::link::{self, Dialler, News};
use super::question::{Asker, Extent, Parts, Questions};
use super::request::{ClientRequest, FAREWELL, Progress, drift, notice};
use super::view;
use crate::clock::Clock;
use crate::message::{GroupMessage, ProcessMessage};
use crate::name::{MemberId, ProcessId, home, homes};
use crate::process::{Process, ProcessState};
use crate::settings::Votes;
use crate::time::Time;
use crate::wire::{About, Cluster, Connection, Frame, Outbox, Reason};

/// What rooms ask the driver to do.
pub(super) enum Order {
    Enter(Box<NewRequest>),
    /// The request is withdrawn, or the program leaves the room.
    End(ProcessId),
    Look {
        room: Option<String>,
        answer: std::sync::mpsc::Sender<Parts>,
    },
}

/// A request.
pub(super) struct NewRequest {
    pub(super) process: ProcessId,
    pub(super) room: String,
    pub(super) session: String,
    pub(super) about: About,
    pub(super) desk: Desk,
    /// A thread is blocked until it is known whether the request must wait.
    pub(super) decide: bool,
}

/// The link to a member.
enum Link {
    /// No request has needed it yet.
    Unused,
    Dialling,
    Up {
        outbox: Outbox,
        /// For each Ping without an answer: the process whose Leave it followed, and when.
        leaving: VecDeque<(ProcessId, Time)>,
        /// How long a message takes, by the last measurement.
        delay: Duration,
    },
    Down {
        why: String,
        since: Time,
    },
}

pub(super) struct Driver {
    place: String,
    cluster: Cluster,
    clock: Clock,
    lease: Duration,
    dialler: Dialler,
    links: Vec<Link>,
    requests: HashMap<ProcessId, ClientRequest>,
    timers: BTreeSet<(Time, ProcessId)>,
    questions: Questions,
    /// The rooms that members are being asked about, each with the requests that need another look
    /// after that.
    looks: HashMap<String, Vec<ProcessId>>,
    tell: UnboundedSender<(MemberId, News)>,
    news: UnboundedReceiver<(MemberId, News)>,
}

impl Driver {
    /// Starts with the connection that described the cluster.
    pub(super) fn new(place: String, dialler: Dialler, first: Connection) -> Self {
        let cluster = first.welcome.cluster.clone();
        let (tell, news) = unbounded_channel();
        let dialler = Dialler { cluster: Some(cluster.fingerprint()), ..dialler };
        let mut driver = Driver {
            place,
            clock: dialler.clock,
            // Without leases nothing ends by itself, and a home that never hears of an end waits
            // forever.
            lease: cluster.settings.lease.unwrap_or(Duration::from_secs(60)),
            links: cluster.members.iter().map(|_| Link::Unused).collect(),
            cluster,
            dialler,
            requests: HashMap::new(),
            timers: BTreeSet::new(),
            questions: Questions::default(),
            looks: HashMap::new(),
            tell,
            news,
        };
        driver.start_link(first.welcome.me, Some(first));
        driver
    }

    /// Runs until there are no more orders and every end is confirmed.
    pub(super) async fn run(mut self, mut orders: UnboundedReceiver<Order>) {
        let mut open = true;
        while open || !self.requests.is_empty() {
            let alarm = self.alarm().map(|time| self.clock.instant(time).into());
            tokio::select! {
                order = orders.recv(), if open => match order {
                    Some(order) => self.obey(order),
                    None => open = false,
                },
                Some((member, news)) = self.news.recv() => self.hear(member, news),
                () = sleep_until(alarm) => self.ring(),
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Enter(wanted) => self.enter(*wanted),
            Order::End(process) => self.end(process, None),
            Order::Look { room, answer } => self.ask(room, Extent::Whole, Asker::Caller(answer)),
        }
    }

    // ---- requests ----

    fn enter(&mut self, wanted: NewRequest) {
        let NewRequest { process: id, room, session, about, desk, decide } = wanted;
        let (now, members) = (self.clock.now(), self.links.len() as u16);
        let mut process = Process::new(id, members, self.cluster.settings).with_pid(about.pid);
        let by = now + FIRST_WORD;
        let decision = if decide { Decision::Open { by } } else { Decision::Made };
        let deadline = desk.patience().deadline().map(|deadline| self.clock.time(deadline));
        let hasty = self.is_hasty(desk.patience());
        let home = self.stand_in(&session, hasty).unwrap_or(home(&session, members));
        process.set_delay(self.delay(home));
        // A process that has never asked is not busy.
        _ = process.ask(now, &session, about.expected, about.priority);
        process.turn_to(now, home);
        let request = ClientRequest {
            room,
            home,
            session,
            process,
            about,
            progress: Progress::Asking(decision),
            claim: None,
            introduced: false,
            farewell: deadline.map(|deadline| deadline - FAREWELL),
            deadline,
            armed: None,
            unwanted: false,
            desk,
        };
        self.requests.insert(id, request);
        self.start_link(home, None);
        self.settle(id);
        if let Link::Down { why, .. } = &self.links[home.index()] {
            let why = why.clone();
            self.fail_impatient(home, &why);
        }
    }

    /// Ends a request. An error is reported when nothing of the request is left.
    fn end(&mut self, id: ProcessId, error: Option<RoomError>) {
        let until = self.clock.now() + self.lease;
        let Some(request) = self.requests.get_mut(&id) else { return };
        if matches!(request.progress, Progress::Ending { .. }) {
            return;
        }
        if request.unwanted {
            request.process.withdraw();
        } else {
            request.process.leave();
        }
        request.progress = Progress::Ending { error, until };
        if !matches!(self.links[request.home.index()], Link::Up { .. })
            && let Progress::Ending { error, .. } = &mut request.progress
            && let Some(error) = error.take()
        {
            request.desk.failed(error);
        }
        self.settle(id);
    }

    /// The home has read that the request is over.
    fn ended(&mut self, id: ProcessId) {
        let Some(request) = self.forget(id) else { return };
        match request.progress {
            Progress::Ending { error: Some(error), .. } => request.desk.failed(error),
            _ => request.desk.left(),
        }
    }

    /// Sends messages, reports to the program, and sets the timer.
    fn settle(&mut self, id: ProcessId) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        let link = &mut self.links[request.home.index()];
        while let Some((_, message)) = request.process.poll_transmit() {
            if let Link::Up { outbox, leaving, .. } = link {
                let leaves = matches!(message, ProcessMessage::Leave { .. });
                let about = (!request.introduced && !leaves).then(|| request.about.clone());
                let room = request.room.clone();
                // If the link has just broken, it reports that itself.
                outbox.push_or_cut(Frame::Process { room, process: id, message, about });
                if leaves && matches!(request.progress, Progress::Ending { .. }) {
                    leaving.push_back((id, self.clock.now()));
                    outbox.push_or_cut(Frame::Ping);
                }
            }
        }
        if self.update(id) {
            self.arm(id);
        }
    }

    /// Reports the state of the process to the program. Returns `false` if the request is over.
    fn update(&mut self, id: ProcessId) -> bool {
        let Some(request) = self.requests.get_mut(&id) else { return false };
        // When others may be admitted, and until when the holder may trust the lease.
        let trusted = |until: Option<Time>| {
            let ends = until.map(|until| until - drift(self.lease));
            let told = ends.map(|ends| ends - notice(self.lease));
            (ends, told.map(|told| self.clock.instant(told)))
        };
        match (request.process.state(), &mut request.progress) {
            (ProcessState::Inside { epoch, valid_until }, Progress::Asking(_)) => {
                let (ends, valid_until) = trusted(valid_until);
                request.desk.grace(notice(self.lease));
                request.progress = Progress::Inside { ends, lost: false };
                let recovered = request.process.recovered().map(view::recovered);
                // If the program no longer wants it, an order to end it will follow.
                request.unwanted = !request.desk.granted(Grant { epoch, recovered, valid_until });
            }
            (ProcessState::Inside { valid_until, .. }, Progress::Inside { ends, lost: false }) => {
                let (later, valid_until) = trusted(valid_until);
                if later > *ends {
                    *ends = later;
                    // If it is too late, the timer reports the loss.
                    valid_until.map(|until| request.desk.renewed(until));
                }
            }
            // A process that was stopped may hear late that it was admitted.
            (ProcessState::Lost, Progress::Asking(_) | Progress::Inside { .. }) => {
                let (home, peer) = (request.home, &self.cluster.members[request.home.index()]);
                let why = format!("{home} ({}) has ended the holding", peer.address);
                request.desk.lost(Loss::Expired(why));
                self.forget(id);
                return false;
            }
            _ => {}
        }
        true
    }

    fn forget(&mut self, id: ProcessId) -> Option<ClientRequest> {
        let request = self.requests.remove(&id)?;
        if let Some(time) = request.armed {
            self.timers.remove(&(time, id));
        }
        Some(request)
    }

    fn arm(&mut self, id: ProcessId) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        let due = request.due(self.lease);
        if due != request.armed {
            if let Some(time) = request.armed {
                self.timers.remove(&(time, id));
            }
            self.timers.extend(due.map(|time| (time, id)));
            request.armed = due;
        }
    }

    /// Ends or moves impatient requests whose home is down.
    fn fail_impatient(&mut self, home: MemberId, why: &str) {
        let here = |request: &ClientRequest| {
            request.home == home
                && matches!(request.progress, Progress::Asking(_))
                && self.is_hasty(request.desk.patience())
        };
        let all = self.requests.iter().filter(|(_, request)| here(request));
        let all: Vec<_> = all.map(|(id, request)| (*id, request.desk.patience())).collect();
        for (id, patience) in all {
            if !self.ask_stand_in(id, true) && patience == Patience::None {
                self.fail_unreachable(id, why);
            }
        }
    }

    /// Whether a request will not wait until a member may be back.
    fn is_hasty(&self, patience: Patience) -> bool {
        let back = Instant::now() + self.lease / 4;
        patience == Patience::None || patience.deadline().is_some_and(|deadline| deadline <= back)
    }

    /// The first member that can serve a session and is not known to be down, beginning with its
    /// home. If not `hasty`, a member has a quarter of a lease to come back: two groups with one
    /// session would not share.
    fn stand_in(&self, session: &str, hasty: bool) -> Option<MemberId> {
        if self.cluster.settings.votes == Votes::OwnQuorum {
            return None;
        }
        let (now, patience) =
            (self.clock.now(), if hasty { Duration::ZERO } else { self.lease / 4 });
        let down = |member: &MemberId| match self.links[member.index()] {
            Link::Down { since, .. } => since + patience <= now,
            Link::Unused | Link::Dialling | Link::Up { .. } => false,
        };
        homes(session, self.links.len() as u16).into_iter().find(|member| !down(member))
    }

    /// Asks the member that stands in for a home that is down. Returns `false` if there is none.
    fn ask_stand_in(&mut self, id: ProcessId, hasty: bool) -> bool {
        let now = self.clock.now();
        let Some(session) = self.requests.get(&id).map(|request| request.session.clone()) else {
            return false;
        };
        let Some(home) = self.stand_in(&session, hasty) else { return false };
        let delay = self.delay(home);
        let Some(request) = self.requests.get_mut(&id) else { return false };
        if request.home != home {
            request.home = home;
            request.introduced = false;
            request.process.set_delay(delay);
            request.process.turn_to(now, home);
            self.start_link(home, None);
            self.settle(id);
        }
        true
    }

    fn fail_unreachable(&mut self, id: ProcessId, why: &str) {
        let Some(request) = self.requests.get(&id) else { return };
        let (home, session) = (request.home, &request.session);
        let address = &self.cluster.members[home.index()].address;
        let reason = format!(
            "session `{session}` was asked of {home} ({address}), which cannot be reached: {why}"
        );
        self.end(id, Some(RoomError::Unreachable { place: self.place.clone(), reason }));
    }

    // ---- members ----

    fn start_link(&mut self, member: MemberId, first: Option<Connection>) {
        let link = &mut self.links[member.index()];
        if !matches!(link, Link::Unused) {
            return;
        }
        *link = Link::Dialling;
        let target = (member, self.cluster.members[member.index()].clone());
        let tell = self.tell.clone();
        let tell = move |news| tell.send((member, news)).is_ok();
        tokio::spawn(link::keep(self.dialler.clone(), target, first, tell));
    }

    fn hear(&mut self, member: MemberId, news: News) {
        match news {
            News::Up(outbox, delay) => {
                self.links[member.index()] = Link::Up { outbox, leaving: VecDeque::new(), delay };
                self.resume(member);
            }
            News::Down(why) => {
                let since = match &self.links[member.index()] {
                    Link::Down { since, .. } => *since,
                    _ => self.clock.now(),
                };
                self.links[member.index()] = Link::Down { why: why.clone(), since };
                self.questions.miss(member, &why);
                self.answer();
                self.fail_impatient(member, &why);
            }
            News::Heard(frame) => self.read(member, frame),
        }
    }

    /// How long a message to a member takes, as far as it is known.
    fn delay(&self, member: MemberId) -> Duration {
        match self.links[member.index()] {
            Link::Up { delay, .. } => delay,
            Link::Unused | Link::Dialling | Link::Down { .. } => Duration::ZERO,
        }
    }

    /// Repeats everything that is outstanding at a member.
    fn resume(&mut self, member: MemberId) {
        let (now, delay) = (self.clock.now(), self.delay(member));
        let here = self.requests.iter().filter(|(_, request)| request.home == member);
        let here: Vec<_> = here.map(|(id, _)| *id).collect();
        for id in here {
            let Some(request) = self.requests.get_mut(&id) else { continue };
            request.introduced = false;
            request.process.set_delay(delay);
            match request.progress {
                Progress::Asking(_) | Progress::Inside { lost: false, .. } => {
                    request.process.handle_reconnect(now);
                }
                Progress::Inside { lost: true, .. } => {}
                Progress::Ending { .. } => request.process.leave_again(member),
            }
            self.settle(id);
        }
        if let Link::Up { outbox, .. } = &self.links[member.index()] {
            self.questions.unanswered(member).for_each(|frame| outbox.push_or_cut(frame));
        }
    }

    /// Asks all members what they see.
    fn ask(&mut self, room: Option<String>, extent: Extent, asker: Asker) {
        let members = self.links.len() as u16;
        (0..members).for_each(|member| self.start_link(MemberId(member), None));
        let look = self.questions.ask(self.clock.now(), members, (room, extent), asker);
        for (member, link) in (0..).map(MemberId).zip(&self.links) {
            match link {
                Link::Up { outbox, .. } => outbox.push_or_cut(look.clone()),
                Link::Down { why, .. } => self.questions.miss(member, why),
                Link::Unused | Link::Dialling => {}
            }
        }
        self.answer();
    }

    /// Reports the questions that all members have answered or missed.
    fn answer(&mut self) {
        for question in self.questions.take_answered() {
            match question.asker {
                // The caller may be gone.
                Asker::Caller(answer) => _ = answer.send(question.parts),
                Asker::Requests(ids) => {
                    let room = question.room.unwrap_or_default();
                    self.weigh_all(&room, &ids, &question.parts);
                }
            }
        }
    }

    fn read(&mut self, member: MemberId, frame: Frame) {
        match frame {
            Frame::Group { room, process, message } => {
                self.read_group(member, room, process, message);
            }
            Frame::Queued { process, claim, inside, .. } => self.queued(process, claim, inside),
            Frame::Denied { process, reason, .. } => self.denied(member, process, &reason),
            Frame::Seen { question, seen } => {
                self.questions.hear(member, question, seen);
                self.answer();
            }
            Frame::Pong => {
                let now = self.clock.now();
                if let Link::Up { leaving, delay, .. } = &mut self.links[member.index()]
                    && let Some((id, said)) = leaving.pop_front()
                {
                    *delay = now.since(said) / 2;
                    self.ended(id);
                }
            }
            // Clients do not receive other frames.
            _ => {}
        }
    }

    /// The home refuses the request and keeps nothing of it.
    fn denied(&mut self, from: MemberId, id: ProcessId, reason: &Reason) {
        let asks = |request: &ClientRequest| {
            request.home == from && matches!(request.progress, Progress::Asking(_))
        };
        if self.requests.get(&id).is_some_and(asks)
            && let Some(request) = self.forget(id)
        {
            let address = &self.cluster.members[from.index()].address;
            let why = format!("{from} ({address}) refuses the request: {reason}");
            request.desk.failed(RoomError::Backend(why.into()));
        }
    }

    fn read_group(&mut self, from: MemberId, room: String, id: ProcessId, message: GroupMessage) {
        let now = self.clock.now();
        match self.requests.get_mut(&id) {
            Some(request) if request.home == from => {
                request.introduced = true;
                request.process.handle(now, from, message);
                self.settle(id);
            }
            // It has left, or belonged to another client with the same secret, or asks another
            // member: it is not inside.
            _ => {
                if let GroupMessage::Enter { attempt, .. } = message
                    && let Link::Up { outbox, .. } = &self.links[from.index()]
                {
                    let message = ProcessMessage::Leave { attempt, entered: false };
                    outbox.push_or_cut(Frame::Process { room, process: id, message, about: None });
                }
            }
        }
    }

    // ---- time ----

    fn alarm(&self) -> Option<Time> {
        let timer = self.timers.first().map(|(time, _)| *time);
        timer.into_iter().chain(self.questions.due()).min()
    }

    fn ring(&mut self) {
        let now = self.clock.now();
        self.questions.expire(now);
        self.answer();
        while let Some((time, id)) = self.timers.first().copied()
            && time <= now
        {
            self.timers.pop_first();
            self.requests.get_mut(&id).into_iter().for_each(|request| request.armed = None);
            self.ring_for(id, now);
        }
    }

    fn ring_for(&mut self, id: ProcessId, now: Time) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        match request.progress {
            Progress::Asking(decision) => {
                if request.farewell.take_if(|time| *time <= now).is_some()
                    && let Link::Down { why, .. } = &self.links[request.home.index()]
                {
                    let why = why.clone();
                    return self.fail_unreachable(id, &why);
                }
                if request.deadline.is_some_and(|deadline| deadline <= now) {
                    request.deadline = None;
                    request.desk.expired();
                }
                request.process.handle_timeout(now);
                if matches!(self.links[request.home.index()], Link::Down { .. }) {
                    let patience = request.desk.patience();
                    self.ask_stand_in(id, self.is_hasty(patience));
                }
                self.decide(id, decision, now);
                self.settle(id);
            }
            Progress::Inside { ends, lost: false } => {
                let told = ends.map(|ends| ends - notice(self.lease));
                if told.is_some_and(|told| told <= now) {
                    request.progress = Progress::Inside { ends, lost: true };
                    let (home, peer) = (request.home, &self.cluster.members[request.home.index()]);
                    let why = match &self.links[home.index()] {
                        Link::Down { why, .. } => why.as_str(),
                        _ => "it does not answer",
                    };
                    let why = format!("{home} ({}) cannot confirm it: {why}", peer.address);
                    request.desk.lost(Loss::Expired(why));
                    self.arm(id);
                } else {
                    request.process.handle_timeout(now);
                    self.settle(id);
                }
            }
            // If the holder has not left by now, others may be inside. The home may know at once.
            Progress::Inside { lost: true, .. } => self.end(id, None),
            // Its lease has ended, so nothing of it is left.
            Progress::Ending { .. } => self.ended(id),
        }
    }
}

async fn sleep_until(alarm: Option<tokio::time::Instant>) {
    match alarm {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
