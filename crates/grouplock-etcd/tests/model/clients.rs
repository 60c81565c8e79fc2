//! What clients do: as in `src/visit.rs`, a step at a time.

use std::time::Duration;

use grouplock_etcd::deaths::Deaths;
use grouplock_etcd::protocol::Holder;
use grouplock_etcd::view::{Entry, EntryState, Guess, View};

use crate::asks::{Answer, Ask, Grave, Sent};
use crate::mutants::Mutant;
use crate::watch::Watch;
use crate::world::{DEATHS, DELAY, EPOCHS, EXCLUSION, NOTICE, State, World, ids, keys};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Person {
    pub(crate) stage: Stage,
    pub(crate) round: u8,
    pub(crate) lease: i64,
    /// Its own clock says that its lease may have expired.
    pub(crate) doubts: bool,
    /// Somebody has revoked its lease. It does not know yet.
    pub(crate) robbed: bool,
    /// Whether it has sent a request to enter twice.
    pub(crate) resent: bool,
    pub(crate) mirror: Watch,
    /// The requests on their way to the server. The network keeps no order.
    pub(crate) asked: Vec<Sent>,
    /// The answers on their way back.
    pub(crate) told: Vec<(u8, Ask, Answer)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    Outside,
    /// The client waits for an answer.
    Asking(Ask),
    Queued(i64),
    /// It waits after a death, until this time.
    Delayed(Grave, u64),
    Inside(i64, i64),
    /// Its holding is lost, and the client knows it.
    Lost,
}

impl Person {
    pub(crate) fn new(lease: i64) -> Self {
        Person {
            stage: Stage::Outside,
            round: 0,
            lease,
            doubts: false,
            robbed: false,
            resent: false,
            mirror: Watch::default(),
            asked: Vec::new(),
            told: Vec::new(),
        }
    }

    /// Whether it has done nothing so far.
    pub(crate) fn is_new(&self) -> bool {
        let Person { stage, round, doubts, mirror, .. } = self;
        *stage == Stage::Outside && *round == 0 && !doubts && *mirror == Watch::default()
    }

    fn next_round(&mut self) {
        self.round += 1;
        (self.resent, self.robbed) = (false, false);
        self.stage = Stage::Outside;
    }
}

impl World {
    pub(crate) fn ask(&self, state: &mut State, who: usize, ask: Ask) {
        let person = &mut state.people[who];
        person.stage = Stage::Asking(ask.clone());
        person.asked.push(Sent { round: person.round, lease: person.lease, ask });
    }

    pub(crate) fn ask_again(&self, state: &mut State, who: usize) {
        state.resends -= 1;
        let person = &mut state.people[who];
        let Stage::Asking(ask) = person.stage.clone() else { return };
        person.resent |= ask.enters();
        person.asked.push(Sent { round: person.round, lease: person.lease, ask });
    }

    /// The first request.
    pub(crate) fn begin(&self, state: &mut State, who: usize) {
        if state.people[who].stage == Stage::Lost {
            state.people[who].next_round();
        }
        if state.people[who].doubts {
            self.renew(state, who);
        }
        let view = self.mirror(&mut state.people[who]);
        let ask = match view.map(|view| view.guess(self.sessions[who])) {
            Some(Guess::Joinable(phase, position, entry)) => Ask::Join(phase, position, entry),
            Some(Guess::Empty) => Ask::Knock,
            None if self.knocks => Ask::Knock,
            Some(Guess::Busy) | None => Ask::Enter(self.patient),
        };
        self.ask(state, who, ask);
    }

    /// The client gets another lease.
    fn renew(&self, state: &mut State, who: usize) {
        let person = &mut state.people[who];
        person.lease += 10;
        person.doubts = false;
        state.store.leases.insert(person.lease);
    }

    /// What its watch has reported, for a guess. If watches are not explored step by step, it is
    /// used once.
    fn mirror(&self, person: &mut Person) -> Option<View> {
        if self.streams { person.mirror.current().cloned() } else { person.mirror.view.take() }
    }

    /// What a waiter may do, by its mirror.
    pub(crate) fn entry_state(&self, person: &Person, position: i64) -> EntryState {
        match person.mirror.view.as_ref().and_then(|view| view.entry_state(position)) {
            None => EntryState::Waits,
            Some(EntryState::Waits) if self.mutant == Mutant::Impatient => EntryState::MayEnter,
            Some(EntryState::Gone) if self.mutant == Mutant::ClaimUnchecked => EntryState::MayEnter,
            Some(state) => state,
        }
    }

    /// A waiter finds in its mirror that it need not wait.
    pub(crate) fn look(&self, state: &mut State, who: usize) {
        let person = &mut state.people[who];
        let Stage::Queued(position) = person.stage else { return };
        let entry = self.entry_state(person, position);
        let view = person.mirror.view.clone().expect("it has a mirror");
        if !self.streams {
            person.mirror.view = None;
        }
        match entry {
            EntryState::MayEnter => self.ask(state, who, Ask::Claim(position, view)),
            EntryState::Inside => {
                let entrant = self.entrant(who, person.round, person.lease);
                match entrant.inside(position, &view) {
                    Some(inside) => self.learn(state, who, inside),
                    None => self.ask(state, who, Ask::Look(position)),
                }
            }
            EntryState::Gone => person.stage = Stage::Lost,
            EntryState::Waits => unreachable!("it looks only if it need not wait"),
        }
    }

    pub(crate) fn leave(&self, state: &mut State, who: usize) {
        let person = &mut state.people[who];
        let (position, inside) = match &person.stage {
            Stage::Queued(position) => (*position, false),
            Stage::Inside(position, _) => (*position, true),
            Stage::Delayed(grave, _) => (grave.inside.position, true),
            _ => return,
        };
        let view = self.mirror(person).filter(|_| inside);
        let ask = Ask::Leave(position, person.resent, view);
        self.ask(state, who, ask);
    }

    pub(crate) fn hear(&self, state: &mut State, who: usize, ask: &Ask, answer: Answer) {
        let person = &mut state.people[who];
        if person.doubts && self.mutant != Mutant::Trusting && answer != Answer::Left {
            person.stage = Stage::Lost;
            return;
        }
        match answer {
            Answer::NotSo => self.ask(state, who, Ask::Enter(self.patient)),
            Answer::Unsettled(position, None) => self.ask(state, who, Ask::Look(position)),
            Answer::Unsettled(position, Some(view)) => {
                self.ask(state, who, Ask::Settle(position, view));
            }
            Answer::NoLease if ask.enters() && !person.resent => {
                // Nothing was put, so the request can use another lease.
                self.renew(state, who);
                self.begin(state, who);
            }
            Answer::Absent
                if ask.enters() && person.resent && self.mutant != Mutant::NeverForgets =>
            {
                self.ask(state, who, Ask::Abandon);
            }
            Answer::NoLease | Answer::Absent => person.stage = Stage::Lost,
            Answer::Left => {
                person.next_round();
                if !self.streams {
                    person.mirror = Watch::default();
                }
            }
            Answer::Queued(position) => person.stage = Stage::Queued(position),
            Answer::Inside(inside) => self.learn(state, who, inside),
            Answer::Noticed(response) => {
                if let Ask::Notice(Grave { mut inside, deaths }) = ask.clone() {
                    deaths.read_notice(&mut inside, response);
                    self.hold_back(state, who, Grave { inside, deaths });
                }
            }
        }
    }

    /// A client learns that it is inside. After a death it waits.
    fn learn(&self, state: &mut State, who: usize, inside: Holder) {
        let deaths = Deaths::by(&inside, Duration::from_millis(self.delay), state.clock);
        let (round, lease) = (state.people[who].round, state.people[who].lease);
        let report = deaths.report.as_ref();
        let right = state.truth.learns((who, round), &inside, &ids(&inside.dead), report);
        if !right.epochs {
            state.wrong.insert(EPOCHS);
        }
        if !right.deaths {
            state.wrong.insert(DEATHS);
        }
        let grave = Grave { inside, deaths };
        if grave.deaths.delay.is_zero() || self.mutant == Mutant::IgnoresDelay {
            return self.enter(state, who, grave);
        }
        if self.mutant == Mutant::BuriesEarly {
            self.bury(state, who, grave.clone());
        }
        let notice = grave.deaths.notice(&self.entrant(who, round, lease), &grave.inside);
        if notice.is_some() && self.mutant != Mutant::Unnoticed {
            self.ask(state, who, Ask::Notice(grave));
        } else {
            self.hold_back(state, who, grave);
        }
    }

    fn hold_back(&self, state: &mut State, who: usize, grave: Grave) {
        let Grave { inside, deaths } = &grave;
        let (id, now) = ((who, state.people[who].round), state.clock);
        let rest = u64::try_from(deaths.delay.as_millis()).expect("a short delay");
        let here = (now, state.store.revision);
        let dead = ids(&inside.dead);
        if !state.truth.waits(id, inside, &dead, here, rest, self.delay) {
            state.wrong.insert(NOTICE);
        }
        state.people[who].stage = Stage::Delayed(grave, now + rest);
    }

    /// The opener of a phase does not wait for the answer. It may have left when this request
    /// arrives, as if it had waited for too long.
    fn bury(&self, state: &mut State, who: usize, grave: Grave) {
        let person = &mut state.people[who];
        let (round, lease) = (person.round, person.lease);
        if !grave.deaths.burials(&self.entrant(who, round, lease), &grave.inside).is_empty() {
            person.asked.push(Sent { round, lease, ask: Ask::Bury(grave) });
        }
    }

    /// A client believes that it is inside.
    pub(crate) fn enter(&self, state: &mut State, who: usize, grave: Grave) {
        let Holder { position, epoch, .. } = grave.inside;
        let (id, session) = ((who, state.people[who].round), self.sessions[who]);
        if !state.truth.entered(id, epoch, state.clock, self.delay) {
            state.wrong.insert(DELAY);
        }
        state.people[who].stage = Stage::Inside(position, epoch);
        self.bury(state, who, grave);
        let (last, last_session) = state.last;
        if epoch < last || (epoch == last && session != last_session) {
            state.wrong.insert(EPOCHS);
        }
        state.last = (epoch, session);
        for (other, person) in state.people.iter().enumerate() {
            if let Stage::Inside(_, theirs) = person.stage
                && other != who
                && !person.robbed
            {
                if self.sessions[other] != session {
                    state.wrong.insert(EXCLUSION);
                } else if theirs != epoch {
                    state.wrong.insert(EPOCHS);
                }
            }
        }
    }

    /// Whether its watch can report something that changes its next step.
    pub(crate) fn has_news(&self, state: &State, who: usize) -> bool {
        let person = &state.people[who];
        let waits = match person.stage {
            Stage::Queued(position) => self.entry_state(person, position) == EntryState::Waits,
            Stage::Inside(..) | Stage::Outside => state.mirrors > 0,
            Stage::Asking(_) | Stage::Delayed(..) | Stage::Lost => false,
        };
        if !waits {
            return false;
        }
        let mut now = state.store.view(&keys());
        let matters = match person.stage {
            Stage::Inside(position, _) => {
                let others = |(_, entry): (i64, &Entry)| entry.group != self.sessions[who];
                let early = self.mutant == Mutant::HandsOverEarly && now.entries().any(others);
                early || !now.heirs(position).is_empty()
            }
            Stage::Outside => {
                let guess = now.guess(self.sessions[who]);
                person.round < self.rounds && matches!(guess, Guess::Joinable(..))
            }
            _ => true,
        };
        matters
            && person.mirror.view.as_ref().is_none_or(|seen| {
                now.revision = seen.revision;
                *seen != now
            })
    }
}
