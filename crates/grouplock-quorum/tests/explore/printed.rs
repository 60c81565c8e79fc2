//! The paper's machine (figures 5 and 6). Its repairs are switches. With the first k repairs it
//! shows defect k + 1. With all repairs it is the machine that ships, written a second time in the
//! form of the paper.

use std::collections::{BTreeMap, BTreeSet};

use stateright::{Checker, HasDiscoveries, Model, Property};

/// Repairs between groups, in the order of the table in `docs/algorithms/gbp.md`. Each includes
/// those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Repaired {
    /// As printed. A group's own vote counts in its quorum, but nobody ever gives it.
    NothingSelfCounted,
    /// As printed. A group's own vote is not counted.
    NothingSelfNotCounted,
    /// 1: a group asks itself like any other group.
    OwnVote,
    /// 2: the holder of the lock is separate from the waiters.
    Holder,
    /// 3: a recall names the stage, and another stage does not answer it.
    Recall,
    /// 4: one recall for one grant.
    OneRecall,
    /// 5: grants are numbered. A returned grant counts no more, and is returned once.
    Grants,
    /// 6: equal priorities are ordered.
    Ties,
}

/// Defects between groups and their processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftIn {
    /// 7: whether there is a next stage depends on LG, not on its waiters.
    NextStage,
    /// 8: the holders are mixed with the waiters.
    Inside,
    /// 9: a group without competitors still makes its own processes wait.
    Alone,
}

/// A process: its group, and whether its stay is too long for a stage that is under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) group: usize,
    pub(crate) long: bool,
}

pub(crate) struct Printed {
    pub(crate) repaired: Repaired,
    pub(crate) left_in: Option<LeftIn>,
    pub(crate) ordered: bool,
    pub(crate) quorums: Vec<Vec<usize>>,
    /// The priority of each group.
    pub(crate) priorities: Vec<u32>,
    /// The session of each group. In the paper a group is a session, so each group has its own.
    pub(crate) sessions: Vec<u32>,
    /// An arbiter may vote for several groups of one session at once.
    pub(crate) shared_votes: bool,
    pub(crate) processes: Vec<Plan>,
}

/// A request at an arbiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Entry {
    /// Negative: the smallest entry is the best.
    priority: i64,
    group: usize,
    stage: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Phase {
    #[default]
    Inactive,
    Active,
    Cs,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    state: Phase,
    stage: u64,
    conj: BTreeMap<usize, u64>,
    yielded: BTreeMap<usize, u64>,
    competes: bool,
    epoch: u64,
    /// LP: linked processes, by whether they are inside.
    lp: BTreeMap<usize, bool>,
    // As arbiter. LG is `locked` and `waiting` together.
    locked: BTreeMap<Entry, u64>,
    waiting: BTreeSet<Entry>,
    recalled: bool,
    grants: u64,
    over: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Message {
    Req { priority: i64, stage: u64 },
    Rec { stage: u64, grant: u64, over: u64 },
    Rel { stage: u64, grant: u64 },
    RepRel { stage: u64, grant: u64 },
    Lib { stage: u64, epoch: u64 },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    groups: Vec<Group>,
    asked: Vec<bool>,
    left: Vec<bool>,
    links: BTreeMap<(usize, usize), Vec<Message>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Ask(usize),
    Leave(usize),
    Deliver(usize, usize, usize),
}

impl Printed {
    fn has(&self, repair: Repaired) -> bool {
        self.repaired >= repair
    }

    /// Whether `a` ranks before `b`.
    fn before(&self, a: Entry, b: Entry) -> bool {
        if self.has(Repaired::Ties) { a < b } else { a.priority < b.priority }
    }

    fn is_inside(&self, state: &State, p: usize) -> bool {
        let group = &state.groups[self.processes[p].group];
        group.state == Phase::Cs && group.lp.get(&p) == Some(&true)
    }

    fn send(&self, state: &mut State, from: usize, to: usize, message: Message) {
        if from == to {
            self.receive(state, from, to, message);
            return;
        }
        let link = state.links.entry((from, to)).or_default();
        link.push(message);
        if !self.ordered {
            link.sort();
        }
    }

    fn multicast(&self, state: &mut State, from: usize, message: Message) {
        for &to in &self.quorums[from] {
            if to != from || self.has(Repaired::OwnVote) {
                self.send(state, from, to, message);
            }
        }
    }

    fn activate(&self, state: &mut State, k: usize) {
        let priority = -i64::from(self.priorities[k]);
        let group = &mut state.groups[k];
        group.state = Phase::Active;
        group.stage += 1;
        group.conj.clear();
        group.yielded.clear();
        group.competes = false;
        let stage = group.stage;
        if !self.has(Repaired::OwnVote) {
            group.waiting.insert(Entry { priority, group: k, stage }); // AddLG(LG, G_k, priori)
        }
        self.multicast(state, k, Message::Req { priority, stage });
    }

    fn req_process(&self, state: &mut State, p: usize) {
        let Plan { group: k, long } = self.processes[p];
        let group = &mut state.groups[k];
        let alone = self.left_in != Some(LeftIn::Alone) && !group.competes;
        let admitted = group.state == Phase::Cs && (!long || alone);
        group.lp.insert(p, admitted);
        if group.state == Phase::Inactive {
            self.activate(state, k);
        }
    }

    fn rel_process(&self, state: &mut State, p: usize) {
        let k = self.processes[p].group;
        let group = &mut state.groups[k];
        group.lp.remove(&p);
        let nobody = if self.left_in == Some(LeftIn::Inside) {
            group.lp.is_empty()
        } else {
            group.lp.values().all(|inside| !inside)
        };
        if !nobody {
            return;
        }
        group.state = Phase::Inactive;
        let (stage, epoch) = (group.stage, group.epoch);
        self.multicast(state, k, Message::Lib { stage, epoch });
        if !self.has(Repaired::OwnVote) {
            state.groups[k].waiting.retain(|entry| entry.group != k);
            self.give(state, k);
        }
        let group = &state.groups[k];
        let again = if self.left_in == Some(LeftIn::NextStage) {
            !group.waiting.is_empty() || !group.locked.is_empty() // not empty(LG)
        } else {
            !group.lp.is_empty()
        };
        if again {
            self.activate(state, k);
        }
    }

    fn receive(&self, state: &mut State, from: usize, me: usize, message: Message) {
        match message {
            Message::Req { priority, stage } => {
                self.req_group(state, me, Entry { priority, group: from, stage });
            }
            Message::Rec { stage, grant, over } => {
                self.rec_group(state, me, from, (stage, grant), over);
            }
            Message::Rel { stage, grant } => {
                let group = &mut state.groups[me];
                if self.has(Repaired::Recall) && (stage != group.stage) {
                    return;
                }
                group.competes = true;
                let active = if self.has(Repaired::Recall) {
                    group.state == Phase::Active
                } else {
                    group.state != Phase::Cs
                };
                let yielded = group.yielded.get(&from).is_some_and(|yielded| grant <= *yielded);
                if active && !(yielded && self.has(Repaired::Grants)) {
                    group.conj.remove(&from);
                    group.yielded.insert(from, grant);
                    self.send(state, me, from, Message::RepRel { stage, grant });
                }
            }
            Message::RepRel { stage, grant } => {
                let arbiter = &mut state.groups[me];
                let named = |(entry, by): &(&Entry, &u64)| {
                    let numbered = entry.stage == stage && **by == grant;
                    entry.group == from && (numbered || !self.has(Repaired::Grants))
                };
                let holder = arbiter.locked.iter().find(named).map(|(entry, _)| *entry);
                match holder {
                    Some(holder) => {
                        arbiter.locked.remove(&holder);
                        arbiter.waiting.insert(holder);
                    }
                    None if self.has(Repaired::Grants) => return,
                    None => {}
                }
                self.give(state, me);
            }
            Message::Lib { stage, epoch } => {
                let arbiter = &mut state.groups[me];
                arbiter.over = arbiter.over.max(epoch);
                let gone = |entry: &Entry| entry.group == from && entry.stage <= stage;
                arbiter.waiting.retain(|entry| !gone(entry));
                arbiter.locked.retain(|entry, _| !gone(entry));
                if arbiter.locked.is_empty() || !self.has(Repaired::Holder) {
                    self.give(state, me);
                }
            }
        }
    }

    fn req_group(&self, state: &mut State, me: usize, entry: Entry) {
        let arbiter = &mut state.groups[me];
        if arbiter.locked.is_empty() && arbiter.waiting.is_empty() {
            arbiter.waiting.insert(entry);
            self.give(state, me);
            return;
        }
        let same = |holder: &Entry| self.sessions[holder.group] == self.sessions[entry.group];
        let free = arbiter.waiting.iter().all(|other| !self.before(*other, entry));
        if self.shared_votes && arbiter.locked.keys().all(same) && free {
            arbiter.waiting.insert(entry);
            self.give(state, me);
            return;
        }
        let everyone = arbiter.locked.keys().chain(&arbiter.waiting).copied();
        let listed: Vec<Entry> = if self.has(Repaired::Holder) {
            arbiter.locked.keys().copied().collect()
        } else {
            everyone.collect()
        };
        let best = listed.iter().copied().min();
        let higher = listed.iter().all(|other| self.before(entry, *other));
        let asked = arbiter.recalled && self.has(Repaired::OneRecall);
        arbiter.waiting.insert(entry);
        if !higher || asked {
            return;
        }
        arbiter.recalled = true;
        // `findHigh(LG)`; with shared votes, all groups that have a vote.
        let recalled = if self.shared_votes { listed } else { best.into_iter().collect() };
        for holder in recalled {
            let grants = state.groups[me].grants;
            let grant = state.groups[me].locked.get(&holder).copied().unwrap_or(grants);
            self.send(state, me, holder.group, Message::Rel { stage: holder.stage, grant });
        }
    }

    /// `findHigher(LG)`; Rec-Group.
    fn give(&self, state: &mut State, me: usize) {
        let arbiter = &mut state.groups[me];
        let holders: Vec<Entry> = arbiter.locked.keys().copied().collect();
        if !self.has(Repaired::Holder) {
            // There is one list: the holder of the lock is in it with the waiters.
            arbiter.waiting.extend(std::mem::take(&mut arbiter.locked).into_keys());
        } else if self.shared_votes && !holders.is_empty() && arbiter.recalled {
            return;
        }
        let Some(best) = arbiter.waiting.pop_first() else { return };
        let mut chosen = vec![best];
        if self.shared_votes {
            let session = |entry: &Entry| self.sessions[entry.group] == self.sessions[best.group];
            chosen.extend(arbiter.waiting.iter().copied().filter(session));
        }
        if holders.is_empty() || !self.shared_votes {
            arbiter.recalled = false;
        }
        for entry in chosen {
            let arbiter = &mut state.groups[me];
            arbiter.waiting.remove(&entry);
            arbiter.grants += 1;
            arbiter.locked.insert(entry, arbiter.grants);
            let (grant, over) = (arbiter.grants, arbiter.over);
            if entry.group != me || self.has(Repaired::OwnVote) {
                self.send(state, me, entry.group, Message::Rec { stage: entry.stage, grant, over });
            }
        }
    }

    fn rec_group(
        &self,
        state: &mut State,
        me: usize,
        from: usize,
        (stage, grant): (u64, u64),
        over: u64,
    ) {
        let needed = match self.repaired {
            Repaired::NothingSelfNotCounted => self.quorums[me].len() - 1,
            _ => self.quorums[me].len(),
        };
        let group = &mut state.groups[me];
        if self.has(Repaired::Recall) && stage != group.stage || group.state == Phase::Inactive {
            return;
        }
        let yielded = group.yielded.get(&from).is_some_and(|yielded| grant <= *yielded);
        if yielded && self.has(Repaired::Grants) {
            return;
        }
        group.conj.insert(from, over);
        if group.conj.len() == needed && group.state == Phase::Active {
            group.state = Phase::Cs;
            group.epoch = group.conj.values().copied().max().unwrap_or(0) + 1;
            group.lp.values_mut().for_each(|inside| *inside = true);
        }
    }
}

impl Model for Printed {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            groups: vec![Group::default(); self.quorums.len()],
            asked: vec![false; self.processes.len()],
            left: vec![false; self.processes.len()],
            links: BTreeMap::new(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for p in 0..self.processes.len() {
            if !state.asked[p] {
                actions.push(Action::Ask(p));
            }
            if self.is_inside(state, p) {
                actions.push(Action::Leave(p));
            }
        }
        for (&(from, to), messages) in &state.links {
            let deliverable = if self.ordered { 1 } else { messages.len() };
            actions.extend((0..deliverable).map(|i| Action::Deliver(from, to, i)));
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Ask(p) => {
                state.asked[p] = true;
                self.req_process(&mut state, p);
            }
            Action::Leave(p) => {
                state.left[p] = true;
                self.rel_process(&mut state, p);
            }
            Action::Deliver(from, to, i) => {
                let messages = state.links.get_mut(&(from, to))?;
                let message = messages.remove(i);
                if messages.is_empty() {
                    state.links.remove(&(from, to));
                }
                self.receive(&mut state, from, to, message);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("mutual exclusion", |printed: &Printed, state: &State| {
                let inside = |p: &usize| printed.is_inside(state, *p);
                let session = |p: usize| printed.sessions[printed.processes[p].group];
                let processes = 0..printed.processes.len();
                processes.filter(inside).map(session).collect::<BTreeSet<u32>>().len() < 2
            }),
            Property::always("nobody is left behind", |printed: &Printed, state: &State| {
                let mut actions = Vec::new();
                printed.actions(state, &mut actions);
                !actions.is_empty() || state.left.iter().all(|left| *left)
            }),
            Property::always(
                "who is alone lets everyone in",
                |printed: &Printed, state: &State| {
                    let alone = |k: usize| printed.processes.iter().all(|plan| plan.group == k);
                    !state.groups.iter().enumerate().any(|(k, group)| {
                        alone(k)
                            && group.state == Phase::Cs
                            && group.lp.values().any(|inside| !inside)
                    })
                },
            ),
            Property::always("those inside have one epoch", |_, state: &State| {
                let inside = state.groups.iter().filter(|group| group.state == Phase::Cs);
                inside.map(|group| group.epoch).collect::<BTreeSet<_>>().len() < 2
            }),
            Property::sometimes("two groups share", |_, state: &State| {
                state.groups.iter().filter(|group| group.state == Phase::Cs).count() > 1
            }),
        ]
    }
}

/// Explores until `property` is refuted. Returns the number of states and the violations.
pub(crate) fn explore_for(
    printed: Printed,
    property: &'static str,
) -> (usize, Vec<(&'static str, Vec<Action>)>) {
    // A machine that grants without end has infinitely many states. It is refuted long before.
    let checker = printed
        .checker()
        .threads(1)
        .finish_when(HasDiscoveries::AnyOf([property].into()))
        .target_state_count(3_000_000)
        .spawn_bfs()
        .join();
    let found = checker.model().properties().into_iter().filter_map(|property| {
        Some((property.name, checker.discovery(property.name)?.into_actions()))
    });
    (checker.unique_state_count(), found.collect())
}
