//! Some who want to enter, a network that is late and repeats itself, leases that run out: as a state machine for
//! stateright. What they ask and how they read the answers is the text that ships.

use std::collections::BTreeSet;

use grouplock_etcd::keys::Keys;
use grouplock_etcd::line::{Line, Turn};
use grouplock_etcd::proto::KeyValue;
use grouplock_etcd::protocol::{Inside, Left, Standing, Ticket};
use stateright::{Model, Property};

use crate::asks::{Answer, Ask, Grave, Mutant};
use crate::store::{NoLease, Store};
use crate::truth::{Id, Truth};

/// No two sessions are inside at once.
pub(crate) const EXCLUSION: &str = "no two sessions are inside at once";
/// Those inside together have one epoch, and it is larger than those of phases that are over.
pub(crate) const EPOCHS: &str = "epochs are shared and grow";
/// Nobody passes one of another session who came before.
pub(crate) const ORDER: &str = "first come, first served";
/// Who comes in is told of those who died inside before, until somebody of a later phase has written them down, and of nobody else;
/// and whoever joins a phase is told that somebody died before it if the one who opened it was.
pub(crate) const DEATHS: &str = "deaths are told";
/// Who leaves is told that it has left if it was there, that it was taken away if it died inside, and else neither.
pub(crate) const LEAVING: &str = "who leaves is told the truth";
/// Who is not in the queue any more changes nothing by coming in from there.
pub(crate) const TRACE: &str = "who is gone leaves no trace";
/// When nothing more can happen, nobody waits and no key is left in the queue.
pub(crate) const REST: &str = "nobody is left behind";

/// What is explored.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// The session of each who wants to enter.
    pub(crate) sessions: Vec<&'static str>,
    /// How often each enters.
    pub(crate) rounds: u8,
    /// How many requests may be sent again while the first is on its way, or after its answer was lost.
    pub(crate) resends: u8,
    /// How many leases may run out.
    pub(crate) expiries: u8,
    /// Whether they knock first.
    pub(crate) knocks: bool,
    /// Whether those who wait may give up.
    pub(crate) withdrawals: bool,
    pub(crate) mutant: Mutant,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    store: Store,
    people: Vec<Person>,
    resends: u8,
    expiries: u8,
    /// The last who came in: its epoch and its session.
    last: (i64, &'static str),
    truth: Truth,
    /// What has gone wrong so far.
    wrong: BTreeSet<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Person {
    stage: Stage,
    round: u8,
    /// Its own clock says that its lease may be over.
    doubts: bool,
    /// Whether it has sent a request to enter twice.
    resent: bool,
    /// What is on its way to the server. Sorted: the network keeps no order.
    asked: Vec<(u8, Ask)>,
    /// What is on its way back.
    told: Vec<(u8, Ask, Answer)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Outside,
    /// An answer is awaited.
    Asking(Ask),
    Queued(i64),
    Inside(i64, i64),
    /// Its lease is over, and it knows.
    Lost,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Ask(usize),
    /// The server gets the n-th of its requests.
    Serve(usize, usize),
    /// It gets the n-th of its answers.
    Hear(usize, usize),
    /// The n-th of its answers is lost, and it asks again.
    Lose(usize, usize),
    /// It asks again before there is an answer.
    AskAgain(usize),
    /// It gives up a request that was not answered.
    GiveUp(usize),
    /// It sees that it is its turn, or that it is out of the queue.
    Look(usize),
    Leave(usize),
    Doubt(usize),
    /// The server ends its lease.
    Expire(usize),
}

impl World {
    fn ticket(&self, who: usize, round: u8) -> Ticket {
        Ticket {
            keys: Keys::new("p/r/"),
            session: self.sessions[who].to_owned(),
            id: format!("{who}-{round}"),
            lease: lease(who),
        }
    }

    fn turn(&self, state: &State, place: i64) -> Turn {
        let keys = Keys::new("p/r/");
        let mut line = Line::new(keys.clone());
        let kvs: Vec<KeyValue> = state.store.in_span(&keys.queue()).cloned().collect();
        line.reset(state.store.revision, &kvs);
        match line.turn(place).expect("everything is known") {
            Turn::Wait if self.mutant == Mutant::Impatient => Turn::Come,
            Turn::Gone if self.mutant == Mutant::ClaimUnchecked => Turn::Come,
            turn => turn,
        }
    }

    /// The server does what is asked.
    fn serve(&self, state: &mut State, who: usize, round: u8, ask: &Ask) -> Answer {
        let ticket = self.ticket(who, round);
        let before = state.store.clone();
        let response = match state.store.txn(&self.mutant.request(&ticket, ask)) {
            Ok(response) => response,
            Err(NoLease) => return Answer::NoLease,
        };
        let id = (who, round);
        match ask {
            Ask::Knock => match ticket.read_knock(response) {
                Some(inside) => self.let_in(state, id, &inside),
                None => Answer::Occupied,
            },
            Ask::Enter | Ask::Claim(_) => match ticket.read(response).expect("it can be read") {
                Standing::Inside(inside) => self.let_in(state, id, &inside),
                Standing::Queued(place) => {
                    state.truth.queued(id);
                    Answer::Queued(place)
                }
                Standing::Absent(_) => {
                    if matches!(ask, Ask::Claim(_)) && state.store != before {
                        state.wrong.insert(TRACE);
                    }
                    match ask {
                        Ask::Claim(place) if self.mutant == Mutant::ClaimUnchecked => {
                            let phase = &state.store.keys[&ticket.keys.phase()];
                            Answer::Inside(*place, phase.mod_revision, None)
                        }
                        _ => Answer::Absent,
                    }
                }
            },
            Ask::Leave(..) => {
                let left = Ticket::read_leave(&response);
                if !state.truth.left(id, left) {
                    state.wrong.insert(LEAVING);
                }
                Answer::Left(left != Left::Taken)
            }
            Ask::Abandon => {
                state.truth.abandoned(id);
                Answer::Left(true)
            }
            Ask::Bury(grave) => {
                let dead = ids(&ticket.keys, &grave.marks);
                if response.succeeded && !state.truth.buried(id, grave.epoch, &dead) {
                    state.wrong.insert(DEATHS);
                }
                // Nobody waits for it.
                Answer::Absent
            }
        }
    }

    /// The server says that somebody is inside. What must hold then.
    fn let_in(&self, state: &mut State, id: Id, inside: &Inside) -> Answer {
        let (who, _) = id;
        let keys = Keys::new("p/r/");
        let passed = state.store.in_span(&keys.queue()).any(|kv| {
            let (session, _) = keys.read_entry(&kv.key).expect("an entry");
            session != self.sessions[who] && kv.create_revision < inside.place
        });
        if passed {
            state.wrong.insert(ORDER);
        }
        let dead = ids(&keys, inside.dead.iter().map(|mark| &mark.key));
        let right = state.truth.entered(id, inside, &dead);
        if !right.epochs {
            state.wrong.insert(EPOCHS);
        }
        if !right.deaths {
            state.wrong.insert(DEATHS);
        }
        let all = inside.dead.iter().filter(|_| self.mutant == Mutant::BuriesAll);
        let marks: BTreeSet<_> = inside.died_before().chain(all).map(|mark| &mark.key).collect();
        let grave = (inside.opener && !marks.is_empty()).then(|| Grave {
            place: inside.place,
            epoch: inside.epoch,
            marks: marks.into_iter().cloned().collect(),
            seen: inside.died.as_ref().map_or(0, |died| died.mod_revision),
        });
        Answer::Inside(inside.place, inside.epoch, grave)
    }

    /// Somebody believes to be inside.
    fn believe(&self, state: &mut State, who: usize, epoch: i64) {
        let session = self.sessions[who];
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

    fn hear(&self, state: &mut State, who: usize, round: u8, ask: &Ask, answer: &Answer) {
        let person = &mut state.people[who];
        // An answer to something it does not ask any more.
        if round != person.round || person.stage != Stage::Asking(ask.clone()) {
            return;
        }
        if *answer == Answer::Occupied && !person.doubts {
            return self.ask(state, who, Ask::Enter);
        }
        person.stage = match answer {
            Answer::NoLease | Answer::Absent | Answer::Occupied | Answer::Left(false) => {
                Stage::Lost
            }
            Answer::Left(true) => {
                person.round += 1;
                person.resent = false;
                Stage::Outside
            }
            Answer::Queued(place) => Stage::Queued(*place),
            Answer::Inside(place, epoch, _) => Stage::Inside(*place, *epoch),
        };
        if person.doubts && self.mutant != Mutant::Trusting {
            person.stage = Stage::Lost;
        }
        if let Stage::Inside(_, epoch) = person.stage {
            // It does not wait for an answer, so it may have left when this arrives: as if it had waited for too long.
            if let Answer::Inside(_, _, Some(grave)) = answer {
                person.asked.push((round, Ask::Bury(grave.clone())));
                person.asked.sort();
            }
            self.believe(state, who, epoch);
        }
    }

    fn ask(&self, state: &mut State, who: usize, ask: Ask) {
        let person = &mut state.people[who];
        person.stage = Stage::Asking(ask.clone());
        person.asked.push((person.round, ask));
        person.asked.sort();
    }

    fn ask_again(&self, state: &mut State, who: usize) {
        state.resends -= 1;
        let person = &mut state.people[who];
        let Stage::Asking(ask) = person.stage.clone() else { return };
        person.resent |= matches!(ask, Ask::Knock | Ask::Enter);
        person.asked.push((person.round, ask));
        person.asked.sort();
    }
}

/// Whose marks these are.
fn ids<'k>(keys: &Keys, marks: impl IntoIterator<Item = &'k Vec<u8>>) -> BTreeSet<Id> {
    let id = |key: &Vec<u8>| {
        let id = keys.read_mark(key)?;
        let (who, round) = id.split_once('-')?;
        Some((who.parse().ok()?, round.parse().ok()?))
    };
    marks.into_iter().map(|key| id(key).expect("a mark of ours")).collect()
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
            asked: Vec::new(),
            told: Vec::new(),
        };
        vec![State {
            store: Store::new((0..self.sessions.len()).map(lease)),
            people: vec![person; self.sessions.len()],
            resends: self.resends,
            expiries: self.expiries,
            last: (0, ""),
            truth: Truth::default(),
            wrong: BTreeSet::new(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (who, person) in state.people.iter().enumerate() {
            // Equal copies are the same to the server.
            let first = |n: usize| n == 0 || person.asked[n] != person.asked[n - 1];
            let requests = (0..person.asked.len()).filter(|n| first(*n));
            actions.extend(requests.map(|n| Action::Serve(who, n)));
            actions.extend((0..person.told.len()).map(|n| Action::Hear(who, n)));
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
                    if matches!(ask, Ask::Knock | Ask::Enter) && self.withdrawals {
                        actions.push(Action::GiveUp(who));
                    }
                }
                Stage::Queued(place) => {
                    if self.turn(state, *place) != Turn::Wait {
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
            // A lease ends only after its owner's clock has said so. Only one who is not inside may be without a clock:
            // stopped, or robbed of its lease by hand.
            let unaware =
                matches!(
                    person.stage,
                    Stage::Queued(_) | Stage::Asking(Ask::Knock | Ask::Enter | Ask::Claim(_))
                ) && !person.told.iter().any(|(_, _, answer)| matches!(answer, Answer::Inside(..)))
                    && !state
                        .store
                        .keys
                        .contains_key(&Keys::new("p/r/").mark(&self.ticket(who, person.round).id));
            let trusting = self.mutant == Mutant::Trusting;
            if alive && (person.doubts || ((unaware || trusting) && state.expiries > 0)) {
                actions.push(Action::Expire(who));
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Ask(who) => {
                let first = if self.knocks { Ask::Knock } else { Ask::Enter };
                self.ask(&mut state, who, first);
            }
            Action::Serve(who, n) => {
                let (round, ask) = state.people[who].asked.remove(n);
                let answer = self.serve(&mut state, who, round, &ask);
                let person = &mut state.people[who];
                // What nobody waits for any more need not be told.
                if round == person.round && person.stage == Stage::Asking(ask.clone()) {
                    person.told.push((round, ask, answer));
                    person.told.sort();
                    person.told.dedup();
                }
            }
            Action::Hear(who, n) => {
                let (round, ask, answer) = state.people[who].told.remove(n);
                self.hear(&mut state, who, round, &ask, &answer);
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
            Action::Look(who) => {
                let Stage::Queued(place) = state.people[who].stage else { return None };
                match self.turn(&state, place) {
                    Turn::Come => self.ask(&mut state, who, Ask::Claim(place)),
                    Turn::Gone => state.people[who].stage = Stage::Lost,
                    Turn::Wait => return None,
                }
            }
            Action::Leave(who) => {
                let resent = state.people[who].resent;
                let (Stage::Queued(place) | Stage::Inside(place, _)) = state.people[who].stage
                else {
                    return None;
                };
                self.ask(&mut state, who, Ask::Leave(place, resent));
            }
            Action::Doubt(who) => {
                let person = &mut state.people[who];
                person.doubts = true;
                if !matches!(person.stage, Stage::Asking(_)) && self.mutant != Mutant::Trusting {
                    person.stage = Stage::Lost;
                }
                state.expiries -= 1;
            }
            Action::Expire(who) => {
                if !state.people[who].doubts {
                    state.expiries -= 1;
                }
                state.store.end(lease(who));
                state.truth.expired(who);
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
    /// Nobody waits for anything, and nobody's key is there without its owner.
    fn at_rest(&self) -> bool {
        let keys = Keys::new("p/r/");
        self.store.in_span(&keys.queue()).next().is_none()
            && self.people.iter().all(|p| matches!(p.stage, Stage::Outside | Stage::Lost))
    }
}
