//! A state machine for stateright. Clients want to enter. The network delays and repeats messages,
//! leases expire, time passes, and watches lag and break. The clients send the requests and read
//! the answers with the code that ships.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use grouplock_etcd::keys::Keys;
use grouplock_etcd::proto::KeyValue;
use grouplock_etcd::view::EntryState;
use stateright::{Model, Property};

use crate::asks::{Answer, Ask};
use crate::clients::{Person, Stage};
use crate::mutants::Mutant;
use crate::store::Store;
use crate::truth::{Id, Truth, read_id};
use crate::watch::{self, Step, Watch};

/// No two sessions are inside at once.
pub(crate) const EXCLUSION: &str = "no two sessions are inside at once";
/// All holders of a phase have one epoch. It is larger than the epochs of all phases that are over.
pub(crate) const EPOCHS: &str = "epochs are shared and grow";
/// No request passes an earlier request of another session.
pub(crate) const ORDER: &str = "first come, first served";
/// All holders of the next phase learn of a death, until one that is inside has buried the dead.
/// Only deaths inside are reported.
pub(crate) const DEATHS: &str = "deaths are told";
/// No holder of the next phase enters before the delay has passed since the death.
pub(crate) const DELAY: &str = "nobody enters before the delay is over";
/// A delay counts from the time when the death was noticed first.
pub(crate) const NOTICE: &str = "a delay does not begin again";
/// A client that leaves learns how many of its keys existed.
pub(crate) const LEAVING: &str = "who leaves is told the truth";
/// A claim changes nothing if its entry is not in the queue any more.
pub(crate) const TRACE: &str = "who is gone leaves no trace";
/// When nothing more can happen, no client waits and no entry is left in the queue.
pub(crate) const REST: &str = "nobody is left behind";
/// A view and what its stream will report are the room as it is.
pub(crate) const WATCH: &str = "a watch misses nothing";
/// A holder whose key is gone learns it by its watch.
pub(crate) const GONE: &str = "a loss is seen";
/// At least two clients are inside at once.
const TOGETHER: &str = "some are inside together";

/// All properties that must always hold.
pub(crate) const ALL: [&str; 11] =
    [EXCLUSION, EPOCHS, ORDER, DEATHS, DELAY, NOTICE, LEAVING, TRACE, REST, WATCH, GONE];

/// The model that is explored.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(crate) struct World {
    /// The session of each client.
    pub(crate) sessions: Vec<&'static str>,
    /// How often each client enters. A client that has lost its holding enters again too.
    pub(crate) rounds: u8,
    /// How many requests may be sent again: while the first is on its way, or after its answer was
    /// lost.
    pub(crate) resends: u8,
    /// How many leases may expire.
    pub(crate) expiries: u8,
    /// How many leases of holders may be revoked by hand.
    pub(crate) robberies: u8,
    /// How often clients may read their mirrors before they ask or leave. Waiters read them without
    /// a limit.
    pub(crate) mirrors: u8,
    /// Explores the watches step by step. Otherwise a mirror is the room at any time in the past.
    pub(crate) streams: bool,
    /// How many streams may break.
    pub(crate) breaks: u8,
    /// Whether clients knock first.
    pub(crate) knocks: bool,
    /// Whether clients may wait.
    pub(crate) patient: bool,
    /// Whether clients may withdraw while they wait, in the queue or after a death.
    pub(crate) withdrawals: bool,
    /// Whether clients may give up a request that is not answered.
    pub(crate) gives_up: bool,
    /// How long nobody enters after a death.
    pub(crate) delay: u64,
    pub(crate) mutant: Mutant,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) people: Vec<Person>,
    pub(crate) resends: u8,
    pub(crate) expiries: u8,
    pub(crate) robberies: u8,
    pub(crate) mirrors: u8,
    pub(crate) breaks: u8,
    /// The time, the same for all.
    pub(crate) clock: u64,
    /// The last holder that entered: its epoch and its session.
    pub(crate) last: (i64, &'static str),
    pub(crate) truth: Truth,
    /// The properties that were violated so far.
    pub(crate) wrong: BTreeSet<&'static str>,
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
    /// A step of the watch of a client.
    Stream(usize, Step),
    /// A client reads in its mirror that it may claim, that it is inside, or that its entry is
    /// gone.
    Look(usize),
    /// The delay of a client is over.
    Enter(usize),
    Leave(usize),
    Doubt(usize),
    /// The server ends this lease.
    Expire(i64),
    /// Somebody revokes the lease of a holder.
    Rob(usize),
    /// A holder reads in its mirror that its entry is gone.
    Miss(usize),
    /// Time passes.
    Tick,
}

pub(crate) fn keys() -> Keys {
    Keys::new("p/r/")
}

/// The owners of these marks.
pub(crate) fn ids(marks: &[KeyValue]) -> BTreeSet<Id> {
    let id = |mark: &KeyValue| keys().read_queue(&mark.key).filter(|(.., is_mark)| *is_mark);
    marks.iter().map(|mark| read_id(&id(mark).expect("a mark of ours").1)).collect()
}

/// The first lease of a client. The next one has a number that is larger by ten.
fn lease(who: usize) -> i64 {
    100 + i64::try_from(who).expect("few")
}

impl World {
    /// The first of several new clients with one session acts first: the others would do the same.
    fn must_let_others_begin(&self, state: &State, who: usize) -> bool {
        let before = || state.people[..who].iter().zip(&self.sessions);
        state.people[who].is_new()
            && before().any(|(other, session)| *session == self.sessions[who] && other.is_new())
    }

    /// What a client can do, without the network, the server and its watch.
    fn own_actions(&self, state: &State, who: usize, actions: &mut Vec<Action>) {
        let person = &state.people[who];
        match &person.stage {
            Stage::Outside if person.round < self.rounds && !person.doubts => {
                actions.push(Action::Ask(who));
            }
            Stage::Lost if person.round + 1 < self.rounds => actions.push(Action::Ask(who)),
            Stage::Asking(ask) => {
                if state.resends > 0 {
                    actions.push(Action::AskAgain(who));
                    let mine = |n: &usize| person.told[*n].1 == *ask;
                    let lost = (0..person.told.len()).filter(mine);
                    actions.extend(lost.map(|n| Action::Lose(who, n)));
                }
                if self.gives_up && !matches!(ask, Ask::Abandon | Ask::Notice(_)) {
                    actions.push(Action::GiveUp(who));
                }
            }
            Stage::Queued(position) => {
                if self.entry_state(person, *position) != EntryState::Waits {
                    actions.push(Action::Look(who));
                }
                if self.withdrawals {
                    actions.push(Action::Leave(who));
                }
            }
            Stage::Delayed(_, until) => {
                if *until <= state.clock {
                    actions.push(Action::Enter(who));
                }
                if self.withdrawals {
                    actions.push(Action::Leave(who));
                }
            }
            Stage::Inside(position, _) => {
                actions.push(Action::Leave(who));
                let view = person.mirror.view.as_ref().filter(|_| self.streams);
                if view.is_some_and(|view| view.is_gone(*position)) {
                    actions.push(Action::Miss(who));
                }
                if state.robberies > 0 && state.store.leases.contains(&person.lease) {
                    actions.push(Action::Rob(who));
                }
            }
            Stage::Outside | Stage::Lost => {}
        }
    }

    /// A lease ends only after its owner's clock has said so. Only a client that is not inside may
    /// lose its lease earlier: it is stopped, or its lease is revoked by hand.
    fn may_expire(&self, state: &State, who: usize) -> bool {
        let person = &state.people[who];
        if person.doubts || state.expiries == 0 {
            return person.doubts;
        }
        let entrant = self.entrant(who, person.round, person.lease);
        let mark = keys().mark(&entrant.group, &entrant.id);
        let outside = match &person.stage {
            Stage::Queued(_) | Stage::Asking(Ask::Claim(..)) => true,
            Stage::Asking(ask) => ask.enters(),
            _ => false,
        };
        let is_told = |(_, _, answer): &(u8, Ask, Answer)| matches!(answer, Answer::Inside(..));
        let unaware =
            outside && !person.told.iter().any(is_told) && !state.store.keys.contains_key(&mark);
        let trusting = matches!(self.mutant, Mutant::Trusting | Mutant::TrustsTheWatch);
        unaware || trusting
    }

    fn watch_is_needed(&self, person: &Person) -> bool {
        match person.stage {
            Stage::Queued(_) | Stage::Inside(..) => true,
            Stage::Outside => person.mirror.view.is_some() && person.round < self.rounds,
            _ => false,
        }
    }

    fn act(&self, state: &mut State, action: &Action) {
        match *action {
            Action::Ask(who) => self.begin(state, who),
            Action::Serve(who, n) => {
                let sent = state.people[who].asked.remove(n);
                let answer = self.serve(state, who, &sent);
                let person = &mut state.people[who];
                // An answer is dropped if no client waits for it.
                let told = (sent.round, sent.ask.clone(), answer);
                if sent.round == person.round
                    && person.stage == Stage::Asking(sent.ask)
                    && !person.told.contains(&told)
                {
                    person.told.push(told);
                }
            }
            Action::Hear(who, n) => {
                let (_, ask, answer) = state.people[who].told.remove(n);
                self.hear(state, who, &ask, answer);
                let Person { stage, round, told, .. } = &mut state.people[who];
                told.retain(|(of, ask, _)| of == round && *stage == Stage::Asking(ask.clone()));
            }
            Action::Lose(who, n) => {
                state.people[who].told.remove(n);
                self.ask_again(state, who);
            }
            Action::AskAgain(who) => self.ask_again(state, who),
            Action::GiveUp(who) => {
                state.people[who].told.clear();
                self.ask(state, who, Ask::Abandon);
            }
            Action::Watch(who) => {
                let view = state.store.view(&keys());
                let person = &mut state.people[who];
                if !matches!(person.stage, Stage::Queued(_)) {
                    state.mirrors -= 1;
                }
                person.mirror.view = Some(view);
            }
            Action::Stream(who, step) => {
                state.breaks -= u8::from(step == Step::Break);
                state.people[who].mirror.step(step, &state.store, &keys(), self.mutant);
            }
            Action::Look(who) => self.look(state, who),
            Action::Enter(who) => {
                if let Stage::Delayed(grave, _) = state.people[who].stage.clone() {
                    self.enter(state, who, grave);
                }
            }
            Action::Leave(who) => self.leave(state, who),
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
            Action::Expire(lease) => {
                let expected = |person: &Person| person.lease != lease || person.doubts;
                state.expiries -= u8::from(!state.people.iter().all(expected));
                state.store.end(lease);
                state.truth.expired(lease, state.clock);
            }
            Action::Rob(who) => {
                state.robberies -= 1;
                let person = &mut state.people[who];
                person.robbed = true;
                state.store.end(person.lease);
                state.truth.expired(person.lease, state.clock);
            }
            Action::Miss(who) => state.people[who].stage = Stage::Lost,
            Action::Tick => state.clock += 1,
        }
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let clients = 0..self.sessions.len();
        vec![State {
            store: Store::new(clients.clone().map(lease)),
            people: clients.map(|who| Person::new(lease(who))).collect(),
            resends: self.resends,
            expiries: self.expiries,
            robberies: self.robberies,
            mirrors: self.mirrors,
            breaks: self.breaks,
            clock: 0,
            last: (0, ""),
            truth: Truth::default(),
            wrong: BTreeSet::new(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (who, person) in state.people.iter().enumerate() {
            if self.must_let_others_begin(state, who) {
                continue;
            }
            // The server treats equal copies alike.
            let first = |n: &usize| !person.asked[..*n].contains(&person.asked[*n]);
            let requests = (0..person.asked.len()).filter(first);
            actions.extend(requests.map(|n| Action::Serve(who, n)));
            actions.extend((0..person.told.len()).map(|n| Action::Hear(who, n)));
            if self.streams {
                let needed = self.watch_is_needed(person);
                let steps = person.mirror.steps(needed, state.breaks > 0, self.mutant);
                actions.extend(steps.into_iter().map(|step| Action::Stream(who, step)));
            } else if !person.doubts && self.has_news(state, who) {
                actions.push(Action::Watch(who));
            }
            self.own_actions(state, who, actions);
            let alive = |lease: &i64| state.store.leases.contains(lease);
            if alive(&person.lease) {
                if state.expiries > 0 && !person.doubts {
                    actions.push(Action::Doubt(who));
                }
                if self.may_expire(state, who) {
                    actions.push(Action::Expire(person.lease));
                }
            }
            // Its owner has another one.
            let old = (lease(who)..person.lease).step_by(10).filter(alive);
            actions.extend(old.map(Action::Expire));
        }
        let waits = |person: &Person| matches!(&person.stage, Stage::Delayed(_, until) if *until > state.clock);
        if state.people.iter().any(waits) {
            actions.push(Action::Tick);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        self.act(&mut state, &action);
        if self.streams && state.store.revision != last.store.revision {
            let events = watch::events(&last.store, &state.store, &keys());
            state.people.iter_mut().for_each(|person| person.mirror.changed(&events));
        }
        for person in &mut state.people {
            let was_there = u8::from(person.stage == Stage::Lost);
            if matches!(person.stage, Stage::Outside | Stage::Lost)
                && person.round + was_there >= self.rounds
            {
                // It does not come again.
                person.mirror = Watch::default();
            }
            // The network keeps no order, so that any order is the same.
            person.asked.sort_by_cached_key(fingerprint);
            person.told.sort_by_cached_key(fingerprint);
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        macro_rules! right {
            ($($property:ident),*) => {
                vec![$(Property::always($property, |_, state: &State| {
                    !state.wrong.contains($property)
                })),*]
            };
        }
        let mut properties =
            right![EXCLUSION, EPOCHS, ORDER, DEATHS, DELAY, NOTICE, LEAVING, TRACE];
        properties.extend([
            Property::always(REST, |world: &World, state: &State| {
                let mut actions = Vec::new();
                let moves =
                    |p: &Person| !p.asked.is_empty() || matches!(p.stage, Stage::Inside(..));
                state.people.iter().any(moves) || state.at_rest() || {
                    world.actions(state, &mut actions);
                    !actions.is_empty()
                }
            }),
            Property::always(WATCH, |_, state: &State| {
                state
                    .people
                    .iter()
                    .all(|person| person.mirror.misses_nothing(&state.store, &keys()))
            }),
            Property::always(GONE, |_, state: &State| state.people.iter().all(|p| state.sees(p))),
            Property::sometimes(TOGETHER, |_, state: &State| state.inside() >= 2),
        ]);
        properties
    }
}

fn fingerprint(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl State {
    /// How many clients believe that they are inside.
    pub(crate) fn inside(&self) -> usize {
        self.people.iter().filter(|person| matches!(person.stage, Stage::Inside(..))).count()
    }

    /// No client waits, and no entry exists without its owner.
    fn at_rest(&self) -> bool {
        self.people.iter().all(|p| matches!(p.stage, Stage::Outside | Stage::Lost))
            && self.store.view(&keys()).first_group().is_none()
    }

    /// A holder whose lease was revoked sees it.
    fn sees(&self, person: &Person) -> bool {
        match person.stage {
            Stage::Inside(position, _) if person.robbed => {
                person.mirror.tells_that_it_is_gone(position)
            }
            _ => true,
        }
    }
}
