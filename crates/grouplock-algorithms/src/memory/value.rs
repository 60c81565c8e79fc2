//! The values of registers.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// A value as a simulated memory sees it.
///
/// Pointers are separate from numbers because they may be renamed: two states that differ only in
/// the names of nodes are the same state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Word {
    /// A plain value.
    Number(u64),
    /// The address of an object made by [`Memory::allocate`](super::Memory::allocate), or one of
    /// the small marks that can replace a pointer, null among them.
    Pointer(*const ()),
}

// SAFETY: a word only names a place. Code that uses the place is `unsafe`, and has its own reason.
unsafe impl Send for Word {}
// SAFETY: as above.
unsafe impl Sync for Word {}

/// A type that fits a register.
pub trait Value: Copy + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// The atomic type that holds it on real memory.
    type Atomic: Atomic<Value = Self>;

    /// This value for a simulated memory.
    fn word(self) -> Word;

    /// The value that `word` came from.
    ///
    /// # Panics
    /// If no value of this type has that word.
    fn from_word(word: Word) -> Self;
}

/// A value that can be added to.
pub trait Number: Value {
    /// The sum, wrapping around.
    #[must_use]
    fn plus(self, delta: Self) -> Self;

    /// Fetch-and-add on real memory.
    fn fetch_add(atomic: &Self::Atomic, delta: Self, order: Ordering) -> Self;
}

/// The common methods of the atomic types of `core`.
pub trait Atomic: Send + Sync + fmt::Debug {
    /// The type of its contents.
    type Value: Value;

    /// An atomic that holds `value`.
    fn new(value: Self::Value) -> Self;
    /// As [`AtomicU64::load`].
    fn load(&self, order: Ordering) -> Self::Value;
    /// As [`AtomicU64::store`].
    fn store(&self, value: Self::Value, order: Ordering);
    /// As [`AtomicU64::swap`].
    fn swap(&self, value: Self::Value, order: Ordering) -> Self::Value;
    /// As [`AtomicU64::compare_exchange`].
    ///
    /// # Errors
    /// What was there, if it was not `old`.
    fn compare_exchange(
        &self,
        old: Self::Value,
        new: Self::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Self::Value, Self::Value>;
}

/// Makes `$atomic` an [`Atomic`] of `$value`, given how to pass values in and out.
macro_rules! atomic {
    ([$($generic:tt)*] $atomic:ty, $value:ty, $into:expr, $from:expr) => {
        impl<$($generic)*> Atomic for $atomic {
            type Value = $value;

            #[inline(always)]
            fn new(value: $value) -> Self {
                <$atomic>::new($into(value))
            }
            #[inline(always)]
            fn load(&self, order: Ordering) -> $value {
                $from(self.load(order))
            }
            #[inline(always)]
            fn store(&self, value: $value, order: Ordering) {
                self.store($into(value), order);
            }
            #[inline(always)]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                $from(self.swap($into(value), order))
            }
            #[inline(always)]
            fn compare_exchange(
                &self,
                old: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange($into(old), $into(new), success, failure)
                    .map($from)
                    .map_err($from)
            }
        }
    };
}

/// Makes an unsigned integer a [`Number`].
macro_rules! number {
    ($value:ty, $atomic:ty) => {
        atomic!([] $atomic, $value, core::convert::identity, core::convert::identity);

        impl Value for $value {
            type Atomic = $atomic;

            #[allow(clippy::cast_lossless, reason = "`usize` has no `From` to `u64`")]
            fn word(self) -> Word {
                Word::Number(self as u64)
            }

            fn from_word(word: Word) -> Self {
                match word {
                    Word::Number(bits) => <$value>::try_from(bits)
                        .unwrap_or_else(|_| panic!("{bits} does not fit {}", stringify!($value))),
                    Word::Pointer(_) => panic!("a pointer where a number was expected"),
                }
            }
        }

        impl Number for $value {
            #[inline(always)]
            fn plus(self, delta: Self) -> Self {
                self.wrapping_add(delta)
            }

            #[inline(always)]
            fn fetch_add(atomic: &$atomic, delta: Self, order: Ordering) -> Self {
                atomic.fetch_add(delta, order)
            }
        }
    };
}

number!(u32, AtomicU32);
number!(u64, AtomicU64);
number!(usize, AtomicUsize);
atomic!([] AtomicBool, bool, core::convert::identity, core::convert::identity);
atomic!([T: 'static] AtomicPtr<T>, Ptr<T>, |p: Ptr<T>| p.0.cast_mut(), |p: *mut T| Ptr(p.cast_const()));

impl Value for bool {
    type Atomic = AtomicBool;

    fn word(self) -> Word {
        Word::Number(u64::from(self))
    }

    fn from_word(word: Word) -> Self {
        match word {
            Word::Number(0) => false,
            Word::Number(1) => true,
            other => panic!("{other:?} where a boolean was expected"),
        }
    }
}

/// A pointer to an object in shared memory, or one of three marks that can replace it.
///
/// A `Ptr` is only an address: any code may copy, compare and store it. Following it is `unsafe`:
/// the algorithm knows how long its nodes live.
pub struct Ptr<T>(*const T);

impl<T> Ptr<T> {
    /// Points to nothing.
    pub const NIL: Self = Ptr(core::ptr::null());

    /// A mark, distinct from every pointer and from [`Ptr::MARK_2`].
    pub const MARK_1: Self = Ptr(core::ptr::without_provenance(1));

    /// A mark, distinct from every pointer and from [`Ptr::MARK_1`].
    pub const MARK_2: Self = Ptr(core::ptr::without_provenance(2));

    /// Points to `object`.
    ///
    /// The marks are addresses one and two, so the type of a node must be aligned to four bytes or
    /// more.
    #[inline(always)]
    pub const fn to(object: core::ptr::NonNull<T>) -> Self {
        const { assert!(align_of::<T>() >= 4, "a node's address could be taken for a mark") };
        Ptr(object.as_ptr().cast_const())
    }

    /// Its address, whether it points to an object or not.
    #[inline(always)]
    pub const fn place(self) -> *const () {
        self.0.cast()
    }

    /// Whether this is [`Ptr::NIL`].
    #[inline(always)]
    pub fn is_nil(self) -> bool {
        self.0.is_null()
    }

    /// The object this points to.
    ///
    /// # Safety
    /// This was made by [`Ptr::to`], and the object lives, and is shared by nothing but `&T`,
    /// throughout `'a`. `T` is [`Sync`] if another thread may hold this pointer.
    #[inline(always)]
    pub unsafe fn as_ref<'a>(self) -> &'a T {
        debug_assert!(self.0.addr() > 2, "{self:?} is followed");
        // SAFETY: the caller's promise.
        unsafe { &*self.0 }
    }
}

// Derived versions would require `T: Clone` and so on.
impl<T> Clone for Ptr<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Ptr<T> {}
impl<T> PartialEq for Ptr<T> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.0, other.0)
    }
}
impl<T> Eq for Ptr<T> {}
impl<T> fmt::Debug for Ptr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.addr() {
            0 => f.write_str("NIL"),
            1 => f.write_str("MARK_1"),
            2 => f.write_str("MARK_2"),
            address => write!(f, "{address:#x}"),
        }
    }
}

// SAFETY: a `Ptr` is an address; `as_ref` requires `T: Sync` where that matters.
unsafe impl<T> Send for Ptr<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Ptr<T> {}

impl<T: 'static> Value for Ptr<T> {
    type Atomic = AtomicPtr<T>;

    fn word(self) -> Word {
        Word::Pointer(self.0.cast())
    }

    fn from_word(word: Word) -> Self {
        match word {
            Word::Pointer(pointer) => Ptr(pointer.cast()),
            Word::Number(_) => panic!("a number where a pointer was expected"),
        }
    }
}
