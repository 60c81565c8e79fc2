//! The code of a process as a coroutine.

use std::cell::RefCell;
use std::rc::Rc;

use corosensei::Coroutine;
use corosensei::stack::DefaultStack;

use super::context::{self, Cue, Suspend, Suspension};
use crate::subject::Process;

pub(crate) type Running = Coroutine<Option<Cue>, Suspension, (), DefaultStack>;

/// Enough for any algorithm and for a panic in it. Only the used part takes memory.
const STACK_BYTES: usize = 256 << 10;

thread_local! {
    /// Unused stacks. Making a new stack takes longer than many runs.
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// Ends a process, at any point of its code, and keeps its stack for another process.
pub(crate) fn recycle(mut running: Running) {
    running.force_unwind();
    STACKS.with_borrow_mut(|stacks| stacks.push(running.into_stack()));
}

/// A process that makes one passage after another until it is stopped. In an exploration, with the
/// addresses of the lock's objects.
pub(crate) fn start(
    me: Rc<RefCell<Box<dyn Process>>>,
    objects: Option<Rc<[*const ()]>>,
) -> Running {
    let stack = STACKS.with_borrow_mut(Vec::pop).unwrap_or_else(|| {
        DefaultStack::new(STACK_BYTES).expect("there is address space for a few stacks")
    });
    Coroutine::with_stack(stack, move |suspend: &Suspend, _| {
        context::begin(suspend, objects);
        while let Some(Cue::Request(session)) = context::ask(Suspension::Remainder) {
            let inside = me.borrow_mut().enter(session);
            if inside {
                context::ask(Suspension::Inside);
                me.borrow_mut().exit();
            }
        }
        context::end();
    })
}
