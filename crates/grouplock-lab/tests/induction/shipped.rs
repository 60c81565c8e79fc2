//! Checks that the model is the text that ships.
//!
//! In the model and in the lab, a step of the system is a step of one process on shared registers.
//! So it is enough to compare the behaviour of one process alone. From the start, and for any
//! answers, the model and the code access the same register in the same way. The answers are all
//! values of the register's type, also values that never occur.

use std::collections::HashSet;

use grouplock_lab::automaton::{Obs, Op as Operation};
use grouplock_lab::registry;
use grouplock_lab::value::Val;

use crate::code::{Code, Point};
use crate::state::{Pc, Size, State, Stop, Type, Var, node};
use crate::text::{Mutation, Op, Text, access, arrive, request};

/// A process holds at most four nodes (`ready`, `cool`, `h`, `x`) and two records, and compares
/// them. With this size, any of them can be different or the same.
const SIZE: Size = Size { processes: 2, sessions: 2 };

/// The lab's names for the numbers of the model.
struct Names {
    nodes: Vec<usize>,
    records: Vec<usize>,
}

impl Names {
    fn of(code: &Code) -> Self {
        let named = |kind| {
            let objects = code.objects().into_iter().enumerate();
            objects.filter(|(_, name)| name.starts_with(kind)).map(|(object, _)| object).collect()
        };
        Names { nodes: named("Node"), records: named("Record") }
    }

    /// The lab's value for a register of this type.
    fn value(&self, of_type: Type, value: u8) -> Val {
        let number = usize::from(value);
        match of_type {
            Type::Pointer => {
                node(value).map_or_else(|| Val::mark(number), |i| Val::object(self.nodes[i]))
            }
            Type::Record if value == 0 => Val::mark(0),
            Type::Record => Val::object(self.records[number - 1]),
            _ => Val::number(number as u64).expect("it is small"),
        }
    }

    fn operation(&self, register: Var, op: Op) -> Operation {
        let value = |value| self.value(register.of_type(), value);
        match op {
            Op::Read => Operation::Read,
            Op::Write(new) => Operation::Write(value(new)),
            Op::Fas(new) => Operation::Fas(value(new)),
            Op::Cas(old, new) => Operation::Cas(value(old), value(new)),
            Op::WaitFor(held) => Operation::WaitFor(value(held)),
            Op::AwaitCas(old, new) => Operation::AwaitCas(value(old), value(new)),
        }
    }

    /// The model's name for a register of the lab.
    fn register(&self, (object, name): (Option<usize>, &str)) -> Option<Var> {
        let number = |of: &[usize]| of.iter().position(|it| Some(*it) == object);
        match name {
            "Head" => Some(Var::Head),
            "Tail" => Some(Var::Tail),
            "ideal lock" => Some(Var::Lock),
            "session" => number(&self.nodes).map(Var::Session),
            "next" => number(&self.nodes).map(Var::Next),
            "link" => number(&self.nodes).map(Var::Link),
            "user" => number(&self.nodes).map(Var::User),
            "go" => number(&self.records).map(Var::Go),
            _ => None,
        }
    }
}

/// A process at the start has only its nodes.
fn first(p: usize) -> State {
    let whole = State::first(SIZE);
    let mut state = State::UNKNOWN;
    for var in [Var::Ready(p), Var::Cool(p), Var::Pc(p)] {
        state.set(var, whole.get(var).expect("the first state is known"));
    }
    state
}

/// Drops the private variables that are not used after this point. If one is used after all, the
/// read finds it unknown.
fn trim(state: &mut State, p: usize) {
    let pc = state.pc(p);
    let among = |from, to| (from..=to).contains(&pc);
    let used = [
        (Var::Asked(p), pc != Pc::Idle),
        (Var::Pred(p), among(Pc::L4, Pc::L6) || pc == Pc::L9),
        (Var::Enabled(p), among(Pc::L6, Pc::L6Head)),
        (Var::Succ(p), pc == Pc::L12User),
        (Var::Who(p), pc == Pc::L12Go || pc == Pc::L18Go),
        (Var::H(p), among(Pc::L15, Pc::L19)),
        (Var::X(p), among(Pc::L17Head, Pc::L18User)),
        (Var::Seen(p), pc == Pc::L18Old),
    ];
    for (var, is_used) in used {
        if !is_used {
            state.unset(var);
        }
    }
}

/// Compares the model with the code. Returns the number of compared pairs of places, or the
/// difference.
fn compare(text: Text) -> Result<usize, String> {
    let subject = registry::find("handover").map_err(|error| error.to_string())?;
    let (mut code, places) = Code::of(&subject, SIZE.processes);
    if !places.iter().all(|place| place.is_like(&places[0])) {
        return Err("the processes do not begin alike".to_owned());
    }
    let (names, p) = (Names::of(&code), 0);
    let mut seen = HashSet::new();
    let mut due: Vec<(State, Point)> = vec![(first(p), places[p].clone())];
    while let Some((state, place)) = due.pop() {
        if !seen.insert((state, place.clone())) {
            continue;
        }
        let pc = state.pc(p);
        if (pc == Pc::Idle, pc == Pc::L13) != (code.is_idle(&place), code.is_inside(&place)) {
            return Err(format!("at {pc:?} the code is somewhere else in its passage"));
        }
        if pc == Pc::Idle {
            for session in 1..=SIZE.sessions {
                let mut state = state;
                request(&mut state, p, session);
                due.push((state, code.answer(&place, Obs::Request(session.into()))?));
            }
            continue;
        }
        let (register, op) = access(text, &state, p).map_err(|stop| format!("{pc:?}: {stop:?}"))?;
        let here = (Some(register), Some(names.operation(register, op)));
        let there = code.next(&place);
        let there = (
            there.and_then(|(register, _)| names.register(code.register(register))),
            there.map(|(_, operation)| operation),
        );
        if here != there {
            return Err(format!("at {pc:?} the model does {here:?}, and the code {there:?}"));
        }
        let answers = match op {
            Op::Read | Op::Fas(_) => register.values(SIZE),
            Op::Cas(..) => 0..2,
            Op::Write(_) | Op::WaitFor(_) | Op::AwaitCas(..) => 0..1,
        };
        for answer in answers {
            let mut state = state;
            let here = arrive(text, &mut state, p, answer);
            let there = code.answer(
                &place,
                match op {
                    Op::Read | Op::Fas(_) => Obs::Value(names.value(register.of_type(), answer)),
                    Op::Cas(..) => Obs::Swapped(answer == 1),
                    Op::Write(_) | Op::WaitFor(_) | Op::AwaitCas(..) => Obs::Done,
                },
            );
            match (here, there) {
                (Ok(()), Ok(place)) => {
                    trim(&mut state, p);
                    due.push((state, place));
                }
                (Err(Stop::Fault(_)), Err(_)) => {}
                (here, there) => {
                    let there = there.map(|_| ());
                    return Err(format!("at {pc:?}, answered {answer}: {here:?} and {there:?}"));
                }
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn the_model_is_the_shipped_text() {
    match compare(None) {
        Ok(places) => println!("{places} places of a process compared"),
        Err(why) => panic!("{why}"),
    }
}

#[test]
fn a_model_with_one_line_wrong_is_not() {
    for (mutation, _) in Mutation::ALL {
        let told = compare(Some(mutation)).expect_err("a line is wrong");
        println!("{mutation:?}: {told}");
    }
}
