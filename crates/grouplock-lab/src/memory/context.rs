//! The meaning of an access by the calling thread at present.

use std::any::Any;
use std::cell::RefCell;
use std::convert::Infallible;
use std::panic::{self, AssertUnwindSafe, Location};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Once;

use corosensei::Yielder;
use grouplock_algorithms::memory::{Home, Ordering, Site, Word};

/// An operation of a process on a register. The values are words in a run, and packed values in an
/// exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<V = Word> {
    /// Observes the value.
    Read,
    /// Writes the value.
    Write(V),
    /// Writes the value, and observes the old one.
    Fas(V),
    /// Writes the second value if the register holds the first. Observes whether it did.
    Cas(V, V),
    /// Adds to a number of this many bits, which wraps around. Observes the old value.
    Faa(u64, u32),
    /// Waits until the register holds the value.
    WaitFor(V),
    /// The same, unless the process withdraws. Observes whether it did not.
    WaitUnless(V),
    /// Waits until the register holds another value, unless the process withdraws. Observes the
    /// value, or the withdrawal.
    WaitOther(V),
    /// Waits until the register holds the first value, and writes the second.
    AwaitCas(V, V),
}

impl<V> Operation<V> {
    /// The same operation on other values, if each value has one.
    pub(crate) fn try_map<W, E>(
        self,
        mut f: impl FnMut(V) -> Result<W, E>,
    ) -> Result<Operation<W>, E> {
        Ok(match self {
            Operation::Read => Operation::Read,
            Operation::Write(value) => Operation::Write(f(value)?),
            Operation::Fas(value) => Operation::Fas(f(value)?),
            Operation::Cas(old, new) => Operation::Cas(f(old)?, f(new)?),
            Operation::Faa(delta, bits) => Operation::Faa(delta, bits),
            Operation::WaitFor(value) => Operation::WaitFor(f(value)?),
            Operation::WaitUnless(value) => Operation::WaitUnless(f(value)?),
            Operation::WaitOther(value) => Operation::WaitOther(f(value)?),
            Operation::AwaitCas(old, new) => Operation::AwaitCas(f(old)?, f(new)?),
        })
    }

    /// The contents of the register after this, if this writes. `add` makes a sum of so many bits.
    pub(crate) fn try_written<E>(
        self,
        held: &V,
        add: impl FnOnce(u64, u32) -> Result<V, E>,
    ) -> Result<Option<V>, E>
    where
        V: PartialEq,
    {
        Ok(match self {
            Operation::Write(value) | Operation::Fas(value) => Some(value),
            Operation::Cas(old, new) | Operation::AwaitCas(old, new) => {
                (*held == old).then_some(new)
            }
            Operation::Faa(delta, bits) => Some(add(delta, bits)?),
            _ => None,
        })
    }

    /// The answer for the process if the register held this.
    pub(crate) fn answer(self, held: V) -> Cue<V>
    where
        V: PartialEq,
    {
        match self {
            Operation::WaitOther(value) if held == value => Cue::Waited(false),
            Operation::Read | Operation::Fas(_) | Operation::Faa(..) | Operation::WaitOther(_) => {
                Cue::Value(held)
            }
            Operation::Cas(old, _) => Cue::Swapped(held == old),
            Operation::WaitUnless(value) => Cue::Waited(held == value),
            Operation::Write(_) | Operation::WaitFor(_) | Operation::AwaitCas(..) => Cue::Done,
        }
    }

    /// Whether the process has to wait while the register holds `held`.
    pub(crate) fn waits_on(&self, held: &V) -> bool
    where
        V: PartialEq,
    {
        match self {
            Operation::WaitFor(value)
            | Operation::WaitUnless(value)
            | Operation::AwaitCas(value, _) => held != value,
            Operation::WaitOther(value) => held == value,
            _ => false,
        }
    }

    pub(crate) fn blocks(&self) -> bool {
        self.may_withdraw() || matches!(self, Operation::WaitFor(_) | Operation::AwaitCas(..))
    }

    /// Whether the process waits and can withdraw.
    pub(crate) fn may_withdraw(&self) -> bool {
        matches!(self, Operation::WaitUnless(_) | Operation::WaitOther(_))
    }

    /// Whether the operation reads and does nothing else.
    pub(crate) fn only_reads(&self) -> bool {
        self.may_withdraw() || matches!(self, Operation::Read | Operation::WaitFor(_))
    }
}

impl Operation {
    pub(crate) fn written(self, held: Word) -> Option<Word> {
        let add = |delta, bits| match held {
            Word::Number(held) => Ok::<_, Infallible>(Word::Number(sum(held, delta, bits))),
            Word::Pointer(_) => unreachable!("only numbers are added to"),
        };
        let Ok(written) = self.try_written(&held, add);
        written
    }
}

pub(crate) fn sum(a: u64, b: u64, bits: u32) -> u64 {
    a.wrapping_add(b) & (u64::MAX >> (64 - bits))
}

/// What lets a process continue: the answer to its operation, or a command. It is an entry of a
/// script, and what a process observes in a local state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cue<V = Word> {
    Done,
    /// It is done, and the register held this.
    Value(V),
    /// Whether a compare-and-swap succeeded.
    Swapped(bool),
    /// The awaited value has arrived, or the process withdraws.
    Waited(bool),
    /// The process continues from a merge point.
    Pass,
    /// The process leaves its remainder section and requests a session.
    Request(u64),
}

impl<V> Cue<V> {
    pub(crate) fn map<W>(self, f: impl FnOnce(V) -> W) -> Cue<W> {
        match self {
            Cue::Done => Cue::Done,
            Cue::Value(value) => Cue::Value(f(value)),
            Cue::Swapped(swapped) => Cue::Swapped(swapped),
            Cue::Waited(waited) => Cue::Waited(waited),
            Cue::Pass => Cue::Pass,
            Cue::Request(session) => Cue::Request(session),
        }
    }
}

/// An access, and the line of the program that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) register: usize,
    pub(crate) operation: Operation,
    /// The ordering in the text.
    pub(crate) order: Ordering,
    pub(crate) at: &'static Location<'static>,
}

/// Why a process is suspended: what it wants, or what it reports.
#[derive(Clone, Debug)]
pub(crate) enum Suspension {
    Remainder,
    DoorwayEnd,
    Inside,
    Access(Access),
    /// It begins a round of an `await`.
    RoundBegins(&'static Location<'static>),
    /// It has ended the round. The value says whether the condition holds.
    RoundEnds(bool),
    /// The condition did not hold, and it may withdraw.
    MayWithdraw,
    /// In an exploration: the contents of this register are dead.
    Forget(usize),
    /// In an exploration: only its handle and these words count of its past.
    Live(Vec<Word>, &'static Location<'static>),
}

/// Suspends a coroutine. It resumes with a cue, or without one if it makes no more passages.
pub(crate) type Suspend = Yielder<Option<Cue>, Suspension>;

/// A register, as it was created. Its first value is a word in a run, and packed in an exploration.
#[derive(Clone, Debug)]
pub struct BlueprintRegister<V = Word> {
    pub site: Site,
    pub initial: V,
    /// The object it lies in, if it was made inside `Memory::allocate`, and its place there.
    pub object: Option<(usize, usize)>,
    /// The text says that its first contents are dead.
    pub forgotten: bool,
}

impl<V> BlueprintRegister<V> {
    /// The process that owns it by name: it is an element of an array with one element for each
    /// process. The lab assumes that no other process writes it, and the explorer checks that.
    pub(crate) fn owner(&self) -> Option<usize> {
        match (self.site.home, self.site.index, self.object) {
            (Home::Process(p), Some(index), None) if p == index => Some(p),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct BlueprintObject {
    pub(crate) place: *const (),
    pub(crate) type_name: &'static str,
    pub(crate) registers: Vec<usize>,
}

/// Everything that was created during the set-up of a lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blueprint {
    pub(crate) registers: Vec<BlueprintRegister>,
    pub(crate) objects: Vec<BlueprintObject>,
    open: Vec<usize>,
    /// The lock is made. Processes join it.
    is_made: bool,
}

#[derive(Debug)]
enum Context {
    None,
    SetUp(Blueprint),
    /// In an exploration, with the addresses of the lock's objects.
    Coroutine(NonNull<Suspend>, Option<Rc<[*const ()]>>),
}

thread_local! {
    static CONTEXT: RefCell<Context> = const { RefCell::new(Context::None) };
}

fn with<R>(f: impl FnOnce(&mut Context) -> R) -> R {
    CONTEXT.with_borrow_mut(f)
}

/// Runs `f`, which makes a lock and lets its processes join. Returns what it created.
pub(crate) fn set_up<R>(f: impl FnOnce() -> R) -> (R, Blueprint) {
    with(|context| *context = Context::SetUp(Blueprint::default()));
    let made = f();
    match with(|context| std::mem::replace(context, Context::None)) {
        Context::SetUp(blueprint) => (made, blueprint),
        _ => unreachable!("nothing else changes the context during set-up"),
    }
}

/// Must be called once at the start of a coroutine; in an exploration with the addresses of the
/// lock's objects.
pub(super) fn begin(suspend: &Suspend, objects: Option<Rc<[*const ()]>>) {
    with(|context| *context = Context::Coroutine(NonNull::from(suspend), objects));
}

/// Must be called when a coroutine has ended, also by a panic.
pub(crate) fn end() {
    with(|context| *context = Context::None);
}

/// Suspends the running coroutine, if there is one, until it gets a cue.
pub(super) fn ask(suspension: Suspension) -> Option<Cue> {
    let (running, objects) = with(|context| match std::mem::replace(context, Context::None) {
        Context::Coroutine(running, objects) => Some((running, objects)),
        other => {
            *context = other;
            None
        }
    })?;
    // SAFETY: `begin` was called with a reference that lives as long as the body of the coroutine,
    // and this is called from within that body. `end` is called after it. While other coroutines
    // run, the context is theirs.
    let cue = unsafe { running.as_ref() }.suspend(suspension);
    with(|context| *context = Context::Coroutine(running, objects));
    cue
}

/// Runs `f` and catches its panic. The panic hook does not print the panic of an algorithm: the lab
/// reports it as a finding. Other threads, and other code, print as usual.
pub(crate) fn catch_quietly<R>(f: impl FnOnce() -> R) -> std::thread::Result<R> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let hushed = |context: &Context| matches!(context, Context::Coroutine(..));
            let hushed =
                CONTEXT.try_with(|context| context.try_borrow().map_or(true, |c| hushed(&c)));
            if !hushed.unwrap_or(false) {
                before(info);
            }
        }));
    });
    panic::catch_unwind(AssertUnwindSafe(f))
}

pub(crate) fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_owned()
}

pub(super) fn create(site: Site, initial: Word) -> usize {
    with(|context| match context {
        Context::SetUp(blueprint) => {
            let id = blueprint.registers.len();
            let object = blueprint.open.last().map(|&object| {
                blueprint.objects[object].registers.push(id);
                (object, blueprint.objects[object].registers.len() - 1)
            });
            blueprint.registers.push(BlueprintRegister { site, initial, object, forgotten: false });
            id
        }
        _ => panic!("a register was made after the processes had joined: {site:?}"),
    })
}

/// Changes the blueprint, if a lock is being set up.
fn with_blueprint(f: impl FnOnce(&mut Blueprint)) {
    with(|context| {
        if let Context::SetUp(blueprint) = context {
            f(blueprint);
        }
    });
}

/// The lock that is being set up is made, and processes join it. They may make registers, but must
/// not access any. Then it makes no difference when a process joins: until its first request it is
/// one that has joined and is idle. So explorations in which all join at the start are enough.
pub(crate) fn let_join() {
    with_blueprint(|blueprint| blueprint.is_made = true);
}

/// Makes an object. The registers that `make` creates lie in it.
pub(super) fn object<T>(make: impl FnOnce() -> T) -> NonNull<T> {
    with_blueprint(|blueprint| {
        blueprint.open.push(blueprint.objects.len());
        let (place, type_name) = (std::ptr::null(), std::any::type_name::<T>());
        blueprint.objects.push(BlueprintObject { place, type_name, registers: Vec::new() });
    });
    let object = NonNull::from(Box::leak(Box::new(make())));
    with_blueprint(|blueprint| {
        if let Some(number) = blueprint.open.pop() {
            blueprint.objects[number].place = object.as_ptr().cast_const().cast();
        }
    });
    object
}

/// Whether there is an object at `place`. Without a script every pointer is real.
pub(super) fn is_object(place: *const ()) -> bool {
    with(|context| match context {
        Context::Coroutine(_, Some(objects)) => objects.contains(&place),
        _ => place.addr() > 2,
    })
}

/// The answer to an operation. `None` if the lock is being dropped.
pub(super) fn operate(
    register: usize,
    operation: Operation,
    order: Ordering,
    at: &'static Location<'static>,
) -> Option<Cue> {
    let known = with(|context| {
        let Context::SetUp(blueprint) = context else { return None };
        assert!(!operation.blocks(), "{operation:?} while a lock is set up");
        assert!(!blueprint.is_made, "{operation:?} while a process joins, which is not explored");
        let held = &mut blueprint.registers[register].initial;
        let answer = operation.answer(*held);
        *held = operation.written(*held).unwrap_or(*held);
        Some(answer)
    });
    known.or_else(|| ask(Suspension::Access(Access { register, operation, order, at })))
}

fn is_explored() -> bool {
    with(|context| matches!(context, Context::Coroutine(_, Some(_))))
}

fn is_coroutine() -> bool {
    with(|context| matches!(context, Context::Coroutine(..)))
}

/// Waits on a register, unless the process withdraws, and returns the answer. This is one blocking
/// step for an explorer, and single counted reads for a meter. While a lock is set up it is refused,
/// whatever the register holds.
pub(super) fn wait(
    register: usize,
    operation: Operation,
    at: &'static Location<'static>,
) -> Option<Cue> {
    if is_explored() || !is_coroutine() {
        return operate(register, operation, Ordering::Acquire, at);
    }
    let look = || match operate(register, Operation::Read, Ordering::Acquire, at) {
        Some(Cue::Value(held)) if !operation.waits_on(&held) => Some(operation.answer(held)),
        _ => None,
    };
    rounds(operation.may_withdraw(), look, at)
}

/// Repeats `round` until it has a result, unless the process withdraws.
fn rounds<T>(
    may_withdraw: bool,
    round: impl Fn() -> Option<T>,
    at: &'static Location<'static>,
) -> Option<T> {
    while is_coroutine() {
        ask(Suspension::RoundBegins(at));
        let found = round();
        // Before the round ends, because there the process goes to sleep.
        if found.is_none()
            && may_withdraw
            && ask(Suspension::MayWithdraw) == Some(Cue::Waited(false))
        {
            return None;
        }
        ask(Suspension::RoundEnds(found.is_some()));
        if found.is_some() {
            return found;
        }
    }
    let found = round();
    assert!(found.is_some(), "waiting while a lock is set up or dropped");
    found
}

pub(super) fn await_until(condition: impl Fn() -> bool, at: &'static Location<'static>) {
    rounds(false, || condition().then_some(()), at);
}

pub(super) fn forget(register: usize) {
    with_blueprint(|blueprint| blueprint.registers[register].forgotten = true);
    if is_explored() {
        ask(Suspension::Forget(register));
    }
}

pub(super) fn live(words: impl FnOnce() -> Vec<Word>, at: &'static Location<'static>) {
    if is_explored() {
        ask(Suspension::Live(words(), at));
    }
}
