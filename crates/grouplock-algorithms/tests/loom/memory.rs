//! Memory of loom: every access is one operation of the Rust memory model, and loom explores all
//! its outcomes.

use core::cell::{Cell, RefCell};
use core::marker::PhantomData;

use grouplock_algorithms::memory::{Flag, Memory, Number, Ordering, Register, Site, Value, Word};
use grouplock_algorithms::raw::GiveUp;
use loom::sync::atomic::{AtomicBool, AtomicPtr, fence};

/// Memory that uses the orderings as they are.
pub(crate) type Loom = AtStrength<FAITHFUL>;
/// Memory that replaces sequential consistency by acquire and release. Loom does this by default.
/// It is not enough for some locks.
pub(crate) type Fenceless = AtStrength<FENCELESS>;
/// Memory that uses the orderings as they are, and whose writes are swaps of the same ordering.
/// Loom orders the writes to a register only if one happens before another. So a write may stay
/// unseen forever after a swap by another thread. Loom does order swaps. A swap continues a release
/// sequence, and a write ends it: in this, a swap is stronger.
pub(crate) type Swapping = AtStrength<SWAPPING>;
/// Memory that makes every ordering relaxed.
pub(crate) type Relaxed = AtStrength<RELAXED>;

const SWAPPING: u8 = 3;
const FAITHFUL: u8 = 2;
const FENCELESS: u8 = 1;
const RELAXED: u8 = 0;

/// See the type aliases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtStrength<const STRENGTH: u8>;

impl<const STRENGTH: u8> Memory for AtStrength<STRENGTH> {
    type Register<T: Value> = LoomRegister<T, STRENGTH>;
    type Flag = LoomFlag<STRENGTH>;

    fn await_until(condition: impl Fn() -> bool) {
        wait(condition);
    }
}

thread_local! {
    /// After how many reads a waiter abandons the branch: see [`give_up_after`]. (Loom runs all
    /// threads of a model on one.)
    static PATIENCE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// With three processes, two waiters can alternate forever and delay the third. This prunes such
/// runs after so many reads of a waiter. It also hides a wait that never ends. So models of two
/// processes do without it: there loom itself notices such a wait.
pub(crate) fn give_up_after(looks: Option<usize>) {
    PATIENCE.set(looks.unwrap_or(usize::MAX));
}

fn wait(condition: impl Fn() -> bool) {
    let mut looks = 0;
    while !condition() {
        looks += 1;
        if looks > PATIENCE.get() {
            loom::skip_branch();
        }
        loom::thread::yield_now();
    }
}

/// A pointer can have any value: numbers become addresses of nothing.
#[derive(Debug)]
pub(crate) struct LoomRegister<T, const STRENGTH: u8> {
    cell: AtomicPtr<()>,
    is_pointer: bool,
    holds: PhantomData<fn() -> T>,
}

impl<T: Value, const STRENGTH: u8> LoomRegister<T, STRENGTH> {
    fn pack(value: T) -> *mut () {
        match value.word() {
            Word::Pointer(pointer) => pointer.cast_mut(),
            Word::Number(number) => core::ptr::without_provenance_mut(
                usize::try_from(number).expect("loom runs on 64-bit machines"),
            ),
        }
    }

    fn unpack(&self, pointer: *mut ()) -> T {
        T::from_word(if self.is_pointer {
            Word::Pointer(pointer)
        } else {
            Word::Number(pointer.addr() as u64)
        })
    }

    /// Compare-and-swap that returns the previous value.
    fn exchange(&self, old: T, new: T, order: Ordering) -> Result<T, T> {
        let cas = |order| {
            let failure = match order {
                Ordering::AcqRel | Ordering::Acquire => Ordering::Acquire,
                _ => Ordering::Relaxed,
            };
            self.cell.compare_exchange(Self::pack(old), Self::pack(new), order, failure)
        };
        ordered::<STRENGTH, _>(order, Ordering::AcqRel, cas)
            .map(|v| self.unpack(v))
            .map_err(|v| self.unpack(v))
    }
}

/// Does `step` with an order that loom models. Loom treats sequentially consistent accesses as
/// acquire and release only, but it does model sequentially consistent fences. An access between
/// two such fences is at least as strong as the access it replaces. If all accesses to the
/// registers concerned are sequentially consistent, it is exactly as strong: then both allow only
/// the interleavings.
fn ordered<const STRENGTH: u8, R>(
    order: Ordering,
    weaker: Ordering,
    step: impl FnOnce(Ordering) -> R,
) -> R {
    match (STRENGTH, order) {
        (RELAXED, _) => step(Ordering::Relaxed),
        (FENCELESS, Ordering::SeqCst) => step(weaker),
        (_, Ordering::SeqCst) => {
            fence(Ordering::SeqCst);
            let result = step(weaker);
            fence(Ordering::SeqCst);
            result
        }
        (_, other) => step(other),
    }
}

impl<T: Value, const STRENGTH: u8> Register<T> for LoomRegister<T, STRENGTH> {
    fn new(_: Site, initial: T) -> Self {
        let is_pointer = matches!(initial.word(), Word::Pointer(_));
        LoomRegister { cell: AtomicPtr::new(Self::pack(initial)), is_pointer, holds: PhantomData }
    }

    fn read(&self, order: Ordering) -> T {
        self.unpack(ordered::<STRENGTH, _>(order, Ordering::Acquire, |order| self.cell.load(order)))
    }

    fn write(&self, value: T, order: Ordering) {
        ordered::<STRENGTH, _>(order, Ordering::Release, |order| {
            if STRENGTH == SWAPPING {
                self.cell.swap(Self::pack(value), order);
            } else {
                self.cell.store(Self::pack(value), order);
            }
        });
    }

    fn fas(&self, value: T, order: Ordering) -> T {
        let swap = |order| self.cell.swap(Self::pack(value), order);
        self.unpack(ordered::<STRENGTH, _>(order, Ordering::AcqRel, swap))
    }

    fn cas(&self, old: T, new: T, order: Ordering) -> bool {
        self.exchange(old, new, order).is_ok()
    }

    fn faa(&self, delta: T, order: Ordering) -> T
    where
        T: Number,
    {
        let mut seen = self.read(Ordering::Relaxed);
        loop {
            match self.exchange(seen, seen.plus(delta), order) {
                Ok(before) => return before,
                Err(other) => seen = other,
            }
        }
    }

    fn await_other(&self, value: T, order: Ordering, give_up: GiveUp<'_>) -> Option<T> {
        let (give_up, held) = (RefCell::new(give_up), Cell::new(None));
        wait(|| {
            let seen = self.read(order);
            held.set((seen != value).then_some(seen));
            held.get().is_some() || (*give_up.borrow_mut())()
        });
        held.get()
    }
}

/// A plain boolean: the model does not need to sleep.
#[derive(Debug)]
pub(crate) struct LoomFlag<const STRENGTH: u8>(AtomicBool);

impl<const STRENGTH: u8> Flag for LoomFlag<STRENGTH> {
    fn new(_: Site, initial: bool) -> Self {
        LoomFlag(AtomicBool::new(initial))
    }

    fn set(&self, value: bool) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn signal(&self, value: bool) {
        let release = Ordering::Release;
        ordered::<STRENGTH, _>(release, release, |order| self.0.store(value, order));
    }

    fn wait_for(&self, value: bool) {
        wait(|| self.holds(value));
    }

    fn wait_unless(&self, value: bool, give_up: GiveUp<'_>) -> bool {
        let (give_up, over) = (RefCell::new(give_up), Cell::new(false));
        wait(|| {
            let holds = self.holds(value);
            over.set(!holds && (*give_up.borrow_mut())());
            holds || over.get()
        });
        !over.get()
    }

    fn holds(&self, value: bool) -> bool {
        let acquire = Ordering::Acquire;
        ordered::<STRENGTH, _>(acquire, acquire, |order| self.0.load(order)) == value
    }
}
