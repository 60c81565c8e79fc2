//! How the code of a process reaches the scheduler: it suspends with a [`Request`] and resumes with an [`Answer`].

use std::cell::{Cell, RefCell};
use std::panic::{self, Location};
use std::ptr::NonNull;
use std::sync::Once;

use corosensei::Yielder;
use grouplock_algorithms::memory::{Site, Word};

use super::model::Effect;

/// An operation on one register.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Read,
    Write(Word),
    Fas(Word),
    Cas(Word, Word),
    /// What to add, and how: a sum wraps around where its type does.
    Faa(Word, fn(Word, Word) -> Word),
}

impl Operation {
    /// What the register holds after this, if this writes.
    pub(crate) fn written(self, held: Word) -> Option<Word> {
        match self {
            Operation::Read => None,
            Operation::Write(value) | Operation::Fas(value) => Some(value),
            Operation::Cas(old, new) => (held == old).then_some(new),
            Operation::Faa(delta, plus) => Some(plus(held, delta)),
        }
    }

    /// What this does to a register that holds `held`.
    pub(crate) fn effect(self, held: Word) -> Effect {
        let written = self.written(held);
        let changes = written.is_some_and(|value| value != held);
        match self {
            Operation::Read => Effect::Read,
            Operation::Write(_) => Effect::Write { changes },
            _ => Effect::Update { writes: written.is_some(), changes },
        }
    }
}

/// An access, and the line of the program that makes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) register: u32,
    pub(crate) operation: Operation,
    pub(crate) at: &'static Location<'static>,
}

/// What a process wants of the scheduler.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    /// It is in its remainder section.
    Remainder,
    /// Its doorway is over.
    DoorwayEnd,
    /// It is in its critical section.
    Inside,
    Access(Access),
    /// It starts to look whether what it waits for has come.
    RoundBegins,
    /// It has looked, in vain.
    RoundFailed,
}

/// What it gets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// Go on.
    Done,
    /// What the register held.
    Held(Word),
    /// Enter this session.
    Enter(u64),
    /// There are no more passages to make.
    Stop,
}

/// The registers of a lock and what they hold before the first step.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) sites: Vec<Site>,
    pub(crate) contents: Vec<Word>,
    /// Where objects lie, in the order of their making.
    pub(crate) objects: Vec<usize>,
}

type Suspend = Yielder<Answer, Request>;

thread_local! {
    /// The way out of the coroutine that runs at this moment. `None` between coroutines.
    static RUNNING: Cell<Option<NonNull<Suspend>>> = const { Cell::new(None) };
    /// The layout in the making, while a lock is set up.
    static LAYOUT: RefCell<Option<Layout>> = const { RefCell::new(None) };
}

/// Runs `make`, which makes a lock and lets its processes join, and notes the registers it makes.
pub(crate) fn lay_out<T>(make: impl FnOnce() -> T) -> (T, Layout) {
    LAYOUT.set(Some(Layout::default()));
    let made = make();
    (made, LAYOUT.take().expect("nobody takes it during set-up"))
}

/// To be called once at the start of a coroutine.
pub(crate) fn begin(suspend: &Suspend) {
    RUNNING.set(Some(NonNull::from(suspend)));
}

/// To be called when a coroutine has ended, be it by a panic.
pub(crate) fn end() {
    RUNNING.set(None);
}

/// Suspends the running coroutine; `None` if there is none.
pub(crate) fn ask(request: Request) -> Option<Answer> {
    let running = RUNNING.take()?;
    // SAFETY: `begin` was called with a reference that lives as long as the body of the coroutine, and this is
    // called from within that body: `end` comes after it, and while others run, `RUNNING` is theirs.
    let answer = unsafe { running.as_ref() }.suspend(request);
    RUNNING.set(Some(running));
    Some(answer)
}

/// An access: what the register held. `None` if there is nobody to ask because the lock is being dropped.
pub(crate) fn access(access: Access) -> Option<Word> {
    match ask(Request::Access(access)) {
        Some(Answer::Held(word)) => Some(word),
        Some(other) => unreachable!("{other:?} answers an access"),
        None => LAYOUT.with_borrow_mut(|layout| {
            let held = layout.as_mut()?.contents.get_mut(access.register as usize)?;
            let before = *held;
            *held = access.operation.written(before).unwrap_or(before);
            Some(before)
        }),
    }
}

/// A new register: its number.
pub(crate) fn create(site: Site, initial: Word) -> u32 {
    LAYOUT.with_borrow_mut(|layout| {
        let layout = layout.as_mut().expect("registers are made during set-up only");
        layout.sites.push(site);
        layout.contents.push(initial);
        layout.sites.len() as u32 - 1
    })
}

/// A new object at `address`.
pub(crate) fn place(address: usize) {
    LAYOUT.with_borrow_mut(|layout| {
        if let Some(layout) = layout {
            layout.objects.push(address);
        }
    });
}

/// Keeps the panic hook from printing what an algorithm panics with: that is a finding, and reported as one. Other
/// threads and times print as before.
pub(crate) fn hush_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if RUNNING.try_with(Cell::get).is_ok_and(|running| running.is_none()) {
                before(info);
            }
        }));
    });
}
