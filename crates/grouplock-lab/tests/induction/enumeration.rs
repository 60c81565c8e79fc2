//! Checks that the search finds all states that satisfy the invariant, and no others.

use std::collections::{HashMap, HashSet};

use crate::invariant::INVARIANT;
use crate::search::{Search, judge};
use crate::state::{Pc, Size, State, Type, Var, tell};
use crate::text::steps;
use crate::{goals, invariant};

fn satisfies(state: &State, size: Size) -> bool {
    INVARIANT.iter().all(|conjunct| judge(conjunct, state, size) == Ok(true))
}

/// The states of a random execution.
fn execution(size: Size, length: usize, random: &mut fastrand::Rng) -> Vec<State> {
    let mut all = vec![State::first(size)];
    while all.len() < length {
        let state = all[all.len() - 1];
        let after = steps(None, &state, random.usize(..size.processes), size);
        let after = after.expect("no step goes wrong");
        // `None` if the process must wait.
        all.extend(random.choice(after));
    }
    all
}

/// This follows from the induction, so it checks the induction.
#[test]
fn executions_satisfy_the_invariant() {
    let mut random = fastrand::Rng::with_seed(20);
    let mut reached = HashSet::new();
    for processes in 1..=4 {
        let size = Size { processes, sessions: 2 };
        let all = execution(size, 50_000, &mut random);
        let wrong = all.iter().find(|state| !satisfies(state, size));
        assert_eq!(wrong.map(|state| tell(state, size)), None);
        reached.extend(all.iter().map(|state| state.pc(0)));
    }
    assert_eq!(reached.len(), Pc::ALL.len(), "every line is reached");
}

/// The number of states is the same whether names are distinguished or not.
#[test]
fn symmetry_loses_no_state() {
    let (invariant, goals) = (invariant(), goals());
    for processes in 1..=2 {
        let size = Size { processes, sessions: 2 };
        let with = Search::new(size, &invariant, &goals).run();
        let mut search = Search::new(size, &invariant, &goals);
        search.symmetry = false;
        let without = search.run();
        assert!(without.cases > with.cases);
        assert!((with.states / without.states - 1.0).abs() < 1e-9, "{with:?} {without:?}");
    }
}

/// The test changes a few variables in a state of an execution. The new state satisfies the
/// invariant if and only if it is in one of the cases. It is in at most one case.
#[test]
fn a_state_satisfies_the_invariant_if_it_is_in_a_case() {
    const TRIED: usize = 20_000;
    let size = Size { processes: 2, sessions: 2 };
    let (invariant, goals, variables) = (invariant(), goals(), Var::all(size));
    let mut search = Search::new(size, &invariant, &goals);
    (search.symmetry, search.keep) = (false, true);
    let places = |state: &State| [state.pc(0), state.pc(1)];
    let mut cases: HashMap<_, Vec<State>> = HashMap::new();
    for case in search.run().kept {
        cases.entry(places(&case)).or_default().push(case);
    }
    let covers = |case: &State, state: &State| {
        variables.iter().all(|&var| !case.knows(var) || case.get(var) == state.get(var))
    };
    let mut random = fastrand::Rng::with_seed(16);
    let mut satisfied = 0;
    for mut state in execution(size, TRIED, &mut random) {
        for _ in 0..random.usize(..4) {
            let var = variables[random.usize(..variables.len())];
            if var.of_type() != Type::Pc {
                state.set(var, random.u8(var.values(size)));
            }
        }
        let here = cases.get(&places(&state)).map_or(&[][..], Vec::as_slice);
        let found = here.iter().filter(|case| covers(case, &state)).count();
        assert_eq!(found, usize::from(satisfies(&state, size)), "{}", tell(&state, size));
        satisfied += found;
    }
    println!("{satisfied} of {TRIED} states satisfy the invariant");
    // Enough states of both kinds.
    assert!((TRIED / 5..TRIED * 4 / 5).contains(&satisfied), "{satisfied}");
}
