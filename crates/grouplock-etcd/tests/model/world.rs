//! A state machine for stateright. Clients want to enter. The network delays and repeats messages,
//! leases expire, and watches lag. The clients send the requests and read the answers with the code
//! that ships.

use std::collections::BTreeSet;

use grouplock_etcd::keys::Keys;
use grouplock_etcd::proto::KeyValue;
use grouplock_etcd::protocol::{Entrant, Holder, Outcome};
use grouplock_etcd::view::{Entry, Guess, Turn, View};
use stateright::{Model, Property};

use crate::asks::{Answer, Ask, Grave, Mutant};
use crate::store::{NoLease, Store};
use crate::truth::{Id, Truth};

/// No two sessions are inside at once.
pub(crate) const EXCLUSION: &str = "no two sessions are inside at once";
/// All holders of a phase have one epoch. It is larger than the epochs of all phases that are over.
pub(crate) const EPOCHS: &str = "epochs are shared and grow";
/// No request passes an earlier request of another session.
pub(crate) const ORDER: &str = "first come, first served";
/// The opener of a phase gets a report of all earlier deaths. All other holders of its phase learn
/// that there was a death. Only deaths inside are reported.
pub(crate) const DEATHS: &str = "deaths are told";
/// A client that leaves learns how many of its keys existed.
pub(crate) const LEAVING: &str = "who leaves is told the truth";
/// A claim changes nothing if its entry is not in the queue any more.
pub(crate) const TRACE: &str = "who is gone leaves no trace";
/// When nothing more can happen, no client waits and no entry is left in the queue.
pub(crate) const REST: &str = "nobody is left behind";

/// The model that is explored.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// The session of each client.
    pub(crate) sessions: Vec<&'static str>,
    /// How often each client enters.
    pub(crate) rounds: u8,
    /// How many requests may be sent again: while the first is on its way, or after its answer was
    /// lost.
    pub(crate) resends: u8,
    /// How many leases may expire.
    pub(crate) expiries: u8,
    /// How often clients may read their mirrors before they ask or leave. Waiters read them without
    /// a limit.
    pub(crate) mirrors: u8,
    /// Whether clients knock first.
    pub(crate) knocks: bool,
    /// Whether waiters may withdraw.
    pub(crate) withdrawals: bool,
    /// Whether an opener with a report of a death writes down that it noticed, and waits.
    pub(crate) delay: bool,
    pub(crate) mutant: Mutant,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    store: Store,
    people: Vec<Person>,
    resends: u8,
    expiries: u8,
    mirrors: u8,
    /// The last holder that entered: its epoch and its session.
    last: (i64, &'static str),
    truth: Truth,
    /// The properties that were violated so far.
    wrong: BTreeSet<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Person {
    stage: Stage,
    round: u8,
    /// Its own clock says that its lease may have expired.
    doubts: bool,
    /// Whether it has sent a request to enter twice.
    resent: bool,
    /// The view that its watch has reported so far.
    mirror: Option<View>,
    /// The requests on their way to the server. The network keeps no order.
    asked: Vec<(u8, Ask)>,
    /// The answers on their way back.
    told: Vec<(u8, Ask, Answer)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "most people ask for something most of the time")]
enum Stage {
    Outside,
    /// The client waits for an answer.
    Asking(Ask),
    Queued(i64),
    Inside(i64, i64),
    /// Its lease has expired, and the client knows it.
    Lost,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Ask(usize),
    /// The server receives the n-th request of a client.
    Serve(usize, usize),
    /// A client receives the n-th of its answers.
    Hear(usize, usize),
    /// The n-th answer of a client is lost, and the client asks again.
    Lose(usize, usize),
    /// A client asks again before it has an answer.
    AskAgain(usize),
    /// A client withdraws a request that was not answered.
    GiveUp(usize),
    /// The watch of a client reports everything up to now.
    Watch(usize),
    /// A client reads in its mirror that it may claim, that it is inside, or that its entry is
    /// gone.
    Look(usize),
    Leave(usize),
    Doubt(usize),
    /// The server ends the lease of a client.
    Expire(usize),
}

fn keys() -> Keys {
    Keys::new("p/r/")
}

impl World {
    fn entrant(&self, who: usize, round: u8) -> Entrant {
        let id = format!("{who}-{round}");
        Entrant { keys: keys(), group: self.sessions[who].to_owned(), id, lease: lease(who) }
    }

    /// What a waiter may do, by its mirror.
    fn turn(&self, person: &Person, position: i64) -> Turn {
        match person.mirror.as_ref().and_then(|view| view.turn(position)) {
            None => Turn::Wait,
            Some(Turn::Wait) if self.mutant == Mutant::Impatient => Turn::Come,
            Some(Turn::Gone) if self.mutant == Mutant::ClaimUnchecked => Turn::Come,
            Some(turn) => turn,
        }
    }

    /// The server executes a request.
    fn serve(&self, state: &mut State, who: usize, round: u8, ask: &Ask) -> Answer {
        let (entrant, id) = (self.entrant(who, round), (who, round));
        if let Ask::Look(position) = ask {
            let view = state.store.view(&keys());
            return match entrant.inside(*position, &view) {
                _ if view.turn(*position) == Some(Turn::Gone) => Answer::Absent,
                Some(inside) => self.let_in(state, id, inside, view.revision),
                None => Answer::Unsettled(*position, Some(view)),
            };
        }
        let before = state.store.clone();
        let response = match state.store.txn(&self.mutant.request(&entrant, ask)) {
            Ok(response) => response,
            Err(NoLease) => return Answer::NoLease,
        };
        let now = state.store.revision;
        match ask {
            Ask::Knock | Ask::Join(..) | Ask::Enter => {
                let joined = if let Ask::Join(phase, ..) = ask { Some(phase) } else { None };
                if !response.succeeded && *ask != Ask::Enter {
                    return Answer::NotSo;
                }
                match entrant.read(response, joined).expect("it can be read") {
                    Outcome::Inside(inside) => {
                        self.come(state, id, inside.position);
                        self.let_in(state, id, inside, now)
                    }
                    Outcome::Unsettled(position, view) => {
                        self.come(state, id, position);
                        Answer::Unsettled(position, view)
                    }
                    Outcome::Queued(position) => {
                        state.truth.queued(id);
                        Answer::Queued(position)
                    }
                    Outcome::Absent(_) => Answer::Absent,
                }
            }
            Ask::Settle(position, view) => {
                if response.succeeded {
                    let mut inside = entrant.settle(*position, view).1;
                    if self.mutant == Mutant::SettlesOwn {
                        inside.epoch = *position;
                    }
                    self.let_in(state, id, inside, view.revision)
                } else {
                    Answer::Unsettled(*position, None)
                }
            }
            Ask::Claim(position, view) => {
                if !state.truth.is_present(id) && state.store != before {
                    state.wrong.insert(TRACE);
                }
                match entrant.read_claim(response, *position, view) {
                    Some(mut inside) => {
                        if self.mutant == Mutant::ClaimOpens && inside.opened_phase {
                            inside.epoch = now;
                        }
                        self.come(state, id, *position);
                        self.let_in(state, id, inside, view.revision)
                    }
                    None => Answer::Absent,
                }
            }
            Ask::Leave(position, _, view) => {
                let (handed, heirs) =
                    (response.succeeded, view.as_ref().map(|v| v.heirs(*position)));
                if !state.truth.left(id, Entrant::read_leave(response)) {
                    state.wrong.insert(LEAVING);
                }
                for (position, heir) in heirs.filter(|_| handed).unwrap_or_default() {
                    self.come(state, read_id(&heir.id), position);
                }
                Answer::Left
            }
            Ask::Abandon => {
                // The client does not know which keys it has to delete.
                state.truth.left(id, 0);
                Answer::Left
            }
            Ask::Bury(grave) => {
                let dead = if grave.notice { BTreeSet::new() } else { ids(&grave.inside.dead) };
                if response.succeeded && !state.truth.buried(id, &dead) {
                    state.wrong.insert(DEATHS);
                }
                // No client waits for this answer.
                Answer::Absent
            }
            Ask::Look(_) => unreachable!("it was answered"),
        }
    }

    /// Records that a client is admitted, even if it does not know yet.
    fn come(&self, state: &mut State, id: Id, position: i64) {
        let passed = state
            .store
            .view(&keys())
            .entries()
            .any(|(its, entry)| its < position && entry.group != self.sessions[id.0]);
        if passed {
            state.wrong.insert(ORDER);
        }
        let now = state.store.revision;
        state.truth.came(id, now);
    }

    /// Checks what must hold when a client learns at revision `seen` that it is inside.
    fn let_in(&self, state: &mut State, _id: Id, inside: Holder, seen: i64) -> Answer {
        let right = state.truth.entered(&inside, &ids(&inside.dead), seen);
        if !right.epochs {
            state.wrong.insert(EPOCHS);
        }
        if !right.deaths {
            state.wrong.insert(DEATHS);
        }
        Answer::Inside(inside)
    }

    /// A client believes that it is inside.
    fn believe(&self, state: &mut State, who: usize, inside: &Holder) {
        let (epoch, session) = (inside.epoch, self.sessions[who]);
        let person = &mut state.people[who];
        person.stage = Stage::Inside(inside.position, epoch);
        if inside.opened_phase && !inside.dead.is_empty() {
            // The client does not wait for an answer. It may have left when this request arrives,
            // as if it had waited for too long.
            let grave = |notice| Ask::Bury(Grave { inside: inside.clone(), notice });
            if self.delay {
                person.asked.push((person.round, grave(true)));
            }
            person.asked.push((person.round, grave(false)));
        }
        let (last, last_session) = state.last;
        if epoch < last || (epoch == last && session != last_session) {
            state.wrong.insert(EPOCHS);
        }
        state.last = (epoch, session);
        for (other, person) in state.people.iter().enumerate() {
            if let Stage::Inside(_, theirs) = person.stage
                && other != who
            {
                if self.sessions[other] != session {
                    state.wrong.insert(EXCLUSION);
                } else if theirs != epoch {
                    state.wrong.insert(EPOCHS);
                }
            }
        }
    }

    fn hear(&self, state: &mut State, who: usize, round: u8, ask: &Ask, answer: Answer) {
        let person = &mut state.people[who];
        // The client does not wait for this answer any more.
        if round != person.round || person.stage != Stage::Asking(ask.clone()) {
            return;
        }
        if person.doubts && self.mutant != Mutant::Trusting && answer != Answer::Left {
            person.stage = Stage::Lost;
            return;
        }
        match answer {
            Answer::NotSo => self.ask(state, who, Ask::Enter),
            Answer::Unsettled(position, None) => self.ask(state, who, Ask::Look(position)),
            Answer::Unsettled(position, Some(view)) => {
                self.ask(state, who, Ask::Settle(position, view));
            }
            Answer::NoLease | Answer::Absent => person.stage = Stage::Lost,
            Answer::Left => {
                person.round += 1;
                person.resent = false;
                person.mirror = None;
                person.stage = Stage::Outside;
            }
            Answer::Queued(position) => person.stage = Stage::Queued(position),
            Answer::Inside(inside) => self.believe(state, who, &inside),
        }
    }

    fn ask(&self, state: &mut State, who: usize, ask: Ask) {
        let person = &mut state.people[who];
        person.stage = Stage::Asking(ask.clone());
        person.asked.push((person.round, ask));
    }

    fn ask_again(&self, state: &mut State, who: usize) {
        state.resends -= 1;
        let person = &mut state.people[who];
        let Stage::Asking(ask) = person.stage.clone() else { return };
        person.resent |= matches!(ask, Ask::Knock | Ask::Join(..) | Ask::Enter);
        person.asked.push((person.round, ask));
    }

    /// The first request.
    fn first(&self, person: &Person, who: usize) -> Ask {
        match person.mirror.as_ref().map(|view| view.guess(self.sessions[who])) {
            Some(Guess::Joinable(phase, position, entry)) => Ask::Join(phase, position, entry),
            Some(Guess::Busy) => Ask::Enter,
            Some(Guess::Empty) => Ask::Knock,
            None => {
                if self.knocks {
                    Ask::Knock
                } else {
                    Ask::Enter
                }
            }
        }
    }

    /// Whether its watch can report something that changes its next step.
    fn has_news(&self, state: &State, who: usize) -> bool {
        let person = &state.people[who];
        let mut now = state.store.view(&keys());
        let matters = match person.stage {
            Stage::Queued(position) => self.turn(person, position) == Turn::Wait,
            _ if state.mirrors == 0 => false,
            Stage::Inside(position, _) => {
                let others = |(_, entry): (i64, &Entry)| entry.group != self.sessions[who];
                let early = self.mutant == Mutant::HandsOverEarly && now.entries().any(others);
                early || !now.heirs(position).is_empty()
            }
            Stage::Outside => {
                let guess = now.guess(self.sessions[who]);
                person.round < self.rounds && matches!(guess, Guess::Joinable(..))
            }
            Stage::Asking(_) | Stage::Lost => false,
        };
        matters
            && person.mirror.as_ref().is_none_or(|seen| {
                now.revision = seen.revision;
                *seen != now
            })
    }
}

fn read_id(id: &str) -> Id {
    let (who, round) = id.split_once('-').expect("an id of ours");
    (who.parse().expect("a number"), round.parse().expect("a number"))
}

/// The owners of these marks.
fn ids(marks: &[KeyValue]) -> BTreeSet<Id> {
    let id = |mark: &KeyValue| keys().read_queue(&mark.key).filter(|(.., is_mark)| *is_mark);
    marks.iter().map(|mark| read_id(&id(mark).expect("a mark of ours").1)).collect()
}

fn lease(who: usize) -> i64 {
    100 + i64::try_from(who).expect("few")
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let person = Person {
            stage: Stage::Outside,
            round: 0,
            doubts: false,
            resent: false,
            mirror: None,
            asked: Vec::new(),
            told: Vec::new(),
        };
        vec![State {
            store: Store::new((0..self.sessions.len()).map(lease)),
            people: vec![person; self.sessions.len()],
            resends: self.resends,
            expiries: self.expiries,
            mirrors: self.mirrors,
            last: (0, ""),
            truth: Truth::default(),
            wrong: BTreeSet::new(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (who, person) in state.people.iter().enumerate() {
            // The server treats equal copies alike.
            let first = |n: &usize| !person.asked[..*n].contains(&person.asked[*n]);
            let requests = (0..person.asked.len()).filter(first);
            actions.extend(requests.map(|n| Action::Serve(who, n)));
            actions.extend((0..person.told.len()).map(|n| Action::Hear(who, n)));
            if !person.doubts && self.has_news(state, who) {
                actions.push(Action::Watch(who));
            }
            match &person.stage {
                Stage::Outside if person.round < self.rounds && !person.doubts => {
                    actions.push(Action::Ask(who));
                }
                Stage::Asking(ask) => {
                    if state.resends > 0 {
                        actions.push(Action::AskAgain(who));
                        let mine = |n: &usize| person.told[*n].1 == *ask;
                        let lost = (0..person.told.len()).filter(mine);
                        actions.extend(lost.map(|n| Action::Lose(who, n)));
                    }
                    let entering = matches!(ask, Ask::Knock | Ask::Join(..) | Ask::Enter);
                    if entering && self.withdrawals {
                        actions.push(Action::GiveUp(who));
                    }
                }
                Stage::Queued(position) => {
                    if self.turn(person, *position) != Turn::Wait {
                        actions.push(Action::Look(who));
                    }
                    if self.withdrawals {
                        actions.push(Action::Leave(who));
                    }
                }
                Stage::Inside(..) => actions.push(Action::Leave(who)),
                Stage::Outside | Stage::Lost => {}
            }
            let alive = state.store.leases.contains(&lease(who));
            if state.expiries > 0 && alive && !person.doubts {
                actions.push(Action::Doubt(who));
            }
            // A lease ends only after its owner's clock has said so. Only a client that is not
            // inside may lose its lease earlier: it is stopped, or its lease is revoked by hand.
            let entrant = self.entrant(who, person.round);
            let mark = keys().mark(&entrant.group, &entrant.id);
            let unaware =
                matches!(
                    person.stage,
                    Stage::Queued(_)
                        | Stage::Asking(Ask::Knock | Ask::Join(..) | Ask::Enter | Ask::Claim(..))
                ) && !person.told.iter().any(|(_, _, answer)| matches!(answer, Answer::Inside(..)))
                    && !state.store.keys.contains_key(&mark);
            let trusting = matches!(self.mutant, Mutant::Trusting | Mutant::TrustsTheWatch);
            if alive && (person.doubts || ((unaware || trusting) && state.expiries > 0)) {
                actions.push(Action::Expire(who));
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Ask(who) => {
                let first = self.first(&state.people[who], who);
                state.people[who].mirror = None;
                self.ask(&mut state, who, first);
            }
            Action::Serve(who, n) => {
                let (round, ask) = state.people[who].asked.remove(n);
                let answer = self.serve(&mut state, who, round, &ask);
                let person = &mut state.people[who];
                // An answer is dropped if no client waits for it.
                let told = (round, ask.clone(), answer);
                if round == person.round
                    && person.stage == Stage::Asking(ask)
                    && !person.told.contains(&told)
                {
                    person.told.push(told);
                }
            }
            Action::Hear(who, n) => {
                let (round, ask, answer) = state.people[who].told.remove(n);
                self.hear(&mut state, who, round, &ask, answer);
                let Person { stage, round, told, .. } = &mut state.people[who];
                told.retain(|(of, ask, _)| of == round && *stage == Stage::Asking(ask.clone()));
            }
            Action::Lose(who, n) => {
                state.people[who].told.remove(n);
                self.ask_again(&mut state, who);
            }
            Action::AskAgain(who) => self.ask_again(&mut state, who),
            Action::GiveUp(who) => {
                state.people[who].told.clear();
                self.ask(&mut state, who, Ask::Abandon);
            }
            Action::Watch(who) => {
                let view = state.store.view(&keys());
                let person = &mut state.people[who];
                if !matches!(person.stage, Stage::Queued(_)) {
                    state.mirrors -= 1;
                }
                person.mirror = Some(view);
            }
            Action::Look(who) => {
                let Stage::Queued(position) = state.people[who].stage else { return None };
                let turn = self.turn(&state.people[who], position);
                let view = state.people[who].mirror.take()?;
                match turn {
                    Turn::Come => self.ask(&mut state, who, Ask::Claim(position, view)),
                    Turn::Inside => {
                        let inside =
                            self.entrant(who, state.people[who].round).inside(position, &view);
                        if let Some(inside) = inside {
                            let id = (who, state.people[who].round);
                            self.let_in(&mut state, id, inside.clone(), view.revision);
                            self.believe(&mut state, who, &inside);
                        } else {
                            self.ask(&mut state, who, Ask::Settle(position, view));
                        }
                    }
                    Turn::Gone => state.people[who].stage = Stage::Lost,
                    Turn::Wait => return None,
                }
            }
            Action::Leave(who) => {
                let person = &mut state.people[who];
                let resent = person.resent;
                let (Stage::Queued(position) | Stage::Inside(position, _)) = person.stage else {
                    return None;
                };
                let inside = matches!(person.stage, Stage::Inside(..));
                let view = person.mirror.take().filter(|_| inside);
                self.ask(&mut state, who, Ask::Leave(position, resent, view));
            }
            Action::Doubt(who) => {
                let person = &mut state.people[who];
                person.doubts = true;
                let trusts = match self.mutant {
                    Mutant::Trusting => true,
                    Mutant::TrustsTheWatch => matches!(person.stage, Stage::Queued(_)),
                    _ => false,
                };
                if !matches!(person.stage, Stage::Asking(_)) && !trusts {
                    person.stage = Stage::Lost;
                }
                state.expiries -= 1;
            }
            Action::Expire(who) => {
                if !state.people[who].doubts {
                    state.expiries -= 1;
                }
                state.store.end(lease(who));
                let revision = state.store.revision;
                state.truth.expired(who, revision);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(EXCLUSION, |_, state: &State| !state.wrong.contains(EXCLUSION)),
            Property::always(EPOCHS, |_, state: &State| !state.wrong.contains(EPOCHS)),
            Property::always(ORDER, |_, state: &State| !state.wrong.contains(ORDER)),
            Property::always(DEATHS, |_, state: &State| !state.wrong.contains(DEATHS)),
            Property::always(LEAVING, |_, state: &State| !state.wrong.contains(LEAVING)),
            Property::always(TRACE, |_, state: &State| !state.wrong.contains(TRACE)),
            Property::always(REST, |world: &World, state: &State| {
                let mut actions = Vec::new();
                world.actions(state, &mut actions);
                !actions.is_empty() || state.at_rest()
            }),
            Property::sometimes("some are inside together", |_, state: &State| {
                let inside = |person: &&Person| matches!(person.stage, Stage::Inside(..));
                state.people.iter().filter(inside).count() >= 2
            }),
        ]
    }
}

impl State {
    /// No client waits, and no entry exists without its owner.
    fn at_rest(&self) -> bool {
        self.store.view(&keys()).first_group().is_none()
            && self.people.iter().all(|p| matches!(p.stage, Stage::Outside | Stage::Lost))
    }
}
