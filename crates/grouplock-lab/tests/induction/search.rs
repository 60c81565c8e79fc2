//! All states that satisfy an invariant, and whether every step keeps it.
//!
//! The conjuncts are evaluated one after the other. At first only the lines of the processes are
//! known. If a conjunct needs a variable, the search continues with each value of the variable's
//! type. If a conjunct is false, no state here satisfies the invariant. If all are true, all of
//! these states satisfy it, whatever the other variables hold. They are one *case*. From each case
//! the search takes every step of every process in the same way, and evaluates the invariant after
//! it.
//!
//! # Names
//! States that differ only in the names of nodes and processes are equivalent: the invariant and
//! the steps only compare names. So processes are taken in the order of their lines in the text. Of
//! the nodes that no variable names yet, the search tries one for all. It counts how many states
//! that represents.

use crate::invariant::{Conjunct, View};
use crate::state::{Lazy, Pc, Size, State, Stop, Type, Var, node, tell};
use crate::text::{Text, steps};

/// What to check.
pub(crate) struct Search<'a> {
    pub(crate) size: Size,
    pub(crate) text: Text,
    pub(crate) invariant: &'a [&'a Conjunct],
    /// What the invariant must imply.
    pub(crate) goals: &'a [&'a Conjunct],
    /// Treat states that differ only in names as one.
    pub(crate) symmetry: bool,
    /// Keep the cases.
    pub(crate) keep: bool,
    all: Vec<Var>,
    pub(crate) found: Found,
}

/// What the search did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) cases: u64,
    /// How many states the cases contain.
    pub(crate) states: f64,
    /// The number of cases from which each of the steps was taken. A case is divided further if a
    /// step needs it.
    pub(crate) steps: u64,
    pub(crate) kept: Vec<State>,
    pub(crate) failure: Option<Failure>,
}

/// A state that satisfies the invariant, and the fault there.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The line of the process whose step does not keep the invariant. `None` if a goal does not
    /// follow.
    pub(crate) pc: Option<Pc>,
    /// The conjunct, or the event.
    pub(crate) what: &'static str,
    pub(crate) story: String,
}

impl<'a> Search<'a> {
    pub(crate) fn new(
        size: Size,
        invariant: &'a [&'a Conjunct],
        goals: &'a [&'a Conjunct],
    ) -> Self {
        let (text, symmetry, keep, found) = (None, true, false, Found::default());
        Search { size, text, invariant, goals, symmetry, keep, all: Var::all(size), found }
    }

    /// The number of all states, whether they satisfy a conjunct or not.
    pub(crate) fn typed_states(&self) -> f64 {
        self.all.iter().map(|var| var.values(self.size).len() as f64).product()
    }

    /// Checks everything, or stops at the first fault.
    pub(crate) fn run(mut self) -> Found {
        let mut state = State::UNKNOWN;
        self.place(&mut state, 0);
        self.found
    }

    /// Puts process `p` and the processes after it at every line.
    fn place(&mut self, state: &mut State, p: usize) {
        if p == self.size.processes {
            let weight = if self.symmetry { self.orders(state) } else { 1.0 };
            self.complete(state, 0, weight);
            return;
        }
        let least = if self.symmetry && p > 0 { state.pc(p - 1) } else { Pc::Idle };
        for pc in Pc::ALL.into_iter().filter(|&pc| pc >= least) {
            state.set_pc(p, pc);
            self.place(state, p + 1);
        }
    }

    /// The number of orders of the processes at these lines.
    fn orders(&self, state: &State) -> f64 {
        let (mut orders, mut run) = (1.0, 0.0);
        for p in 0..self.size.processes {
            run = if p > 0 && state.pc(p - 1) == state.pc(p) { run + 1.0 } else { 1.0 };
            orders *= (p + 1) as f64 / run;
        }
        orders
    }

    /// Finds every case in which all conjuncts hold. Those before number `from` hold already.
    fn complete(&mut self, state: &mut State, mut from: usize, weight: f64) {
        while self.found.failure.is_none() {
            let Some(conjunct) = self.invariant.get(from) else {
                return self.case(state, weight);
            };
            match judge(conjunct, state, self.size) {
                Ok(true) => from += 1,
                Ok(false) => return,
                Err(var) => {
                    for (value, names) in self.choices(state, var) {
                        state.set(var, value);
                        self.complete(state, from, weight * names);
                    }
                    return state.unset(var);
                }
            }
        }
    }

    /// The values to try for a variable, and how many values each represents.
    fn choices(&self, state: &State, var: Var) -> Vec<(u8, f64)> {
        let values = var.values(self.size);
        if !self.symmetry || !matches!(var.of_type(), Type::Pointer | Type::Node) {
            return values.map(|value| (value, 1.0)).collect();
        }
        let used = state.used(&self.all);
        let is_new = |value: &u8| node(*value).is_some_and(|i| used >> i & 1 == 0);
        let new = values.clone().filter(is_new).count() as f64;
        let old = values.clone().filter(|value| !is_new(value)).map(|value| (value, 1.0));
        old.chain(values.clone().find(is_new).map(|value| (value, new))).collect()
    }

    fn case(&mut self, state: &mut State, weight: f64) {
        let free = self.all.iter().filter(|var| !state.knows(**var));
        let free: f64 = free.map(|var| var.values(self.size).len() as f64).product();
        self.found.cases += 1;
        if self.found.cases.is_multiple_of(1 << 22) {
            println!("{} cases so far", self.found.cases);
        }
        self.found.states += weight * free;
        self.found.kept.extend(self.keep.then_some(*state));
        self.judge_all(self.goals, state, &mut { *state }, None, 0);
        for p in 0..self.size.processes {
            self.step(state, p);
        }
    }

    /// Takes the steps of process `p`.
    fn step(&mut self, state: &mut State, p: usize) {
        if self.found.failure.is_some() {
            return;
        }
        match steps(self.text, state, p, self.size) {
            Ok(after) => {
                for mut after in after {
                    self.found.steps += 1;
                    self.judge_all(self.invariant, state, &mut after, Some(state.pc(p)), 0);
                }
            }
            Err(Stop::Fault(what)) => self.fail(Some(state.pc(p)), what, state, state),
            Err(Stop::Need(var)) => {
                for (value, _) in self.choices(state, var) {
                    state.set(var, value);
                    self.step(state, p);
                }
                state.unset(var);
            }
        }
    }

    /// Checks that the conjuncts from number `from` on hold in `after`, the state that the step at
    /// `pc` reaches from `state`.
    fn judge_all(
        &mut self,
        conjuncts: &[&Conjunct],
        state: &State,
        after: &mut State,
        pc: Option<Pc>,
        from: usize,
    ) {
        for (i, conjunct) in conjuncts.iter().enumerate().skip(from) {
            if self.found.failure.is_some() {
                return;
            }
            match judge(conjunct, after, self.size) {
                Ok(true) => {}
                Ok(false) => return self.fail(pc, conjunct.name, state, after),
                Err(var) => {
                    for (value, _) in self.choices(after, var) {
                        after.set(var, value);
                        self.judge_all(conjuncts, state, after, pc, i);
                    }
                    return after.unset(var);
                }
            }
        }
    }

    fn fail(&mut self, pc: Option<Pc>, what: &'static str, before: &State, after: &State) {
        let (before, after) = (tell(before, self.size), tell(after, self.size));
        let story = format!("{what}\n  before: {before}\n  after:  {after}");
        self.found.failure = Some(Failure { pc, what, story });
    }
}

/// Returns whether a conjunct holds, or the variable that it needs.
pub(crate) fn judge(conjunct: &Conjunct, state: &State, size: Size) -> Result<bool, Var> {
    let judged: Lazy<bool> = (conjunct.holds)(&View { state, size });
    match judged {
        Ok(holds) => Ok(holds),
        Err(Stop::Need(var)) => Err(var),
        Err(Stop::Fault(what)) => unreachable!("a conjunct takes no step: {what}"),
    }
}
