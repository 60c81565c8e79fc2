//! The code of a process as a coroutine.

use std::cell::RefCell;
use std::rc::Rc;

use corosensei::Coroutine;
use corosensei::stack::DefaultStack;

use super::context::{self, Cue, Suspend, Wish};
use crate::subject::Process;

pub(crate) type Running = Coroutine<Option<Cue>, Wish, (), DefaultStack>;

/// Enough for any algorithm and for a panic that comes out of it; only what is touched takes
/// memory.
const STACK_BYTES: usize = 256 << 10;

thread_local! {
    /// Stacks that are not in use. To make a new one takes longer than many a run.
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// Ends a process, wherever it is in its code, and keeps its stack for another one.
pub(crate) fn recycle(mut running: Running) {
    running.force_unwind();
    STACKS.with_borrow_mut(|stacks| stacks.push(running.into_stack()));
}

/// A process that makes one passage after another until it is stopped; with the addresses of the
/// lock's objects, if it is explored.
pub(crate) fn start(
    me: Rc<RefCell<Box<dyn Process>>>,
    objects: Option<Rc<[*const ()]>>,
) -> Running {
    let stack = STACKS.with_borrow_mut(Vec::pop).unwrap_or_else(|| {
        DefaultStack::new(STACK_BYTES).expect("there is address space for a few stacks")
    });
    Coroutine::with_stack(stack, move |suspend: &Suspend, _| {
        context::begin(suspend, objects);
        while let Some(Cue::Request(session)) = context::ask(Wish::Remainder) {
            let inside = me.borrow_mut().enter(session);
            if inside {
                context::ask(Wish::Inside);
                me.borrow_mut().exit();
            }
        }
        context::end();
    })
}
