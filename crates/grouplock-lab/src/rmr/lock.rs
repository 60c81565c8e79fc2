//! The algorithms that can be measured, and how their code becomes coroutines.

use std::cell::RefCell;
use std::rc::Rc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, Yielder};
use grouplock_algorithms::dvir_taubenfeld_1_swap::DvirTaubenfeld1Swap;
use grouplock_algorithms::for_each_algorithm;
use grouplock_algorithms::raw::{RawGroup, RawMutex};
use grouplock_algorithms::{CapacityError, Claims, Session};

use super::context::{self, Answer, Layout, Request};
use super::memory::CountedMemory as M;

/// A process that runs.
pub(crate) type Running = Coroutine<Answer, Request, (), DefaultStack>;

/// An algorithm that can be measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurable {
    pub(crate) claims: Claims,
    make: fn(usize) -> Result<Vec<Running>, CapacityError>,
}

/// All of them. An algorithm that needs another lock has the one it ships with.
pub(crate) fn all() -> Vec<Measurable> {
    /// The lock they ship with.
    type L = DvirTaubenfeld1Swap<M>;
    let mut all = Vec::new();
    macro_rules! add {
        (($kind:ident) $($ident:ident $name:literal $lock:ty;)*) => {
            $(all.push($kind::<$lock>());)*
        };
    }
    for_each_algorithm!(mutex => add!(mutex));
    for_each_algorithm!(group => add!(group));
    for_each_algorithm!(over => add!(group));
    for_each_algorithm!(specimen => add!(group));
    for_each_algorithm!(policy => add!(group));
    all
}

impl Measurable {
    /// A fresh lock with all its processes, and its registers.
    pub(crate) fn set_up(&self, processes: usize) -> Result<(Vec<Running>, Layout), CapacityError> {
        let (running, layout) = context::lay_out(|| (self.make)(processes));
        Ok((running?, layout))
    }
}

fn mutex<L: RawMutex<M> + 'static>() -> Measurable {
    Measurable { claims: L::claims(), make: make_mutex::<L> }
}

fn group<G: RawGroup<M> + 'static>() -> Measurable {
    Measurable { claims: G::claims(), make: make_group::<G> }
}

fn make_mutex<L: RawMutex<M> + 'static>(processes: usize) -> Result<Vec<Running>, CapacityError> {
    let lock = Rc::new(L::new(processes)?);
    let joined: Vec<_> = (0..processes).map(|_| lock.join()).collect::<Result<_, _>>()?;
    let start = |mut me: L::Process| {
        let lock = Rc::clone(&lock);
        start(move |_| {
            // SAFETY: `me` joined this lock, and passages follow each other.
            unsafe { lock.acquire(&mut me) };
            context::ask(Request::Inside);
            // SAFETY: as above; it is inside.
            unsafe { lock.release(&mut me) };
        })
    };
    Ok(joined.into_iter().map(start).collect())
}

fn make_group<G: RawGroup<M> + 'static>(processes: usize) -> Result<Vec<Running>, CapacityError> {
    let lock = Rc::new(G::new(processes)?);
    let joined: Vec<_> = (0..processes).map(|_| lock.join()).collect::<Result<_, _>>()?;
    let start = |mut me: G::Process| {
        let lock = Rc::clone(&lock);
        start(move |session| {
            let session = Session::new(session).expect("sessions are numbered from one");
            // SAFETY: `me` joined this lock, passages follow each other, and sessions are few.
            unsafe { lock.enter(&mut me, session) };
            context::ask(Request::Inside);
            // SAFETY: as above; it is inside.
            unsafe { lock.exit(&mut me) };
        })
    };
    Ok(joined.into_iter().map(start).collect())
}

/// Enough for any algorithm and for a panic that comes out of it; only what is touched takes memory.
const STACK_BYTES: usize = 256 << 10;

thread_local! {
    /// Stacks that are not in use. To make a new one takes longer than many a run.
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// Keeps the stack of a process that has stopped for another one.
pub(crate) fn recycle(stopped: Running) {
    if stopped.done() {
        STACKS.with_borrow_mut(|stacks| stacks.push(stopped.into_stack()));
    }
}

/// A process that makes one `passage` after another until it is told to stop.
fn start(mut passage: impl FnMut(u64) + 'static) -> Running {
    let stack = STACKS.with_borrow_mut(Vec::pop).unwrap_or_else(|| {
        DefaultStack::new(STACK_BYTES).expect("there is address space for a few stacks")
    });
    Coroutine::with_stack(stack, move |suspend: &Yielder<Answer, Request>, _| {
        context::begin(suspend);
        while let Some(Answer::Enter(session)) = context::ask(Request::Remainder) {
            passage(session);
        }
        context::end();
    })
}
