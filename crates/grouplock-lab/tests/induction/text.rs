//! The text of handover as a model: the access of each line, and what a process does with the
//! result.
//!
//! `shipped.rs` compares [`access`] and [`arrive`] with the code that ships.

use crate::state::{ENABLED, GONE, Lazy, NIL, Pc, Size, State, Stop, Var, node, record};

/// An access to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Read,
    Write(u8),
    Fas(u8),
    Cas(u8, u8),
    /// Waits until the register holds this value.
    WaitFor(u8),
    /// Waits until the register holds the first value, and writes the second.
    AwaitCas(u8, u8),
}

/// The result of the access: the value of a read or a swap, or whether a compare-and-swap
/// succeeded.
pub(crate) type Seen = u8;

/// A wrong line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// Line 1 leaves `go` as it is.
    GoIsNotReset,
    /// Line 1 leaves `next` as it is.
    NextIsNotReset,
    /// Line 1 leaves `link` as it is.
    LinkIsNotReset,
    /// Line 3 does not write Head.
    HeadIsNotSetFirst,
    /// Line 4 treats any session as its own.
    AnySession,
    /// Line 5 treats any answer as ENABLED.
    AlwaysEnabled,
    /// Line 6 does not write Head.
    HeadIsNotSetAfterGone,
    /// Line 6 runs before line 5.
    NextBeforeLink,
    /// Line 9 does not wait, whatever it reads.
    OtherSessionDoesNotWait,
    /// Line 13 does not wait.
    NoExitLock,
    /// Line 15 only reads Tail, and continues with line 16.
    TailIsKept,
    /// Line 16 writes GONE, whatever the register holds.
    GoneWithoutLooking,
    /// Line 17 does not write Head.
    HeadStays,
    /// Line 18 signals, whatever the sessions are.
    AlwaysSignals,
    /// Line 20 makes h ready at once.
    NoCooling,
}

impl Mutation {
    /// All mutations, with the wrong line of each.
    pub(crate) const ALL: [(Mutation, u8); 15] = [
        (Mutation::GoIsNotReset, 1),
        (Mutation::NextIsNotReset, 1),
        (Mutation::LinkIsNotReset, 1),
        (Mutation::HeadIsNotSetFirst, 3),
        (Mutation::AnySession, 4),
        (Mutation::AlwaysEnabled, 5),
        (Mutation::HeadIsNotSetAfterGone, 6),
        (Mutation::NextBeforeLink, 5),
        (Mutation::OtherSessionDoesNotWait, 9),
        (Mutation::NoExitLock, 13),
        (Mutation::TailIsKept, 15),
        (Mutation::GoneWithoutLooking, 16),
        (Mutation::HeadStays, 17),
        (Mutation::AlwaysSignals, 18),
        (Mutation::NoCooling, 19),
    ];
}

/// The text, with at most one wrong line.
pub(crate) type Text = Option<Mutation>;

/// The node that a pointer in `var` points to.
fn follow(state: &State, var: Var) -> Lazy<usize> {
    node(state.get(var)?).ok_or(Stop::Fault("a mark is followed"))
}

/// The process whose record is in `Who(p)`.
fn whose(state: &State, p: usize) -> Lazy<usize> {
    let who = state.get(Var::Who(p))?;
    who.checked_sub(1).map(usize::from).ok_or(Stop::Fault("NIL is followed"))
}

/// The next access of process `p`, which is not idle: the register and the operation.
#[rustfmt::skip]
pub(crate) fn access(text: Text, state: &State, p: usize) -> Lazy<(Var, Op)> {
    let own = || follow(state, Var::Ready(p));
    let n = || state.get(Var::Ready(p));
    let pred = || follow(state, Var::Pred(p));
    let h = || follow(state, Var::H(p));
    let x = || follow(state, Var::X(p));
    Ok(match state.pc(p) {
        Pc::Idle => return Err(Stop::Fault("an idle process takes no step")),
        Pc::L1Session => (Var::Session(own()?), Op::Write(state.get(Var::Asked(p))?)),
        Pc::L1Next => (Var::Next(own()?), Op::Write(NIL)),
        Pc::L1Link => (Var::Link(own()?), Op::Write(NIL)),
        Pc::L1User => (Var::User(own()?), Op::Write(record(p))),
        Pc::L1Go => (Var::Go(p), Op::Write(0)),
        Pc::L2 => (Var::Tail, Op::Fas(n()?)),
        Pc::L3 if text == Some(Mutation::HeadIsNotSetFirst) => (Var::Head, Op::Read),
        Pc::L3 | Pc::L6Head | Pc::L9Head => (Var::Head, Op::Write(n()?)),
        Pc::L4 => (Var::Session(pred()?), Op::Read),
        Pc::L5 => (Var::Link(pred()?), Op::Fas(n()?)),
        Pc::L6 | Pc::L9 => (Var::Next(pred()?), Op::Fas(n()?)),
        Pc::L7 | Pc::L10 => (Var::Go(p), Op::WaitFor(1)),
        Pc::L11 => (Var::Link(own()?), Op::Fas(ENABLED)),
        Pc::L12User => (Var::User(follow(state, Var::Succ(p))?), Op::Read),
        Pc::L12Go | Pc::L18Go => (Var::Go(whose(state, p)?), Op::Write(1)),
        Pc::L13 if text == Some(Mutation::NoExitLock) => (Var::Lock, Op::Write(1)),
        Pc::L13 => (Var::Lock, Op::AwaitCas(0, 1)),
        Pc::L14 => (Var::Head, Op::Read),
        Pc::L15 if text == Some(Mutation::TailIsKept) => (Var::Tail, Op::Read),
        Pc::L15 => (Var::Tail, Op::Cas(state.get(Var::H(p))?, NIL)),
        Pc::L16 if text == Some(Mutation::GoneWithoutLooking) => (Var::Next(h()?), Op::Fas(GONE)),
        Pc::L16 => (Var::Next(h()?), Op::Cas(NIL, GONE)),
        Pc::L17Next => (Var::Next(h()?), Op::Read),
        Pc::L17Head if text == Some(Mutation::HeadStays) => (Var::Head, Op::Write(state.get(Var::H(p))?)),
        Pc::L17Head => (Var::Head, Op::Write(state.get(Var::X(p))?)),
        Pc::L18New => (Var::Session(x()?), Op::Read),
        Pc::L18Old => (Var::Session(h()?), Op::Read),
        Pc::L18User => (Var::User(x()?), Op::Read),
        Pc::L19 => (Var::Lock, Op::Write(0)),
    })
}

/// What process `p` does between the result `seen` of its access and its next access.
pub(crate) fn arrive(text: Text, state: &mut State, p: usize, seen: Seen) -> Lazy<()> {
    let is = |mutation| text == Some(mutation);
    let after_go = if is(Mutation::GoIsNotReset) { Pc::L2 } else { Pc::L1Go };
    let pc = match state.pc(p) {
        Pc::Idle => return Err(Stop::Fault("an idle process gets no answer")),
        Pc::L1Session if is(Mutation::NextIsNotReset) => Pc::L1Link,
        Pc::L1Session => Pc::L1Next,
        Pc::L1Next if is(Mutation::LinkIsNotReset) => Pc::L1User,
        Pc::L1Next => Pc::L1Link,
        Pc::L1Link => Pc::L1User,
        Pc::L1User => after_go,
        Pc::L1Go => Pc::L2,
        Pc::L2 if seen == NIL => Pc::L3,
        Pc::L2 => {
            state.set(Var::Pred(p), seen);
            // The text follows it, too.
            follow(state, Var::Pred(p))?;
            Pc::L4
        }
        Pc::L4 if seen == state.get(Var::Asked(p))? || is(Mutation::AnySession) => {
            if is(Mutation::NextBeforeLink) { Pc::L6 } else { Pc::L5 }
        }
        Pc::L4 => Pc::L9,
        Pc::L5 => {
            let enabled = seen == ENABLED || is(Mutation::AlwaysEnabled);
            state.set(Var::Enabled(p), u8::from(enabled));
            match (is(Mutation::NextBeforeLink), enabled) {
                (false, _) => Pc::L6,
                (true, true) => Pc::L11,
                (true, false) => Pc::L7,
            }
        }
        Pc::L6 if seen == GONE && !is(Mutation::HeadIsNotSetAfterGone) => Pc::L6Head,
        Pc::L6 | Pc::L6Head if is(Mutation::NextBeforeLink) => Pc::L5,
        Pc::L6 | Pc::L6Head => {
            if state.flag(Var::Enabled(p))? {
                Pc::L11
            } else {
                Pc::L7
            }
        }
        Pc::L9 if seen == GONE => Pc::L9Head,
        Pc::L9 if is(Mutation::OtherSessionDoesNotWait) => Pc::L11,
        Pc::L9 => Pc::L10,
        Pc::L3 | Pc::L7 | Pc::L9Head | Pc::L10 => Pc::L11,
        Pc::L11 if seen == NIL => Pc::L13,
        Pc::L11 => {
            state.set(Var::Succ(p), seen);
            follow(state, Var::Succ(p))?;
            Pc::L12User
        }
        Pc::L12User | Pc::L18User => {
            state.set(Var::Who(p), seen);
            whose(state, p)?;
            if state.pc(p) == Pc::L12User { Pc::L12Go } else { Pc::L18Go }
        }
        Pc::L12Go => Pc::L13,
        Pc::L13 => Pc::L14,
        Pc::L14 => {
            state.set(Var::H(p), seen);
            follow(state, Var::H(p))?;
            Pc::L15
        }
        Pc::L15 if seen == 1 && !is(Mutation::TailIsKept) => Pc::L19,
        Pc::L15 => Pc::L16,
        Pc::L16 if seen == 1 || is(Mutation::GoneWithoutLooking) => Pc::L19,
        Pc::L16 => Pc::L17Next,
        Pc::L17Next => {
            state.set(Var::X(p), seen);
            Pc::L17Head
        }
        Pc::L17Head => {
            follow(state, Var::X(p))?;
            Pc::L18New
        }
        Pc::L18New => {
            state.set(Var::Seen(p), seen);
            Pc::L18Old
        }
        Pc::L18Old if seen != state.get(Var::Seen(p))? || is(Mutation::AlwaysSignals) => {
            Pc::L18User
        }
        Pc::L18Old | Pc::L18Go => Pc::L19,
        Pc::L19 => {
            let (cool, h) = (state.get(Var::Cool(p))?, state.get(Var::H(p))?);
            follow(state, Var::H(p))?;
            let (ready, cool) = if is(Mutation::NoCooling) { (h, cool) } else { (cool, h) };
            state.set(Var::Ready(p), ready);
            state.set(Var::Cool(p), cool);
            Pc::Idle
        }
    };
    state.set_pc(p, pc);
    Ok(())
}

/// An idle process requests `session`.
pub(crate) fn request(state: &mut State, p: usize, session: u8) {
    state.set(Var::Asked(p), session);
    state.set_pc(p, Pc::L1Session);
}

/// Process `p`, which is not idle, takes a step. `None` if it must wait.
pub(crate) fn step(text: Text, before: &State, p: usize) -> Lazy<Option<State>> {
    let (register, op) = access(text, before, p)?;
    let (written, seen) = match op {
        Op::Write(value) => (Some(value), 0),
        Op::Read => (None, before.get(register)?),
        Op::Fas(value) => (Some(value), before.get(register)?),
        Op::Cas(old, new) if before.get(register)? == old => (Some(new), 1),
        Op::AwaitCas(old, new) if before.get(register)? == old => (Some(new), 0),
        Op::WaitFor(value) if before.get(register)? == value => (None, 0),
        Op::Cas(..) => (None, 0),
        Op::WaitFor(_) | Op::AwaitCas(..) => return Ok(None),
    };
    let mut state = *before;
    if let Some(value) = written {
        state.set(register, value);
    }
    arrive(text, &mut state, p, seen)?;
    queue(before, &mut state, p)?;
    Ok(Some(state))
}

/// The change of the queue, a variable of the proof. Line 2 appends the node. Line 15 empties the
/// queue if its compare-and-swap succeeds. Line 16, if its compare-and-swap succeeds, and line 17
/// remove the first node.
fn queue(before: &State, state: &mut State, p: usize) -> Lazy<()> {
    let gone = state.pc(p) == Pc::L19;
    match before.pc(p) {
        Pc::L2 => {
            let length = usize::from(before.get(Var::Length)?);
            state.set(Var::Queue(length), before.get(Var::Ready(p))?);
            state.set(Var::Length, length as u8 + 1);
        }
        Pc::L15 if gone => state.set(Var::Length, 0),
        Pc::L16 if gone => take_first(state)?,
        Pc::L17Head => take_first(state)?,
        _ => {}
    }
    Ok(())
}

fn take_first(state: &mut State) -> Lazy<()> {
    let length = state.get(Var::Length)?;
    let length = length.checked_sub(1).ok_or(Stop::Fault("the queue has no first node"))?;
    for i in 0..usize::from(length) {
        let next = state.get(Var::Queue(i + 1))?;
        state.set(Var::Queue(i), next);
    }
    state.set(Var::Length, length);
    Ok(())
}

/// The states after a step of process `p` in `before`. There are several if it is idle, because it
/// may request any session.
pub(crate) fn steps(text: Text, before: &State, p: usize, size: Size) -> Lazy<Vec<State>> {
    if before.pc(p) != Pc::Idle {
        return Ok(step(text, before, p)?.into_iter().collect());
    }
    let asked = |session| {
        let mut state = *before;
        request(&mut state, p, session);
        state
    };
    Ok((1..=size.sessions).map(asked).collect())
}
